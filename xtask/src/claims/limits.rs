//! Compares values in docs/limits.md with the constants that its rows name.

use super::Texts;
use crate::Finding;

const PAGE: &str = "docs/limits.md";
/// The tables whose last column is `` `NAME`, `OTHER` in `file` ``. examples/rust/tests/docs.rs compares the
/// table of `rnet::limits`.
const HEADS: &[&str] =
    &["| limit | value | beyond it | constant |", "| an observer checks | constant |"];

/// Checks that each row contains the values of its constants.
pub fn check(texts: &Texts) -> Vec<Finding> {
    let Some(page) = texts.get(PAGE) else { return vec![Finding::new(PAGE, "is missing")] };
    let mut findings = Vec::new();
    for head in HEADS {
        let lines = (1..).zip(page.lines()).skip_while(|(_, line)| line != head).skip(2);
        let mut rows = lines.take_while(|(_, line)| line.starts_with('|')).peekable();
        if rows.peek().is_none() {
            findings.push(Finding::new(PAGE, format!("has no table `{head}`")));
        }
        let mut path = String::new();
        for (number, row) in rows {
            let faults = check_row(row, &mut path, texts);
            findings
                .extend(faults.into_iter().map(|f| Finding::new(format!("{PAGE}:{number}"), f)));
        }
    }
    findings
}

/// Checks a row; `path` is the file of the row before, for "the same file".
fn check_row(row: &str, path: &mut String, texts: &Texts) -> Vec<String> {
    let Some((shown, source)) = row.trim_end_matches([' ', '|']).rsplit_once('|') else {
        return vec!["is not a row".into()];
    };
    // A constant of `rnet::limits`, or a row without a value.
    let Some((names, file)) = source.split_once(" in ") else { return Vec::new() };
    if !shown.contains(|c: char| c.is_ascii_digit()) {
        return Vec::new();
    }
    match file.trim_matches('`') {
        "the same file" => {}
        file if file.starts_with("crates/") => *path = file.into(),
        file => *path = format!("crates/rnet-net/src/{file}"),
    }
    let Some(text) = texts.get(path.as_str()) else { return vec![format!("no file {path}")] };
    let words = format!(" {} ", shown.replace(',', "").replace(['|', ';'], " "));
    let names = names.split(',').map(|name| name.trim_matches([' ', '`']));
    // The other names are functions.
    let constants = names.filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    let fault = |name: &str| match value(name, text) {
        None => Some(format!("no constant {name} in {path}")),
        Some(value) => (!words.contains(&format!(" {value} ")))
            .then(|| format!("{name} is {value}, which the row does not contain")),
    };
    constants.filter_map(fault).collect()
}

/// The value of `const NAME: T = 16 << 20;` as the page writes it, without commas.
fn value(name: &str, text: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("const {name}: "))?;
    let (_, expression) = rest.split_once(';')?.0.split_once(" = ")?;
    let number = |text: &str| text.replace('_', "").parse::<u64>().ok();
    if let Some(ms) = expression.strip_prefix("Duration::from_millis(") {
        return Some(format!("{} ms", ms.trim_end_matches(')')));
    }
    let value = match expression.split_once(" << ") {
        Some((factor, bits)) => number(factor)? << number(bits)?,
        None => number(expression)?,
    };
    Some(match value {
        86_400 => "a day".into(),
        _ if value >= 1 << 30 => format!("{} GiB", value >> 30),
        _ if value >= 1 << 20 => format!("{} MiB", value >> 20),
        _ => value.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "const MOST: usize = 1 << 16;\npub const LEN: u64 = 16 << 20;\n\
        const S: i64 = 86_400;\nconst PAUSE: Duration = Duration::from_millis(5);\n";

    fn findings(limit: &str, check_at: &str) -> Vec<String> {
        let page = format!("{}\n|---|\n{limit}\n\n{}\n|---|\n{check_at}\n", HEADS[0], HEADS[1]);
        let file = "crates/rnet-net/src/a.rs";
        let texts = Texts::from([(PAGE, page.as_str()), (file, CODE), ("crates/b.rs", CODE)]);
        check(&texts).into_iter().map(|f| f.text).collect()
    }

    const LIMIT: &str =
        "| a | 16 MiB, 65,536; for a day | b | `LEN`, `MOST`, `S`, `Limits::of` in `a.rs` |";
    const CHECK_AT: &str =
        "| after 5 ms | `PAUSE` in `crates/b.rs` |\n| 65,536 | `MOST` in the same file |";

    #[test]
    fn values_of_the_code_pass() {
        assert_eq!(findings(LIMIT, CHECK_AT), [""; 0]);
        assert_eq!(findings("| a | 8192 | b | `MAX` |", "| never | `X` in `c.rs` |"), [""; 0]);
    }

    #[test]
    fn other_values_and_missing_constants_fail() {
        for (row, fault) in [
            (
                "| a | 6 MiB | b | `LEN` in `a.rs` |",
                "LEN is 16 MiB, which the row does not contain",
            ),
            ("| a | 8 | b | `GONE` in `a.rs` |", "no constant GONE in crates/rnet-net/src/a.rs"),
            ("| a | 8 | b | `A` in `b.rs` |", "no file crates/rnet-net/src/b.rs"),
            ("", "has no table `| limit | value | beyond it | constant |`"),
        ] {
            assert_eq!(findings(row, CHECK_AT), [fault]);
        }
        let faults = findings(LIMIT, "| after 50 ms | `PAUSE` in `crates/b.rs` |");
        assert_eq!(faults, ["PAUSE is 5 ms, which the row does not contain"]);
    }
}
