//! Checks the conventions of the project, file by file.

use crate::{Finding, SourceFile, manifest, markdown};

const MAX_SOURCE_LINES: usize = 600;
const SOURCE_EXTENSIONS: &[&str] = &["rs", "py", "pyi", "c", "h", "cpp", "hpp"];

// Split, so that this file passes its own check.
const UNFINISHED_MACROS: &[&str] = &[concat!("to", "do!"), concat!("unimpl", "emented!")];
const UNFINISHED_WORDS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];
const SLEEPS: &[&str] = &[
    concat!("thread::", "sleep"),
    concat!("time.", "sleep"),
    concat!("from time import ", "sleep"),
];
const MAPPINGS: &[&str] = &[concat!("mm::", "mmap"), concat!("libc::", "mmap")];
const SAFETY_ALLOWED: &str = concat!("allow(clippy::", "undocumented_unsafe_blocks");

/// Required pages. Without one of them, its checks would pass silently.
const REQUIRED: &[&str] = &["CHANGELOG.md", "Cargo.toml"];

/// Runs all checks on the files; `exists` is called with a path from the root.
pub fn check(files: &[SourceFile], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for required in REQUIRED {
        if !files.iter().any(|f| f.path == *required) {
            findings.push(Finding::new(*required, "is missing"));
        }
    }
    let texts = files.iter().filter_map(|f| f.text().map(|text| (f.path.as_str(), text)));
    for (path, text) in texts {
        findings.extend(check_endings(path, text));
        findings.extend(check_unfinished(path, text));
        if is_source(path) {
            findings.extend(check_length(path, text));
            findings.extend(check_mapping(path, text));
            findings.extend(check_safety(path, text));
        }
        if is_test(path) {
            findings.extend(check_sleeps(path, text));
        }
        if path.ends_with(".md") {
            findings.extend(markdown::check_links(path, text, exists));
            if !path.starts_with("bench/results/") {
                findings.extend(markdown::check_columns(path, text));
            }
        }
        if path.starts_with("docs/decisions/") && !path.ends_with("/README.md") {
            findings.extend(markdown::check_decision(path, text));
        }
        if path == "CHANGELOG.md" {
            findings.extend(markdown::check_changelog(path, text));
        }
        if path == "Cargo.toml" || path.ends_with("/Cargo.toml") {
            findings.extend(manifest::check(path, text));
        }
    }
    findings
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_source(path: &str) -> bool {
    file_name(path).rsplit_once('.').is_some_and(|(_, ext)| SOURCE_EXTENSIONS.contains(&ext))
}

/// Test code: files in a `tests` directory, `tests.rs` and `test_*.py`.
fn is_test(path: &str) -> bool {
    let name = file_name(path);
    let in_tests = path.split('/').rev().skip(1).any(|directory| directory == "tests");
    let called_test = name == "tests.rs" || name.starts_with("test_") && name.ends_with(".py");
    is_source(path) && (in_tests || called_test)
}

/// A finding for each line for which `complaint` returns a text.
fn each_line(path: &str, text: &str, complaint: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    (1..)
        .zip(text.lines())
        .filter_map(|(n, line)| Some(Finding::new(format!("{path}:{n}"), complaint(line)?)))
        .collect()
}

fn check_length(path: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().count();
    let finding = || {
        let text = format!("{lines} lines, more than {MAX_SOURCE_LINES}: split it by concept");
        Finding::new(path, text)
    };
    (lines > MAX_SOURCE_LINES && !is_generated(text)).then(finding).into_iter().collect()
}

/// Whether its first lines mark it as generated.
fn is_generated(text: &str) -> bool {
    text.lines().take(5).any(|line| line.contains("do not edit"))
}

fn check_endings(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = each_line(path, text, |line| {
        (line.trim_end() != line).then(|| "white space at the end of the line".into())
    });
    if text.contains('\r') {
        findings.push(Finding::new(path, "contains carriage returns"));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(Finding::new(path, "does not end with a newline"));
    }
    findings
}

fn check_unfinished(path: &str, text: &str) -> Vec<Finding> {
    each_line(path, text, |line| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let called = UNFINISHED_MACROS.iter().find(|name| line.contains(**name));
        let named = || {
            let mut words = line.split(|c| !is_word(c));
            words.find_map(|word| UNFINISHED_WORDS.iter().find(|name| **name == word))
        };
        let what = called.or_else(named)?;
        Some(format!("`{what}`: finish it, or open an issue that describes what is missing"))
    })
}

fn check_sleeps(path: &str, text: &str) -> Vec<Finding> {
    let comment = if path.ends_with(".py") { "# sleep:" } else { "// sleep:" };
    each_line(path, text, |line| {
        let (code, reason) = line.split_once(comment).unwrap_or((line, ""));
        let sleep = SLEEPS.iter().find(|sleep| code.contains(**sleep))?;
        let text = format!("`{sleep}` in a test: wait on a condition, or write `{comment} reason`");
        reason.trim().is_empty().then_some(text)
    })
}

fn check_mapping(path: &str, text: &str) -> Vec<Finding> {
    if path.starts_with("crates/rnet-shm/") {
        return vec![];
    }
    each_line(path, text, |line| {
        let call = MAPPINGS.iter().find(|call| line.contains(**call))?;
        Some(format!("`{call}`: only rnet-shm maps memory"))
    })
}

/// Clippy reports unsafe blocks without a SAFETY comment; this check prevents disabling that lint.
fn check_safety(path: &str, text: &str) -> Vec<Finding> {
    each_line(path, text, |line| {
        line.contains(SAFETY_ALLOWED).then(|| "the SAFETY lint must not be disabled".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All findings for one file, next to the required files.
    fn findings(path: &str, text: &str) -> Vec<String> {
        let workspace = concat!(
            "[workspace]\n[workspace.lints.clippy]\n",
            "undocumented_unsafe_blocks = \"deny\"\n",
        );
        let files = [("CHANGELOG.md", "## Unreleased\n"), ("Cargo.toml", workspace), (path, text)]
            .map(|(path, text)| SourceFile { path: path.into(), bytes: text.into() });
        check(&files, &|_| false).into_iter().map(|f| format!("{}: {}", f.place, f.text)).collect()
    }

    fn assert_bad(path: &str, text: &str, place: &str) {
        let found = findings(path, text);
        assert_eq!(found.len(), 1, "{path}: {found:?}");
        assert!(found[0].starts_with(place), "{found:?}");
    }

    fn assert_good(path: &str, text: &str) {
        assert_eq!(findings(path, text), [""; 0], "{path}");
    }

    #[test]
    fn long_files_fail() {
        assert_good("a.rs", &"x\n".repeat(MAX_SOURCE_LINES));
        assert_bad("a.rs", &"x\n".repeat(MAX_SOURCE_LINES + 1), "a.rs: 601 lines");
        assert_good("a.json", &"x\n".repeat(MAX_SOURCE_LINES + 1));
        let written = "# Written by a program; do not edit.\n";
        assert_good("a.py", &(written.to_owned() + &"x\n".repeat(MAX_SOURCE_LINES)));
    }

    #[test]
    fn bad_endings_fail() {
        assert_bad("a.md", "one \ntwo\n", "a.md:1");
        assert_bad("a.md", "one\ntwo", "a.md: does not end");
        assert_bad("a.md", "one\r\n", "a.md: contains carriage");
        assert_good("a.md", "");
    }

    #[test]
    fn unfinished_code_fails() {
        for what in UNFINISHED_MACROS.iter().chain(UNFINISHED_WORDS) {
            assert_bad("a.rs", &format!("one\n// {what}(x)\n"), "a.rs:2");
        }
        assert_good("a.rs", "// AUTODOMAIN, a todo list\n");
    }

    #[test]
    fn sleeping_tests_fail_without_a_reason() {
        for (path, comment) in [("crates/a/tests/it/b.rs", "//"), ("test_a.py", "#")] {
            for sleep in SLEEPS {
                assert_bad(path, &format!("{sleep}(1)\n"), path);
                assert_bad(path, &format!("{sleep}(1)  {comment} sleep:\n"), path);
                assert_good(path, &format!("{sleep}(1)  {comment} sleep: a slow peer\n"));
            }
        }
        assert_good("src/a.rs", &format!("{}(1)\n", SLEEPS[0]));
    }

    #[test]
    fn mapping_memory_fails_outside_rnet_shm() {
        for call in MAPPINGS {
            let text = format!("let p = {call}(x);\n");
            assert_bad("crates/rnet/src/a.rs", &text, "crates/rnet/src/a.rs:1");
            assert_good("crates/rnet-shm/src/a.rs", &text);
        }
    }

    #[test]
    fn switching_the_safety_lint_off_fails() {
        assert_bad("a.rs", &format!("#![{SAFETY_ALLOWED})]\n"), "a.rs:1");
    }

    #[test]
    fn manifests_and_pages_are_checked() {
        assert_bad("crates/a/Cargo.toml", "[package]\n", "crates/a/Cargo.toml");
        assert_bad("docs/decisions/0001-a.md", "no date\n", "docs/decisions/0001-a.md");
        assert_bad("docs/a.md", "[x](gone.md)\n", "docs/a.md:1");
        assert_good("docs/decisions/README.md", "the pages\n");
    }

    #[test]
    fn a_missing_changelog_fails() {
        let found = check(&[], &|_| true);
        assert!(found.contains(&Finding::new("CHANGELOG.md", "is missing")), "{found:?}");
    }

    #[test]
    fn binary_files_are_ignored() {
        assert_good("a.png", "\0 \n");
    }
}
