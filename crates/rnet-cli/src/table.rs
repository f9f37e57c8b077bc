//! Prints tables.

pub use rnet_format::units::{bytes, latency, offset, uptime};

use crate::context::Context;
use crate::failure::Outcome;

/// Maximum width of a table, as far as cutting long words can achieve it. Words are cut on a terminal only.
pub const MAX_COLUMNS: usize = 100;
/// Minimum width of a cut cell.
const MIN_CUT_CHARS: usize = 12;
const GAP: &str = "  ";

/// Prints rows in columns as wide as their widest cell. Cells are left-aligned; a column whose title ends
/// with a blank is right-aligned. In a table that would be too wide, sentences in left-aligned columns take
/// several lines, and on a terminal words are cut in their middle; elsewhere and in the JSON they are
/// complete. Without rows, the titles are omitted.
pub fn print(context: &mut Context, titles: &[&str], rows: &[Vec<String>]) -> Outcome {
    if rows.is_empty() {
        return Ok(());
    }
    let head = titles.iter().map(|title| title.trim_end().to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().cloned()).collect();
    let mut lines = aligned(&all, titles, MAX_COLUMNS, context.on_terminal()).into_iter();
    context.heading(&lines.next().unwrap_or_default())?;
    lines.try_for_each(|line| context.line(format_args!("{line}")))
}

/// Rows in columns without titles.
pub fn lines(rows: &[Vec<String>], max_columns: usize, cuts: bool) -> Vec<String> {
    aligned(rows, &[], max_columns, cuts)
}

fn aligned(rows: &[Vec<String>], titles: &[&str], max_columns: usize, cuts: bool) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let is_right = |i: usize| titles.get(i).is_some_and(|title| title.ends_with(' '));
    let width =
        |i| rows.iter().filter_map(|row| row.get::<usize>(i)).map(|c| c.chars().count()).max();
    let longest_word = |i| {
        let cells = rows.iter().filter_map(|row| row.get::<usize>(i));
        cells.flat_map(|cell| cell.split(' ')).map(|word| word.chars().count()).max().unwrap_or(0)
    };
    let least = |i| if cuts { MIN_CUT_CHARS } else { longest_word(i).max(MIN_CUT_CHARS) };
    let least: Vec<usize> = (0..columns).map(least).collect();
    let mut widths: Vec<usize> = (0..columns).map(|i| width(i).unwrap_or(0)).collect();
    while widths.iter().sum::<usize>() + GAP.len() * columns.saturating_sub(1) > max_columns {
        let longest = (0..columns).filter(|i| !is_right(*i) && widths[*i] > least[*i]);
        match longest.max_by_key(|i| widths[*i]) {
            Some(i) => widths[i] -= 1,
            None => break,
        }
    }
    let mut lines = Vec::new();
    for row in rows {
        let cells: Vec<Vec<String>> =
            row.iter().zip(&widths).map(|(cell, width)| wrapped(cell, *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        lines.extend((0..height).map(|at| {
            let cells = cells.iter().zip(&widths).enumerate().map(|(i, (cell, width))| {
                let cell = cell.get(at).map_or("", String::as_str);
                if is_right(i) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
        }));
    }
    lines
}

/// Wraps a text to lines of at most this many characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let len = |text: &str| text.chars().count();
    if len(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if len(line) + 1 + len(word) <= width => *line = format!("{line} {word}"),
            _ => lines.push(cut(word, width)),
        }
    }
    lines
}

/// The beginning and end of a word that is too long.
fn cut(word: &str, width: usize) -> String {
    let len = word.chars().count();
    if len <= width {
        return word.to_owned();
    }
    let end = width.saturating_sub(1) / 2;
    let head = word.chars().take(width.saturating_sub(1) - end);
    head.chain(['…']).chain(word.chars().skip(len - end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_wide_is_cut_in_its_middle() {
        let row = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        let long = format!("/{}/end", "x".repeat(200));
        let rows = [row(&["A", "N", "B"]), row(&[&long, "12", &long]), row(&["é", "3", "short"])];
        let lines = aligned(&rows, &["A", "N ", "B"], 100, true);
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{lines:#?}");
        assert!(lines[1].starts_with("/xxx") && lines[1].ends_with("x/end"), "{lines:#?}");
        assert_eq!(lines[1].matches('…').count(), 2, "{lines:#?}");
        assert_eq!(aligned(&rows, &[], 100, false)[1].chars().count(), 2 * 205 + 6);
        let sentence = "one two three four five six seven eight nine ten ".repeat(5);
        let lines =
            aligned(&[row(&["A", "B"]), row(&["a", sentence.trim()])], &["A", "B"], 100, false);
        assert!(lines.len() == 4 && lines[1].starts_with("a  one") && lines[2].starts_with("   "));
        let words = lines[1..].iter().flat_map(|line| line.split_whitespace()).skip(1);
        assert!(words.eq(sentence.split_whitespace()), "{lines:#?}");
        // Numbers are never cut, and no cell becomes empty.
        assert_eq!(
            aligned(&rows[1..2], &["A", "N ", "B"], 10, true)[0].chars().count(),
            12 + 6 + 12
        );
    }
}
