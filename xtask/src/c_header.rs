//! `cargo xtask c-header`: compares `rnet.h` with the exported functions of rnet-c, or writes it.
//!
//! cbindgen translates the declarations. This module adds the page at the top, the version, the limits and the
//! initialisers of option structs, and converts comments from rustdoc to Doxygen.

mod comments;
mod exports;

use std::path::Path;

use syn::{Expr, ExprLit, Item, Lit, Meta};

use crate::{Outcome, SourceFile, generated, source_files};

const HEADER: &str = "crates/rnet-c/include/rnet.h";
const SOURCES: &str = "crates/rnet-c/src/";
const CONFIG: &str = "crates/rnet-c/cbindgen.toml";
const COMMAND: &str = "cargo xtask c-header --write";
const GUARD_END: &str = "#endif  /* RNET_H */";

/// The comment at the top of the header.
const HEAD: &str = include_str!("c_header/head.txt");

/// What initialises a struct. C++17 has no designated initialisers, and compilers warn about missing members.
/// `extern "C++"`, because programs may include the header within `extern "C"`.
const INITIALISER: &str = r#"#ifdef __cplusplus
/** What RNET_..._INIT is in C++: a struct of options or results with its size and defaults. */
extern "C++" template <class T>
constexpr T rnet_init() noexcept {
  T made{};
  made.struct_size = sizeof(T);
  return made;
}
#define RNET_INIT(type) rnet_init<type>()
#else
#define RNET_INIT(type) {.struct_size = sizeof(type)}
#endif

/* Initialisers: rnet_node_options options = RNET_NODE_OPTIONS_INIT; */
"#;

/// Constants of `rnet::limits` that the header has, with the prefix `RNET_`, beside those that rnet-c exports.
const LIMITS: &[&str] = &[
    "MAX_DOMAIN_LEN_BYTES",
    "MAX_KEY_LEN_BYTES",
    "MAX_MESSAGE_LEN_BYTES",
    "MAX_NODE_NAME_LEN_BYTES",
    "MAX_PINS_PER_READER",
    "MAX_PLAIN_ALIGN_BYTES",
    "MAX_TOPIC_LEN_BYTES",
    "MAX_TRANSACTION_KEYS",
    "MAX_VALUE_DEPTH",
    "MAX_VALUE_LEN_BYTES",
];
/// The comments of the limits, and their values, which `cargo xtask api` checks.
const LIMITS_SOURCE: &str = "crates/rnet-core/src/limits.rs";
const API: &str = "docs/api/rnet.txt";

/// Compares the header with the sources, or writes it.
pub fn run(root: &Path, rest: &[String]) -> Option<Outcome> {
    let write = generated::is_write(rest)?;
    Some(source_files(root).and_then(|files| {
        let header = header(root, &files)?;
        let sources = files.iter().filter(|file| file.path.starts_with(SOURCES));
        let (count, mut findings) = exports::check(sources, &header)?;
        if count == 0 {
            return Err(format!("found no exported function in {SOURCES}, so nothing was checked"));
        }
        let files = [(HEADER.to_owned(), header)];
        findings.extend(generated::update(root, &files, write, COMMAND)?);
        Ok((format!("{count} functions"), findings))
    }))
}

/// The enums that a source declares.
fn enums(source: &str) -> impl Iterator<Item = &str> {
    let lines = source.lines().filter_map(|line| line.strip_prefix("pub enum "));
    lines.filter_map(|rest| rest.split_once(' ')).map(|(name, _)| name)
}

fn header(root: &Path, files: &[SourceFile]) -> Result<String, String> {
    let mut config = cbindgen::Config::from_file(root.join(CONFIG))?;
    config.header = Some(HEAD.trim_end().to_owned());
    config.after_includes = Some((version() + &limits(files)?).trim_end().to_owned());
    // Not lib.rs, whose modules cbindgen would read a second time.
    let sources = files
        .iter()
        .filter(|file| file.path.starts_with(SOURCES) && !file.path.ends_with("/lib.rs"));
    // Option structs hold the numbers of enums, which no function names.
    let texts = sources.clone().filter_map(SourceFile::text);
    config.export.include = texts.flat_map(enums).map(str::to_owned).collect();
    let builder = sources.fold(cbindgen::Builder::new().with_config(config), |builder, file| {
        builder.with_src(root.join(&file.path))
    });
    let bindings = builder.generate().map_err(|error| format!("cbindgen: {error}"))?;
    let mut bytes = Vec::new();
    bindings.write(&mut bytes);
    let text = String::from_utf8(bytes).map_err(|error| format!("cbindgen: {error}"))?;
    let text = comments::to_doxygen(&text);
    let initialisers = initialisers(&text);
    Ok(text.replace(GUARD_END, &format!("{initialisers}\n{GUARD_END}")))
}

fn version() -> String {
    let [major, minor, patch] = [
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_VERSION_PATCH"),
    ];
    format!(
        "\n/** Version of this header. rnet_version() returns that of the library. */\n\
         #define RNET_VERSION \"{major}.{minor}.{patch}\"\n\
         #define RNET_VERSION_MAJOR {major}\n\
         #define RNET_VERSION_MINOR {minor}\n\
         #define RNET_VERSION_PATCH {patch}\n"
    )
}

/// The limits as macros, with their comments.
fn limits(files: &[SourceFile]) -> Result<String, String> {
    let text = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.and_then(SourceFile::text).ok_or_else(|| format!("{path} is missing"))
    };
    let source =
        syn::parse_file(text(LIMITS_SOURCE)?).map_err(|e| format!("{LIMITS_SOURCE}: {e}"))?;
    let api = text(API)?;
    let mut macros = String::new();
    for name in LIMITS {
        let is_it = |item: &&Item| matches!(item, Item::Const(item) if item.ident == name);
        let Some(Item::Const(item)) = source.items.iter().find(is_it) else {
            return Err(format!("{LIMITS_SOURCE} has no constant {name}"));
        };
        let start = format!("pub const rnet::limits::{name}: usize = ");
        let value = api.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix("usize"));
        let value = value.ok_or_else(|| format!("{API} has no line `{start}…usize`"))?;
        // The first sentence is for users.
        let comment = doc(&item.attrs).replace('\n', " ");
        let comment = comment.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let value = value.replace('_', "");
        macros += &format!("\n/** {comment}. */\n#define RNET_{name} {value}\n");
    }
    Ok(macros)
}

/// The doc comment of an item; empty if it has none.
fn doc(attributes: &[syn::Attribute]) -> String {
    let line = |attribute: &syn::Attribute| match &attribute.meta {
        Meta::NameValue(it) if it.path.is_ident("doc") => match &it.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// `RNET_X_INIT` for each struct `rnet_x` that begins with its size.
fn initialisers(header: &str) -> String {
    let mut found = Vec::new();
    let mut current = None;
    for line in header.lines() {
        let code = line.trim();
        if let Some(name) = line.strip_prefix("typedef struct ").and_then(|l| l.strip_suffix(" {"))
        {
            current = Some(name);
        } else if !code.is_empty() && !code.starts_with(['/', '*']) {
            // The first member.
            found.extend(current.take().filter(|_| code == "size_t struct_size;"));
        }
    }
    let mut text = INITIALISER.to_owned();
    for name in found {
        text += &format!("#define {}_INIT RNET_INIT({name})\n", name.to_uppercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_that_begin_with_their_size_get_an_initialiser() {
        let header = "typedef struct rnet_a {\n  /** Its size. */\n  size_t struct_size;\n} rnet_a;\n\
                      typedef struct rnet_b {\n  size_t len;\n  size_t struct_size;\n} rnet_b;\n\
                      typedef struct rnet_c rnet_c;\n";
        let text = initialisers(header);
        assert!(text.contains("#define RNET_A_INIT RNET_INIT(rnet_a)\n"), "{text}");
        assert!(!text.contains("RNET_B") && !text.contains("RNET_C"), "{text}");
    }

    #[test]
    fn limits_have_the_values_of_the_listing() {
        let mut source = String::new();
        let mut api = String::new();
        for name in LIMITS {
            source += &format!("/// At most\n/// this.\npub const {name}: usize = 1 << 12;\n");
            api += &format!("pub const rnet::limits::{name}: usize = 4_096usize\n");
        }
        let files = |api: &str| {
            [(LIMITS_SOURCE, source.as_str()), (API, api)]
                .map(|(path, text)| SourceFile { path: path.into(), bytes: text.into() })
        };
        let text = limits(&files(&api)).expect("complete");
        let line = "\n/** At most this. */\n#define RNET_MAX_KEY_LEN_BYTES 4096\n";
        assert!(text.contains(line), "{text}");
        assert!(limits(&files("")).is_err());
    }
}
