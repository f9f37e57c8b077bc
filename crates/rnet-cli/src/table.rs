//! Columns, and numbers with units.

use std::time::Duration;

use crate::context::Context;
use crate::failure::Outcome;

/// Prints rows in columns as wide as their widest cell; cells are left-aligned, and a column
/// whose title ends with a blank is right-aligned.
pub fn print(context: &mut Context, titles: &[&str], rows: &[Vec<String>]) -> Outcome {
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count());
        cells.chain([titles[i].trim_end().len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let head: Vec<String> = titles.iter().map(|t| t.trim_end().to_owned()).collect();
    for row in std::iter::once(&head).chain(rows) {
        let cells = row.iter().zip(&widths).zip(titles).map(|((cell, width), title)| {
            if title.ends_with(' ') { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        context.line(format_args!("{}", line.trim_end()))?;
    }
    Ok(())
}

/// Rows in columns without titles.
pub fn lines(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|i| width(i).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// `12.3 us`: a latency.
pub fn latency(ns: u64) -> String {
    let ns_f = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns_f / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns_f / 1e6),
        _ => format!("{:.2} s", ns_f / 1e9),
    }
}

/// `1.23 MB`: bytes, in powers of 1000 as ROS 2 prints them.
pub fn bytes(n: f64) -> String {
    match n {
        n if n < 1e3 => format!("{n:.0} B"),
        n if n < 1e6 => format!("{:.2} KB", n / 1e3),
        n if n < 1e9 => format!("{:.2} MB", n / 1e6),
        _ => format!("{:.2} GB", n / 1e9),
    }
}

/// `3 d 4 h`, `5 min 6 s`: the two largest units.
pub fn uptime(time: Duration) -> String {
    let s = time.as_secs();
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..86400 => format!("{} h {} min", s / 3600, s / 60 % 60),
        _ => format!("{} d {} h", s / 86400, s / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(latency(999), "999 ns");
        assert_eq!(latency(12_340), "12.3 us");
        assert_eq!(latency(5_000_000_000), "5.00 s");
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(bytes(1.5e6), "1.50 MB");
        assert_eq!(uptime(Duration::from_secs(59)), "59 s");
        assert_eq!(uptime(Duration::from_secs(3_725)), "1 h 2 min");
    }
}
