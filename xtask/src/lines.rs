//! `cargo xtask lines`: counts the lines of product code, test code and comments per crate, and the words of
//! the documentation.
//!
//! Blank lines do not count. Test code is everything below `tests`, `benches`, `examples` or `fuzz`, a file
//! `tests.rs`, and a block after `#[cfg(test)]`. Python counts as code and comments; its docstrings are
//! comments. The headers of C++ that `cargo xtask cpp-messages` generates have a row of their own.

use std::collections::BTreeMap;

use crate::SourceFile;

/// What the first line of a generated header contains.
const GENERATED: &str = "do not edit";

/// Line counts of one crate or folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    product: usize,
    test: usize,
    comment: usize,
}

/// The table of all crates, and the number of words of the documentation.
pub fn table(files: &[SourceFile]) -> String {
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    let mut words = 0;
    for file in files {
        let Some(text) = file.text() else { continue };
        if file.path.ends_with(".md") && !file.path.starts_with("bench/results/") {
            words += text.split_whitespace().count();
        }
        let is_python = file.path.ends_with(".py") || file.path.ends_with(".pyi");
        if !is_python && ![".rs", ".hpp", ".cpp"].iter().any(|end| file.path.ends_with(end)) {
            continue;
        }
        let lines = if is_python { count_python(text) } else { count_code(text) };
        let is_generated = text.lines().next().is_some_and(|line| line.contains(GENERATED));
        let home = match is_generated && file.path.starts_with("cpp/") {
            true => "cpp, generated".to_owned(),
            false => home_of(&file.path),
        };
        let of = crates.entry(home).or_default();
        of.comment += lines.comment;
        match is_test(&file.path) {
            true => of.test += lines.product + lines.test,
            false => {
                of.product += lines.product;
                of.test += lines.test;
            }
        }
    }
    let mut out = String::from("product     test  comment  where\n");
    let mut row = |lines: &Lines, name: &str| {
        out += &format!("{:7}  {:7}  {:7}  {name}\n", lines.product, lines.test, lines.comment);
    };
    let mut product = Lines::default();
    for (name, lines) in &crates {
        row(lines, name);
        if name.starts_with("crates/") || name == "python" {
            product.product += lines.product;
            product.test += lines.test;
            product.comment += lines.comment;
        }
    }
    row(&product, "crates/ and python, in Rust");
    out += &format!("{words} words of documentation, without bench/results\n");
    out
}

/// The crate or folder of a file.
fn home_of(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some(first @ ("crates" | "tests")), Some(second)) => format!("{first}/{second}"),
        // The bindings in Rust, and the package in Python.
        (Some("python"), _) if !path.ends_with(".rs") => "python, in Python".to_owned(),
        (Some(first), _) => first.to_owned(),
        (None, _) => String::new(),
    }
}

fn is_test(path: &str) -> bool {
    let folders = ["tests", "benches", "examples", "fuzz"];
    // The crates below `tests/` are tests too.
    path.split('/').any(|part| folders.contains(&part)) || path.ends_with("/tests.rs")
}

/// Counts the lines of Rust or C++.
fn count_code(text: &str) -> Lines {
    let mut lines = Lines::default();
    // Nesting depth of braces after `#[cfg(test)]`; `None` outside of such a block.
    let mut test_depth: Option<isize> = None;
    let mut in_comment = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if in_comment || line.starts_with("//") || line.starts_with("/*") {
            in_comment = (in_comment || line.starts_with("/*")) && !line.contains("*/");
            lines.comment += 1;
            continue;
        }
        if test_depth.is_none() && line.starts_with("#[cfg(test)]") {
            test_depth = Some(0);
        }
        let Some(depth) = test_depth else {
            lines.product += 1;
            continue;
        };
        lines.test += 1;
        let depth = depth + braces(line);
        let is_over = depth <= 0 && (line.ends_with('}') || line.ends_with(';'));
        test_depth = if is_over { None } else { Some(depth) };
    }
    lines
}

/// Change of the nesting depth by a line; braces in strings are nearly always balanced.
fn braces(line: &str) -> isize {
    line.chars().map(|c| isize::from(c == '{') - isize::from(c == '}')).sum()
}

fn count_python(text: &str) -> Lines {
    let mut lines = Lines::default();
    let mut in_docstring = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let opens = line.starts_with("\"\"\"");
        if in_docstring || opens || line.starts_with('#') {
            let ends = line.ends_with("\"\"\"") && !(opens && line.len() == 3 && !in_docstring);
            in_docstring = (in_docstring || opens) && !ends;
            lines.comment += 1;
        } else {
            lines.product += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn product_test_and_comment_lines_are_distinguished() {
        let text = "//! Page.\n\nfn a() {}\n/* two\nlines */\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(count_code(text), Lines { product: 2, test: 5, comment: 3 });
        let text = "\"\"\"One line.\"\"\"\n\nimport os\n\ndef f():\n    \"\"\"\n    More.\n    \"\"\"\n    # why\n    return 1\n";
        assert_eq!(count_python(text), Lines { product: 3, test: 0, comment: 5 });
    }

    #[test]
    fn headers_of_cpp_are_product_code_and_generated_ones_apart() {
        let files = [
            file("cpp/include/rnet/node.hpp", "// Nodes.\n#pragma once\n\nclass Node;\n"),
            file(
                "cpp/include/rnet/msgs/Twist.hpp",
                "// Written; do not edit.\nstruct A {};\nint x;\n",
            ),
            file("cpp/tests/test_node.cpp", "int main() {}\n"),
        ];
        let table = table(&files);
        assert!(table.contains("      2        1        1  cpp\n"), "{table}");
        assert!(table.contains("      2        0        1  cpp, generated\n"), "{table}");
    }

    #[test]
    fn test_files_are_not_product_code() {
        let files = [
            file("crates/a/src/lib.rs", "fn a() {}\n"),
            file("crates/a/tests/it/b.rs", "fn b() {}\nfn c() {}\n"),
            file("docs/a.md", "three words here\n"),
        ];
        let table = table(&files);
        assert!(table.contains("      1        2        0  crates/a\n"), "{table}");
        assert!(table.ends_with("3 words of documentation, without bench/results\n"), "{table}");
    }
}
