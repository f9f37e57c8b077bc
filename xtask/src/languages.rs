//! Compares docs/languages.md with the API of each language.
//!
//! A row of its tables names a feature and, for each language, the symbols between backticks that provide it, or
//! `– ` and the reason why there is none. Each symbol must exist: in the listings of Rust and Python, in the header
//! of C, in a header of C++. Each function of the header must belong to a row: by its name, or by `rnet_prefix_*`.

use std::collections::{HashMap, HashSet};

use crate::{Finding, SourceFile};

const PAGE: &str = "docs/languages.md";
const HEAD: &str = "| feature | Rust | Python | C | C++ |";
const RUST: &str = "docs/api/rnet.txt";
const PYTHON: &str = "docs/api/rnet.pyi.txt";
const C: &str = "crates/rnet-c/include/rnet.h";
const CPP: &str = "cpp/include/rnet/";

/// Checks the page.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let texts: HashMap<&str, &str> =
        files.iter().filter_map(|f| Some((f.path.as_str(), f.text()?))).collect();
    let missing = [PAGE, RUST, PYTHON, C].into_iter().filter(|path| !texts.contains_key(path));
    let missing: Vec<Finding> = missing.map(|path| Finding::new(path, "is missing")).collect();
    if !missing.is_empty() {
        return missing;
    }
    let headers: Vec<&str> =
        texts.iter().filter(|(path, _)| path.starts_with(CPP)).map(|(_, text)| *text).collect();
    let (rust, python, functions) = (texts[RUST], python_names(texts[PYTHON]), c_names(texts[C]));
    let exists = |language: usize, symbol: &str| match language {
        0 => contains_word(rust, &format!("::{symbol}")),
        1 => python.contains(symbol),
        2 => functions.iter().any(|function| matches(function, symbol)),
        _ => headers.iter().any(|header| is_in_header(header, symbol)),
    };
    let (mut findings, mut c_symbols) = (Vec::new(), Vec::new());
    let lines = (1..).zip(texts[PAGE].lines());
    let rows = lines.filter(|(_, line)| line.starts_with("| ") && *line != HEAD);
    for (number, row) in rows {
        let mut fault = |text| findings.push(Finding::new(format!("{PAGE}:{number}"), text));
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        if cells.len() != 5 {
            fault(format!("has {} cells instead of 5", cells.len()));
            continue;
        }
        for (language, cell) in cells[1..].iter().enumerate() {
            if cell.strip_prefix("– ").is_some_and(|reason| !reason.is_empty()) {
                continue;
            }
            let symbols: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
            if symbols.is_empty() {
                fault(format!("`{cell}` is neither a symbol nor `– ` and a reason"));
            }
            let unknown = symbols.iter().filter(|symbol| !exists(language, symbol));
            unknown.for_each(|symbol| fault(format!("`{symbol}` does not exist")));
            if language == 2 {
                c_symbols.extend(symbols);
            }
        }
    }
    let is_named = |function: &&str| c_symbols.iter().any(|symbol| matches(function, symbol));
    let mut unnamed: Vec<&str> = functions.into_iter().filter(|f| !is_named(f)).collect();
    unnamed.sort_unstable();
    findings.extend(unnamed.into_iter().map(|f| Finding::new(C, format!("{f} is not in {PAGE}"))));
    findings
}

/// Whether a function has this name, or this prefix before a `*`.
fn matches(function: &str, symbol: &str) -> bool {
    symbol.strip_suffix('*').map_or(function == symbol, |prefix| function.starts_with(prefix))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether the text contains this, not as a part of a longer word.
fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let (before, after) =
            (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        let inside = word.starts_with(is_word) && before.is_some_and(is_word);
        !inside && !after.is_some_and(is_word)
    })
}

/// `Class`, `Class.member` and functions of the listing of Python.
fn python_names(listing: &str) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut class = "";
    for line in listing.lines() {
        let code = line.trim_start();
        let words =
            ["async def ", "def ", "class "].iter().find_map(|word| code.strip_prefix(word));
        let name = words.unwrap_or(code).split(|c| !is_word(c)).next().unwrap_or_default();
        if line.starts_with(' ') {
            names.insert(format!("{class}.{name}"));
        } else {
            class = name;
            names.insert(name.to_owned());
        }
    }
    names
}

/// The functions of the header.
fn c_names(header: &str) -> HashSet<&str> {
    let starts = header.match_indices("rnet_");
    let names = starts.filter_map(|(at, _)| {
        let end = at + header[at..].find(|c| !is_word(c))?;
        let declares = header[end..].starts_with('(') && !header[..at].ends_with(is_word);
        let line = header[..at].rsplit('\n').next().unwrap_or_default();
        let is_text = line.trim_start().starts_with(['*', '/', '#']) || line.contains("constexpr");
        (declares && !is_text).then(|| &header[at..end])
    });
    names.collect()
}

/// Whether a header declares `Class::member`, `Class`, or a function.
fn is_in_header(header: &str, symbol: &str) -> bool {
    let declares = |class: &str| {
        ["class ", "struct ", "class [[nodiscard]] "]
            .iter()
            .any(|word| contains_word(header, &format!("{word}{class}")))
    };
    match symbol.rsplit_once("::") {
        Some((class, member)) => declares(class) && contains_word(header, member),
        None => declares(symbol) || contains_word(header, symbol),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(rows: &str, header: &str) -> Vec<String> {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), bytes: text.into() };
        let files = [
            file(PAGE, &format!("# Languages\n\n{HEAD}\n|---|---|---|---|---|\n{rows}")),
            file(RUST, "pub fn rnet::Node::now(&self) -> u64\n"),
            file(PYTHON, "class Node:\n    def now(self) -> int\ndef now_ns() -> int\n"),
            file(C, header),
            file("cpp/include/rnet/node.hpp", "class Node {\n    uint64_t now() const;\n};\n"),
        ];
        check(&files).into_iter().map(|f| f.text).collect()
    }

    const HEADER: &str = "/**\n * See rnet_old().\n */\nuint64_t rnet_node_now(rnet_node *n);\n";
    const ROW: &str =
        "| time | `Node::now` | `Node.now`, `now_ns` | `rnet_node_now` | `Node::now` |\n";

    #[test]
    fn symbols_that_exist_pass() {
        assert_eq!(findings(ROW, HEADER), [""; 0]);
        let wide = ROW.replace("rnet_node_now", "rnet_node_*");
        assert_eq!(findings(&wide, HEADER), [""; 0]);
        assert_eq!(findings(&ROW.replace("`Node::now` |\n", "– use C |\n"), HEADER), [""; 0]);
    }

    #[test]
    fn symbols_that_do_not_exist_fail() {
        for (old, new) in [
            ("| `Node::now` | `Node.now`", "| `Node::no` | `Node.now`"),
            ("`Node.now`", "`Node.now_ns`"),
            ("`rnet_node_now`", "`rnet_node_now`, `rnet_old`"),
            ("`Node::now` |\n", "`Node::then` |\n"),
        ] {
            let found = findings(&ROW.replacen(old, new, 1), HEADER);
            assert!(found[0].ends_with("does not exist"), "{new}: {found:?}");
        }
    }

    #[test]
    fn empty_cells_and_unnamed_functions_fail() {
        assert!(findings(&ROW.replace("`Node.now`, `now_ns`", "–"), HEADER)[0].contains("neither"));
        assert_eq!(findings("| a |\n", "")[0], "has 1 cells instead of 5");
        let more = format!("{HEADER}void rnet_node_free(rnet_node *n);\n");
        assert_eq!(findings(ROW, &more), ["rnet_node_free is not in docs/languages.md"]);
        assert_eq!(check(&[])[0].text, "is missing");
    }
}
