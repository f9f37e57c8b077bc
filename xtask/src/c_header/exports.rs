//! Checks that each exported function of rnet-c has a comment and is in the header, which defines nothing twice.

use syn::{Attribute, Item, Meta};

use crate::{Finding, SourceFile};

/// The number of exported functions, and the findings.
pub fn check<'f>(
    sources: impl Iterator<Item = &'f SourceFile>,
    header: &str,
) -> Result<(usize, Vec<Finding>), String> {
    let (mut count, mut findings) = (0, Vec::new());
    for source in sources.filter(|source| source.path.ends_with(".rs")) {
        let text = source.text().ok_or_else(|| format!("{} is not text", source.path))?;
        let parsed = syn::parse_file(text).map_err(|e| format!("{}: {e}", source.path))?;
        for item in parsed.items {
            let Item::Fn(function) = item else { continue };
            if !function.attrs.iter().any(is_exported) {
                continue;
            }
            count += 1;
            let name = function.sig.ident.to_string();
            let mut add = |fault: String| findings.push(Finding::new(source.path.as_str(), fault));
            if super::doc(&function.attrs).is_empty() {
                add(format!("{name}() has no comment"));
            }
            if !header.contains(&format!("{name}(")) {
                add(format!(
                    "{name}() is not in the header: cbindgen cannot express its signature"
                ));
            }
        }
    }
    let defined =
        header.lines().filter_map(|line| line.strip_prefix("#define ")?.split(' ').next());
    let mut seen = std::collections::BTreeSet::new();
    // One for C and one for C++.
    let twice = defined.filter(|name| !name.starts_with("RNET_INIT(") && !seen.insert(*name));
    findings.extend(twice.map(|name| Finding::new(super::HEADER, format!("defines {name} twice"))));
    Ok((count, findings))
}

/// `#[no_mangle]` or `#[unsafe(no_mangle)]`.
fn is_exported(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("unsafe") => {
            list.parse_args::<Meta>().is_ok_and(|inner| inner.path().is_ident("no_mangle"))
        }
        meta => meta.path().is_ident("no_mangle"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_comments_missing_functions_and_repeated_macros_fail() {
        let text = "/// A.\n#[unsafe(no_mangle)]\npub extern \"C\" fn rnet_a() {}\n\
                    #[unsafe(no_mangle)]\npub extern \"C\" fn rnet_b() {}\nfn other() {}\n";
        let file = SourceFile { path: "a.rs".into(), bytes: text.into() };
        let header = "#define RNET_A 1\n#define RNET_B 1\n#define RNET_A 1\nvoid rnet_b(void);\n";
        let (count, findings) = check([&file].into_iter(), header).expect("parses");
        let texts: Vec<&str> = findings.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(count, 2);
        let missing = "rnet_a() is not in the header: cbindgen cannot express its signature";
        assert_eq!(texts, [missing, "rnet_b() has no comment", "defines RNET_A twice"]);
    }
}
