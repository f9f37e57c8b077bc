//! Limits words and names that [LANGUAGE.md] replaces: each may occur at most as often as `xtask/words.tsv`
//! allows.
//!
//! A line of the table is `limit<TAB>word<TAB>replacement`, optionally followed by allowed longer words, each
//! after another tab. A limit above the actual count is a finding, too: therefore limits only decrease.

use crate::{Finding, SourceFile};

/// Path of the table.
const TABLE: &str = "xtask/words.tsv";
const EXTENSIONS: &[&str] = &["rs", "py", "pyi", "ts", "html", "md", "sh", "toml"];

/// One line of the table.
struct Word<'a> {
    limit: usize,
    text: &'a str,
    instead: &'a str,
    good: Vec<&'a str>,
}

/// Counts the words of the table in all files.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let Some(table) = files.iter().find(|f| f.path == TABLE).and_then(SourceFile::text) else {
        return vec![Finding::new(TABLE, "is missing")];
    };
    let texts: Vec<&str> =
        files.iter().filter(|f| is_checked(&f.path)).filter_map(SourceFile::text).collect();
    let lines = (1..).zip(table.lines()).filter(|(_, line)| !line.starts_with('#'));
    lines
        .filter_map(|(n, line)| {
            Some(Finding::new(format!("{TABLE}:{n}"), check_word(line, &texts)?))
        })
        .collect()
}

fn check_word(line: &str, texts: &[&str]) -> Option<String> {
    let Some(Word { limit, text, instead, good }) = parse(line) else {
        return Some("is not limit<TAB>word<TAB>instead".into());
    };
    let all: usize = texts.iter().map(|t| count(t, text)).sum();
    let allowed: usize =
        good.iter().map(|good| texts.iter().map(|t| count(t, good)).sum::<usize>()).sum();
    let found = all - allowed.min(all);
    let more = || format!("`{text}` occurs {found} times, but its limit is {limit}: use {instead}");
    let fewer = || format!("`{text}` occurs {found} times: lower its limit from {limit}");
    match found.cmp(&limit) {
        std::cmp::Ordering::Greater => Some(more()),
        std::cmp::Ordering::Less => Some(fewer()),
        std::cmp::Ordering::Equal => None,
    }
}

fn parse(line: &str) -> Option<Word<'_>> {
    let mut columns = line.split('\t');
    let (limit, text, instead) = (columns.next()?, columns.next()?, columns.next()?);
    Some(Word { limit: limit.parse().ok()?, text, instead, good: columns.collect() })
}

/// Whether a file is checked: sources and pages, without results of the comparison and this module.
fn is_checked(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    EXTENSIONS.contains(&extension)
        && !path.starts_with("bench/results/")
        // Generated from sources that are checked.
        && !path.starts_with("crates/rnet-c/include/")
        && !path.starts_with("crates/rnet-c/abi/")
        && path != "xtask/src/words.rs"
}

/// Number of occurrences of `word` in `text` as a whole word. `_` ends a word; case matters.
fn count(text: &str, word: &str) -> usize {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_whole = |at: usize| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    };
    text.match_indices(word).filter(|(at, _)| is_whole(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(table: &str, text: &str) -> Vec<String> {
        let files = [(TABLE, table), ("docs/a.md", text), ("bench/results/a.md", text)]
            .map(|(path, text)| SourceFile { path: path.into(), bytes: text.into() });
        check(&files).into_iter().map(|f| format!("{}: {}", f.place, f.text)).collect()
    }

    #[test]
    fn counts_above_or_below_the_limit_fail() {
        let text = "anew, renewed, be_anew, is no sensor, is no longer\n";
        assert_eq!(
            findings("# words\n2\tanew\tagain\n1\tis no\tis not a\tis no longer\n", text),
            [""; 0]
        );
        let found = findings("1\tanew\tagain\n", text);
        assert_eq!(
            found,
            ["xtask/words.tsv:1: `anew` occurs 2 times, but its limit is 1: use again"]
        );
        let found = findings("3\tanew\tagain\n", text);
        assert_eq!(found, ["xtask/words.tsv:1: `anew` occurs 2 times: lower its limit from 3"]);
    }

    #[test]
    fn invalid_table_fails() {
        assert_eq!(findings("anew\n", "").len(), 1);
        assert_eq!(check(&[]).len(), 1);
    }
}
