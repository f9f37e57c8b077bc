//! Checks Markdown pages: resolvable links, decisions with number and date, an open changelog.

use crate::Finding;

/// Checks that every relative link of a page resolves; `exists` is called with a path from the root.
pub fn check_links(path: &str, text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in link_targets(line) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let resolved = resolve(path, file);
            if !resolved.as_deref().is_some_and(exists) {
                let text = format!("link `{target}` does not resolve");
                findings.push(Finding::new(format!("{path}:{number}"), text));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` and `[name]: target`, outside `code`.
fn link_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    // Every second part between backticks is code.
    let pieces: Vec<&str> = line.split('`').collect();
    // A link text may itself be code, so that "](target)" starts a part: search the even ones.
    for piece in pieces.iter().step_by(2) {
        for rest in piece.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            targets.extend(target.split_whitespace().next());
        }
    }
    if let Some((label, target)) = line.split_once("]: ")
        && label.starts_with('[')
        && !label.starts_with("[^")
    {
        targets.extend(target.split_whitespace().next());
    }
    targets
}

/// Resolves `link` on the page at `path`, relative to the root; `None` if it leaves the repository.
fn resolve(path: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    if link.starts_with('/') {
        parts.clear();
    }
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Longest line of prose in a page, in characters.
const MAX_COLUMNS: usize = 110;

/// Lines of prose must be short enough for side-by-side reviews. Tables, code and lines without spaces may be
/// longer, and so may generated pages under `bench/results/`.
pub fn check_columns(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        let start = line.trim_start();
        fenced ^= start.starts_with("```");
        let free = fenced || start.starts_with('|') || !start.contains(' ');
        if !free && line.chars().count() > MAX_COLUMNS {
            let text = format!("longer than {MAX_COLUMNS} columns");
            findings.push(Finding::new(format!("{path}:{number}"), text));
        }
    }
    findings
}

/// A decision page has the name `<number>-<title>.md` and contains a date (YYYY-MM-DD) near its top.
pub fn check_decision(path: &str, text: &str) -> Vec<Finding> {
    const DATE_WITHIN_LINES: usize = 10;
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut findings = Vec::new();
    let numbered = name.split_once('-').is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    if !numbered {
        findings.push(Finding::new(path, "a decision page must have the name <number>-<title>.md"));
    }
    if !text.lines().take(DATE_WITHIN_LINES).any(has_date) {
        let text = format!("no date (YYYY-MM-DD) in the first {DATE_WITHIN_LINES} lines");
        findings.push(Finding::new(path, text));
    }
    findings
}

fn has_date(line: &str) -> bool {
    let is_date = |w: &[u8]| {
        w.iter().enumerate().all(
            |(i, b)| {
                if i == 4 || i == 7 { *b == b'-' } else { b.is_ascii_digit() }
            },
        )
    };
    line.as_bytes().windows("YYYY-MM-DD".len()).any(is_date)
}

/// The changelog must have a section for unreleased changes.
pub fn check_changelog(path: &str, text: &str) -> Vec<Finding> {
    let open = text.lines().any(|line| line.starts_with("## ") && line.contains("Unreleased"));
    if open { vec![] } else { vec![Finding::new(path, "no `## Unreleased` section")] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_prose_are_short_and_others_may_be_long() {
        let long = "word ".repeat(30);
        let columns = |text: &str| check_columns("a.md", text).len();
        assert_eq!(columns(&format!("{}\n", "x".repeat(200))), 0);
        assert_eq!(columns(&format!("| {long} |\n```\n{long}\n```\n")), 0);
        assert_eq!(columns(&format!("short\n{long}\n- {long}\n")), 2);
        assert_eq!(columns(&"é ".repeat(MAX_COLUMNS / 2)), 0);
    }

    fn broken_links(text: &str) -> usize {
        check_links("docs/guide/a.md", text, &|path| path == "docs/b.md" || path == "README.md")
            .len()
    }

    #[test]
    fn valid_links_pass() {
        assert_eq!(broken_links("see [b](../b.md#part), [`b`](../b.md) and [top](#top)"), 0);
        assert_eq!(broken_links("[root](/README.md \"title\") [web](https://a.b/c)"), 0);
        assert_eq!(broken_links("[b]: ../b.md"), 0);
    }

    #[test]
    fn broken_links_fail() {
        assert_eq!(broken_links("[a](gone.md) and [b](../gone.md)"), 2);
        assert_eq!(broken_links("[`code`](gone.md)"), 1);
        assert_eq!(broken_links("[b]: gone.md"), 1);
        assert_eq!(broken_links("[out](../../../b.md)"), 1);
    }

    #[test]
    fn code_is_not_a_link() {
        assert_eq!(broken_links("`callbacks[i](sample)`"), 0);
        assert_eq!(broken_links("```rust\ncallbacks[i](sample)\n```\n[x](gone.md)"), 1);
    }

    #[test]
    fn a_decision_has_number_and_date() {
        assert_eq!(
            check_decision("docs/decisions/0001-log.md", "# Log\n\n2026-01-31, accepted\n"),
            []
        );
        assert_eq!(check_decision("docs/decisions/log-layout.md", "2026-01-31").len(), 1);
        assert_eq!(check_decision("docs/decisions/0001-log.md", "# Log\nJanuary 2026\n").len(), 1);
    }

    #[test]
    fn a_changelog_is_open() {
        assert_eq!(check_changelog("CHANGELOG.md", "# Changes\n\n## [Unreleased]\n"), []);
        assert_eq!(check_changelog("CHANGELOG.md", "# Changes\n\n## 0.1.0\nUnreleased\n").len(), 1);
    }
}
