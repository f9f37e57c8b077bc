//! The baseline: its file, and the comparison with new counts.
//!
//! The file is a simple subset of TOML, so that Git shows a change of one case as one line. The parser is
//! strict: an ignored line could be a case.

use std::fmt::{self, Display, Write};

/// Maximum growth of a case that passes, inclusive. A call has two threads whose interleaving differs between
/// runs, by about 4 % of the instructions.
pub fn tolerance_percent(case: &str) -> u64 {
    if case.starts_with("call_") { 10 } else { 3 }
}

const HEAD: &str = "\
# Instructions per message in the steady state, counted by callgrind and compared by
# `cargo xtask instructions`; `cargo xtask instructions --accept` rewrites this file.
# What the cases are: instructions.rs. How they are counted: docs/benchmark-method.md.
";
const SECTION: &str = "[instructions_per_message]";

/// Instructions per message, in hundredths: integers compare exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerMessage(u64);

impl PerMessage {
    /// Rounded to the nearest hundredth.
    pub fn of(instructions: u64, messages: u64) -> PerMessage {
        PerMessage((instructions * 100 + messages / 2) / messages)
    }

    fn parse(text: &str) -> Option<PerMessage> {
        let (whole, hundredths) = text.split_once('.')?;
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || hundredths.len() != 2 || !digits(whole) || !digits(hundredths) {
            return None;
        }
        let value = whole.parse::<u64>().ok()?.checked_mul(100)?;
        value.checked_add(hundredths.parse().ok()?).map(PerMessage)
    }

    fn verdict(case: &str, was: PerMessage, is: PerMessage) -> Verdict {
        let change = Change { was, is };
        let (before, now) = (u128::from(was.0), u128::from(is.0));
        let tolerance = u128::from(tolerance_percent(case));
        if now * 100 > before * (100 + tolerance) {
            Verdict::Grew(change)
        } else if now * 100 < before * (100 - tolerance) {
            Verdict::Shrank(change)
        } else {
            Verdict::Same
        }
    }
}

impl Display for PerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:02}", self.0 / 100, self.0 % 100))
    }
}

/// The conditions besides the source that determine the counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Version of the compiler: 1.95.0.
    pub rustc: String,
    /// Target of the compiler.
    pub target: String,
    /// The kernel's clock source, which determines how `rnet-shm` reads the time.
    pub clock: String,
    /// Version of libc, whose memcpy is included in the counts.
    pub libc: String,
}

impl Conditions {
    /// Whether counts of both are comparable: equal target, clock and minor version of the compiler. A patch
    /// release fixes its code generator without changing it. libc may differ: it contributes few
    /// instructions, and the check must also work on a new distribution.
    pub fn compares_with(&self, other: &Conditions) -> bool {
        fn minor(version: &str) -> (Option<&str>, Option<&str>) {
            let mut parts = version.split(['.', '-']);
            (parts.next(), parts.next())
        }
        self.target == other.target
            && self.clock == other.clock
            && minor(&self.rustc) == minor(&other.rustc)
    }
}

impl Conditions {
    /// Each condition by its name in the file.
    fn fields(&mut self) -> [(&'static str, &mut String); 4] {
        [
            ("rustc", &mut self.rustc),
            ("target", &mut self.target),
            ("clock", &mut self.clock),
            ("libc", &mut self.libc),
        ]
    }
}

impl Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rustc {} for {}, clock {}", self.rustc, self.target, self.clock)
    }
}

/// Counts by case, and their conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    pub conditions: Conditions,
    pub counts: Vec<(String, PerMessage)>,
}

impl Baseline {
    fn count(&self, case: &str) -> Option<PerMessage> {
        self.counts.iter().find(|(name, _)| name == case).map(|(_, count)| *count)
    }

    /// The content of the file.
    pub fn render(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for (key, value) in self.conditions.clone().fields() {
            text.push_str(&format!("{key} = \"{value}\"\n"));
        }
        text.push_str(&format!("\n{SECTION}\n"));
        for (case, count) in &self.counts {
            text.push_str(&format!("{case} = {count}\n"));
        }
        text
    }
}

/// Parses the file; the error contains the line.
pub fn parse(text: &str) -> Result<Baseline, String> {
    let mut baseline = Baseline::default();
    let mut in_counts = false;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == SECTION && !in_counts {
            in_counts = true;
            continue;
        }
        let entry = line.split_once(" = ").and_then(|(key, value)| {
            if in_counts {
                let count = PerMessage::parse(value).filter(|count| count.0 > 0)?;
                let is_new = baseline.count(key).is_none();
                is_new.then(|| baseline.counts.push((key.into(), count)))
            } else {
                let mut fields = baseline.conditions.fields().into_iter();
                let (_, field) = fields.find(|(name, field)| *name == key && field.is_empty())?;
                *field = value.strip_prefix('"')?.strip_suffix('"')?.into();
                Some(())
            }
        });
        entry.ok_or_else(|| format!("line {number} is not understood: `{line}`"))?;
    }
    for (name, value) in baseline.conditions.fields() {
        if value.is_empty() {
            return Err(format!("does not contain the {name} of the measurement"));
        }
    }
    if baseline.counts.is_empty() {
        return Err(format!("does not contain counts under {SECTION}"));
    }
    Ok(baseline)
}

/// A count before and now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    was: PerMessage,
    is: PerMessage,
}

impl Change {
    /// In percent of the earlier count.
    fn percent(self) -> f64 {
        (self.is.0 as f64 / self.was.0 as f64 - 1.0) * 100.0
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {} ({:+.2} %)", self.was, self.is, self.percent())
    }
}

/// Result of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Same,
    Grew(Change),
    Shrank(Change),
    /// Counted now, but not in the baseline.
    New,
    /// In the baseline, but not counted now.
    Gone,
}

/// The comparison of two counts.
pub struct Comparison {
    /// Table for display: was, is, change.
    pub table: String,
    /// All cases of both, by name.
    pub verdicts: Vec<(String, Verdict)>,
}

/// Compares case by case.
pub fn compare(was: &Baseline, is: &Baseline) -> Comparison {
    let mut table = format!("{:<16}{:>10}{:>10}{:>11}\n", "instructions", "was", "is", "change");
    let mut verdicts = Vec::new();
    let gone = was.counts.iter().map(|(case, _)| case).filter(|case| is.count(case).is_none());
    for case in is.counts.iter().map(|(case, _)| case).chain(gone) {
        let (before, now) = (was.count(case), is.count(case));
        let shown = |count: Option<PerMessage>| count.map_or("-".into(), |c| c.to_string());
        let (verdict, change) = match (before, now) {
            (Some(was), Some(is)) => {
                let percent = Change { was, is }.percent();
                (PerMessage::verdict(case, was, is), format!("{percent:+.2} %"))
            }
            (None, _) => (Verdict::New, "new".into()),
            (_, None) => (Verdict::Gone, "gone".into()),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{case:<16}{:>10}{:>10}{change:>11}", shown(before), shown(now));
        verdicts.push((case.clone(), verdict));
    }
    Comparison { table, verdicts }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts in hundredths.
    fn with(counts: &[(&str, u64)]) -> Baseline {
        let conditions = Conditions {
            rustc: "1.95.0".into(),
            target: "x86_64-unknown-linux-gnu".into(),
            clock: "tsc".into(),
            libc: "glibc 2.36".into(),
        };
        let counts = counts.iter().map(|(case, n)| ((*case).into(), PerMessage(*n))).collect();
        Baseline { conditions, counts }
    }

    fn verdict(was: u64, is: u64) -> Verdict {
        compare(&with(&[("send", was)]), &with(&[("send", is)])).verdicts[0].1
    }

    #[test]
    fn counts_are_rounded_to_hundredths() {
        assert_eq!(PerMessage::of(389_204, 1000).to_string(), "389.20");
        assert_eq!(PerMessage::of(389_205, 1000).to_string(), "389.21");
        assert_eq!(PerMessage::of(7, 100).to_string(), "0.07");
        assert_eq!(PerMessage::of(0, 3), PerMessage::default());
    }

    #[test]
    fn three_percent_pass_and_a_hundredth_more_does_not() {
        assert_eq!(verdict(10000, 10000), Verdict::Same);
        assert_eq!(verdict(10000, 10300), Verdict::Same);
        assert_eq!(verdict(10000, 9700), Verdict::Same);
        let change = |is| Change { was: PerMessage(10000), is: PerMessage(is) };
        assert_eq!(verdict(10000, 10301), Verdict::Grew(change(10301)));
        assert_eq!(verdict(10000, 9699), Verdict::Shrank(change(9699)));
        assert_eq!(change(10301).to_string(), "100.00 -> 103.01 (+3.01 %)");
        // If a few percent are less than a hundredth, one hundredth fails.
        assert!(matches!(verdict(1, 2), Verdict::Grew(_)));
        assert!(matches!(verdict(u64::MAX, u64::MAX), Verdict::Same));
    }

    #[test]
    fn a_call_has_two_threads_and_may_differ_by_ten_percent() {
        let grew = |case, is| {
            let (was, is) = (with(&[(case, 10000)]), with(&[(case, is)]));
            matches!(compare(&was, &is).verdicts[0].1, Verdict::Grew(_))
        };
        assert!(!grew("call_64", 11000));
        assert!(grew("call_64", 11001));
        assert!(grew("send_64", 11000));
    }

    #[test]
    fn new_and_missing_cases_are_reported() {
        let (was, is) =
            (with(&[("old", 100), ("both", 100)]), with(&[("both", 100), ("new", 100)]));
        let comparison = compare(&was, &is);
        let expected = [("both", Verdict::Same), ("new", Verdict::New), ("old", Verdict::Gone)];
        let expected = expected.map(|(case, verdict)| (case.to_owned(), verdict));
        assert_eq!(comparison.verdicts, expected);
        let row = comparison.table.lines().find(|row| row.starts_with("old")).expect("a row");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["old", "1.00", "-", "gone"]);
    }

    #[test]
    fn file_round_trips() {
        let baseline = with(&[("send", 38920), ("recv_1k", 7)]);
        assert_eq!(parse(&baseline.render()), Ok(baseline));
    }

    #[test]
    fn invalid_line_is_reported() {
        let good = with(&[("send", 38920)]).render();
        let bad = [
            "send = 389.20",
            "recv",
            "recv = many",
            "recv = -1.00",
            "recv = +1.00",
            "recv = 1.0",
            "recv = 1.000",
            "recv = .00",
            "recv = 0.00",
            "recv = 99999999999999999999.00",
            "recv = 1e3",
            "[instructions_per_message]",
            "\u{0}\u{1}",
        ];
        for line in bad {
            let lines = good.lines().count() + 1;
            let error = parse(&format!("{good}{line}\n")).expect_err(line);
            assert!(error.starts_with(&format!("line {lines} is not understood")), "{error}");
        }
        assert!(parse(&good.replace("libc = \"glibc 2.36\"", "libc = glibc")).is_err());
        assert!(parse(&good.replace("libc", "cpu")).is_err());
        assert!(parse(&good.replace("clock = \"tsc\"", "libc = \"musl\"")).is_err());
    }

    #[test]
    fn file_without_counts_or_conditions_is_rejected() {
        let good = with(&[("send", 38920)]).render();
        assert!(parse("").is_err());
        assert!(parse(&good.replace("send = 389.20\n", "")).is_err());
        let error = parse(&good.replace("rustc = \"1.95.0\"\n", "")).expect_err("no rustc");
        assert_eq!(error, "does not contain the rustc of the measurement");
    }

    #[test]
    fn a_patch_release_and_another_libc_are_compared() {
        let kept = with(&[]).conditions;
        let rustc = |version: &str| Conditions { rustc: version.into(), ..kept.clone() };
        assert!(kept.compares_with(&rustc("1.95.1")));
        assert!(!kept.compares_with(&rustc("1.96.0")));
        assert!(!kept.compares_with(&rustc("1.9.0")));
        assert!(!kept.compares_with(&Conditions { target: "aarch64".into(), ..kept.clone() }));
        assert!(!kept.compares_with(&Conditions { clock: "kvm-clock".into(), ..kept.clone() }));
        assert!(kept.compares_with(&Conditions { libc: "glibc 2.41".into(), ..kept.clone() }));
    }
}
