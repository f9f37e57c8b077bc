//! Checks `xtask/claims.tsv`: which test shows which claim of README.md, docs/guarantees.md and docs/limits.md.
//!
//! A line is `page<TAB>quotation<TAB>evidence`. The quotation must occur exactly once in the page, so that a
//! changed sentence is compared with its tests again. The evidence is one or more tests (`path::name`) and
//! reports, scripts or manifests (`EVIDENCE_FILES`), or `- ` and the reason why no test can show it. Each sentence and each
//! table row of a page must share text with a quotation.

use std::ops::Range;

use super::{Texts, is_existing_test};
use crate::Finding;

const LIST: &str = "xtask/claims.tsv";
const PAGES: &[&str] = &["README.md", "docs/guarantees.md", "docs/limits.md"];

/// Checks the list and the pages.
pub fn check(texts: &Texts) -> Vec<Finding> {
    let Some(list) = texts.get(LIST) else { return vec![Finding::new(LIST, "is missing")] };
    let mut pages: Vec<Page> = Vec::new();
    for name in PAGES {
        match texts.get(name) {
            Some(text) => pages.push(Page::read(name, text)),
            None => return vec![Finding::new(*name, "is missing")],
        }
    }
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(list.lines()).filter(|(_, line)| !line.starts_with('#')) {
        let faults = check_line(line, &mut pages, texts);
        findings.extend(faults.into_iter().map(|f| Finding::new(format!("{LIST}:{number}"), f)));
    }
    findings.extend(pages.iter().flat_map(Page::unquoted));
    findings
}

/// Checks a line of the list, and marks its quotation in its page.
fn check_line(line: &str, pages: &mut [Page], texts: &Texts) -> Vec<String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [name, quotation, evidence] = columns[..] else {
        return vec!["is not page<TAB>quotation<TAB>evidence".into()];
    };
    let Some(page) = pages.iter_mut().find(|page| page.name == name) else {
        return vec![format!("`{name}` is not a checked page")];
    };
    let mut faults: Vec<String> = page.quote(quotation).err().into_iter().collect();
    if evidence.starts_with("- ") {
        return faults;
    }
    if evidence.trim().is_empty() || evidence == "-" {
        faults.push("has neither a test nor a reason (`- why`)".into());
    }
    let unknown = evidence.split_whitespace().filter(|item| !is_evidence(item, texts));
    faults.extend(
        unknown.map(|item| format!("`{item}` is neither a test (path::name) nor a report")),
    );
    faults
}

/// Files that show a claim without a test: reports of measurements, scripts that CI runs, and manifests.
const EVIDENCE_FILES: &[&str] = &[
    "bench/results/",
    "scripts/",
    "cpp/test.sh",
    "docs/api/",
    "python/pyproject.toml",
    "Cargo.toml",
];

fn is_evidence(item: &str, texts: &Texts) -> bool {
    let is_file = || {
        texts.contains_key(item)
            && EVIDENCE_FILES
                .iter()
                .any(|place| item.starts_with(place) || item.ends_with("/Cargo.toml"))
    };
    is_existing_test(item, texts) || is_file()
}

/// The text of a page without headings, code blocks, images and table heads.
struct Page<'a> {
    name: &'a str,
    text: String,
    /// Each sentence or table row: its line, and its range in `text`.
    sentences: Vec<(usize, Range<usize>)>,
    quoted: Vec<Range<usize>>,
}

impl<'a> Page<'a> {
    fn read(name: &'a str, source: &str) -> Page<'a> {
        let mut page =
            Page { name, text: String::new(), sentences: Vec::new(), quoted: Vec::new() };
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let (mut fenced, mut continues) = (false, false);
        for (at, line) in lines.iter().enumerate() {
            let is_fence = line.starts_with("```");
            fenced ^= is_fence;
            let is_head = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("|---"));
            let is_skipped = ["#", "![", "|---"].iter().any(|start| line.starts_with(start));
            if fenced || is_fence || line.is_empty() || is_skipped || is_head(at + 1) {
                continues = false;
            } else if line.starts_with('|') {
                page.add(line, at + 1, false);
                continues = false;
            } else {
                continues &= !line.starts_with("- ");
                for word in line.split_whitespace() {
                    page.add(word, at + 1, continues);
                    continues = !word.trim_end_matches(['*', ')']).ends_with('.');
                }
            }
        }
        page
    }

    /// Adds text, to the last sentence or as a new one.
    fn add(&mut self, text: &str, line: usize, continues: bool) {
        let begin = self.text.len();
        self.text.push_str(text);
        match self.sentences.last_mut().filter(|_| continues) {
            Some((_, range)) => range.end = self.text.len(),
            None => self.sentences.push((line, begin..self.text.len())),
        }
        self.text.push(' ');
    }

    fn quote(&mut self, quotation: &str) -> Result<(), String> {
        let found: Vec<usize> = match quotation.trim() {
            "" => Vec::new(),
            _ => self.text.match_indices(quotation).map(|(at, _)| at).collect(),
        };
        let [at] = found[..] else {
            let count = found.len();
            return Err(format!(
                "{} contains \"{quotation}\" {count} times instead of once; compare the new text with the tests",
                self.name
            ));
        };
        self.quoted.push(at..at + quotation.len());
        Ok(())
    }

    /// The sentences that share no text with a quotation.
    fn unquoted(&self) -> Vec<Finding> {
        let is_quoted = |sentence: &Range<usize>| {
            self.quoted.iter().any(|q| q.start < sentence.end && sentence.start < q.end)
        };
        let unquoted = self.sentences.iter().filter(|(_, sentence)| !is_quoted(sentence));
        unquoted
            .map(|(line, sentence)| {
                let text = format!(
                    "{LIST} names no test for \"{}\"",
                    self.text[sentence.clone()].chars().take(60).collect::<String>()
                );
                Finding::new(format!("{}:{line}", self.name), text)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARANTEES: &str = "# Title\n\n- **No loss is silent.** Each is\n  counted (once). Yes.\n\n\
        ```sh\nrun it\n```\n\n| limit | value |\n|---|---:|\n| nodes | 7 |\n";
    const ALL: &str = "docs/guarantees.md\tsilent.** Each is counted\ta/b.rs::it_holds\n\
        docs/guarantees.md\tYes\t- not a claim\n\
        docs/guarantees.md\tnodes | 7\ta/b.py::test_it bench/results/report.md\n";

    fn findings(list: &str, page: &str) -> Vec<String> {
        let texts = Texts::from([
            (LIST, list),
            ("README.md", "# Head\n"),
            ("docs/guarantees.md", page),
            ("docs/limits.md", ""),
            ("a/b.rs", "#[test]\nfn it_holds() {}\n"),
            ("a/b.py", "def test_it():\n    pass\n"),
            ("bench/results/report.md", ""),
        ]);
        check(&texts).into_iter().map(|f| format!("{}: {}", f.place, f.text)).collect()
    }

    #[test]
    fn claims_with_tests_or_reasons_pass() {
        assert_eq!(findings(&format!("# comment\n{ALL}"), GUARANTEES), [""; 0]);
    }

    #[test]
    fn claims_without_a_line_fail() {
        let none = findings("", GUARANTEES);
        let begins = [
            "3: {} \"- **No loss is silent.**\"",
            "3: {} \"Each is counted (once).\"",
            "4: {} \"Yes.\"",
        ];
        let expected = begins.iter().chain(&["12: {} \"| nodes | 7 |\""]).map(|begin| {
            format!("docs/guarantees.md:{begin}")
                .replace("{}", "xtask/claims.tsv names no test for")
        });
        assert_eq!(none, expected.collect::<Vec<_>>());
        let new = findings(ALL, &format!("{GUARANTEES}\n- It never waits.\n"));
        assert_eq!(
            new,
            ["docs/guarantees.md:14: xtask/claims.tsv names no test for \"- It never waits.\""]
        );
    }

    #[test]
    fn changed_and_ambiguous_quotations_fail() {
        let changed = findings(ALL, &GUARANTEES.replace("Each is", "Most are"));
        assert!(
            changed[0].starts_with("xtask/claims.tsv:1: docs/guarantees.md contains"),
            "{changed:?}"
        );
        assert!(changed[0].contains("0 times"), "{changed:?}");
        let twice = findings(ALL, &format!("{GUARANTEES}| nodes | 7 |\n"));
        assert!(twice[0].contains("2 times"), "{twice:?}");
        assert!(
            findings(&format!("{ALL}docs/guarantees.md\t\t- why\n"), GUARANTEES)[0]
                .contains("0 times")
        );
    }

    #[test]
    fn missing_tests_and_reasons_fail() {
        for (evidence, fault) in [
            ("a/b.rs::it", "`a/b.rs::it` is neither"),
            ("a/b.rs::it_holds a/b.rs", "`a/b.rs` is neither"),
            ("gone.md", "`gone.md` is neither"),
            ("README.md", "`README.md` is neither"),
            ("", "has neither a test nor a reason"),
            ("-", "has neither a test nor a reason"),
        ] {
            let list = ALL.replace("- not a claim", evidence);
            let found = findings(&list, GUARANTEES);
            assert!(found[0].starts_with(&format!("xtask/claims.tsv:2: {fault}")), "{found:?}");
        }
    }

    #[test]
    fn malformed_lines_and_missing_files_fail() {
        assert!(findings("docs/guarantees.md\tYes\n", GUARANTEES)[0].contains("is not page<TAB>"));
        assert!(
            findings("docs/other.md\tYes\t- no\n", GUARANTEES)[0].contains("not a checked page")
        );
        assert_eq!(check(&Texts::new()), [Finding::new(LIST, "is missing")]);
        assert_eq!(check(&Texts::from([(LIST, "")])), [Finding::new("README.md", "is missing")]);
    }
}
