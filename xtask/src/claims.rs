//! Checks the claims of the documentation and the tests that verify them.
//!
//! In docs/design/failure-model.md and docs/design/security.md each table row contains an event, a guarantee, and
//! in its last column the tests that verify it, as `path::name`. A row without a test is an unverified guarantee,
//! and so is one whose test no longer exists. In security.md, `none:` and a reason may replace the tests. For README.md, docs/guarantees.md and docs/limits.md, see [`list`]. [`limits`]
//! compares values.

mod limits;
mod list;

use std::collections::HashMap;

use crate::{Finding, SourceFile};

/// The checked pages.
const PAGES: [&str; 2] = ["docs/design/failure-model.md", THREATS];
/// The page with attacks against which nothing helps.
const THREATS: &str = "docs/design/security.md";

/// Each text file by its path.
type Texts<'a> = HashMap<&'a str, &'a str>;

/// Checks the claims of all pages.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let texts: Texts = files.iter().filter_map(|f| Some((f.path.as_str(), f.text()?))).collect();
    let mut findings: Vec<Finding> =
        PAGES.iter().flat_map(|page| check_page(page, &texts)).collect();
    findings.extend(list::check(&texts));
    findings.extend(limits::check(&texts));
    findings
}

/// Checks that every row of the page's tables contains tests that exist.
fn check_page(path: &str, texts: &Texts) -> Vec<Finding> {
    let Some(page) = texts.get(path) else { return vec![Finding::new(path, "is missing")] };
    let rows: Vec<(usize, &str)> = (1..).zip(page.lines()).filter(|(_, l)| is_row(l)).collect();
    let mut findings = Vec::new();
    if rows.is_empty() {
        findings.push(Finding::new(path, "it has no rows"));
    }
    for (number, row) in rows {
        let place = format!("{path}:{number}");
        let last = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let reason = last.trim().strip_prefix("none: ").filter(|_| path == THREATS);
        // Every second part is between backticks.
        let claims: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if claims.is_empty() && reason.is_none() {
            findings.push(Finding::new(place.clone(), "the row contains no test"));
        }
        let unheld =
            claims.into_iter().filter(|claim| reason.is_none() && !is_existing_test(claim, texts));
        findings.extend(unheld.map(|claim| {
            Finding::new(place.clone(), format!("test `{claim}` does not exist (path::name)"))
        }));
    }
    findings
}

/// A row of a table, except its header and the line below.
fn is_row(line: &str) -> bool {
    line.starts_with('|') && !line.starts_with("|---") && !line.ends_with("| shown by |")
}

/// Whether this names a test that a run executes: in Rust with `#[test]`, in Python by its name, or a fuzz target.
/// A helper function is not evidence.
fn is_existing_test(claim: &str, texts: &Texts) -> bool {
    let Some((path, name)) = claim.rsplit_once("::") else { return false };
    let Some(text) = texts.get(path) else { return false };
    let is_declared = |word: &str, is_test: &dyn Fn(&str) -> bool| {
        let declared = format!("{word}{name}");
        text.match_indices(&declared).any(|(at, _)| {
            let ends =
                !text[at + declared.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
            ends && is_test(&text[..at])
        })
    };
    match path.rsplit_once('.') {
        Some((_, "py")) => {
            name.to_lowercase().starts_with("test")
                && ["def ", "class "].iter().any(|word| is_declared(word, &|_| true))
        }
        _ if path.starts_with("fuzz/") => is_declared("libfuzzer_sys::", &|_| true),
        _ if path.contains("/conformance/") => {
            is_declared("fn ", &|before| has_test_attribute(before) || is_scenario(name, texts))
        }
        _ if claim == LIMITS_CHECK => true,
        _ => is_declared("fn ", &|before| has_test_attribute(before)),
    }
}

/// The scenarios of the conformance suite.
const SCENARIOS: &str = "crates/rnet/tests/it/conformance/behaviours.rs";
/// What `cargo xtask tidy` runs itself.
const LIMITS_CHECK: &str = "xtask/src/claims/limits.rs::check";

/// Whether the list of scenarios, of which a macro makes tests for each pair of languages and processes, has the
/// name.
fn is_scenario(name: &str, texts: &Texts) -> bool {
    texts.get(SCENARIOS).is_some_and(|list| list.contains(name))
}

/// Whether the attributes directly before a function contain `#[test]`.
fn has_test_attribute(before: &str) -> bool {
    let lines =
        before.lines().rev().skip_while(|line| line.trim().is_empty() || line.trim() == "async");
    let mut attributes = lines.take_while(|line| line.trim().starts_with(['#', '/']));
    attributes.any(|line| line.trim() == "#[test]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| what happens | what is guaranteed | shown by |\n|---|---|---|\n";

    fn findings(row: &str) -> Vec<String> {
        findings_on(PAGES[0], row)
    }

    fn findings_on(path: &str, row: &str) -> Vec<String> {
        let page = format!("{HEAD}{row}\n");
        let texts = Texts::from([
            (path, page.as_str()),
            ("a/b.rs", "#[test]\n#[ignore]\nfn it_holds() {}\nfn it_holds_not() {}\n"),
            ("a/b.py", "def test_it():\n    pass\n"),
        ]);
        check_page(path, &texts).into_iter().map(|f| f.text).collect()
    }

    #[test]
    fn rows_whose_tests_exist_pass() {
        assert_eq!(findings("| a | b | `a/b.rs::it_holds`, `a/b.py::test_it` |"), [""; 0]);
    }

    #[test]
    fn rows_without_a_test_fail() {
        assert_eq!(findings("| a | `b` | c |"), ["the row contains no test"]);
        assert_eq!(findings(""), ["it has no rows"]);
    }

    #[test]
    fn a_reason_replaces_tests_among_the_threats_alone() {
        let row = "| a | none | none: no protocol can prevent it |";
        assert_eq!(findings_on(THREATS, row), [""; 0]);
        assert_eq!(findings(row), ["the row contains no test"]);
        assert_eq!(findings_on(THREATS, "| a | b | no test |"), ["the row contains no test"]);
    }

    #[test]
    fn missing_tests_fail() {
        for claim in [
            "a/b.rs::it",
            "a/b.rs::it_fails",
            "a/b.rs::it_holds_not",
            "a/c.rs::it_holds",
            "it_holds",
        ] {
            let text = format!("test `{claim}` does not exist (path::name)");
            assert_eq!(findings(&format!("| a | b | `{claim}` |")), [text]);
        }
    }
}
