//! Parses the output of callgrind, without compression of names and positions.
//!
//! `fl=`, `fi=` and `fe=` start the lines of a file (a function has lines of other files if code was
//! inlined), `fn=` starts a function, and `12 5` means that line 12 executed five instructions. The line
//! after `calls=` is the cost of the callee, which has separate lines. Valgrind's manual describes the format
//! in "Callgrind Format Specification".

use std::collections::BTreeMap;

/// Instruction counts and their locations.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Total count.
    pub total: u64,
    /// By function, callees excluded.
    pub by_function: BTreeMap<String, u64>,
    /// By file and line.
    pub by_line: BTreeMap<(String, usize), u64>,
}

impl Profile {
    /// The difference from `less`; `None` if the total is not higher.
    pub fn minus(mut self, less: &Profile) -> Option<Profile> {
        self.total = self.total.checked_sub(less.total).filter(|more| *more > 0)?;
        subtract(&mut self.by_function, &less.by_function);
        subtract(&mut self.by_line, &less.by_line);
        Some(self)
    }
}

fn subtract<K: Ord>(from: &mut BTreeMap<K, u64>, less: &BTreeMap<K, u64>) {
    for (key, count) in less {
        if let Some(left) = from.get_mut(key) {
            *left = left.saturating_sub(*count);
        }
    }
}

/// The entries, the greatest first.
pub fn ranked<K: Ord>(counts: &BTreeMap<K, u64>) -> Vec<(&K, u64)> {
    let mut entries: Vec<_> = counts.iter().map(|(key, count)| (key, *count)).collect();
    entries.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    entries
}

/// Parses a profile; the error states the fault.
pub fn parse(text: &str) -> Result<Profile, String> {
    let mut profile = Profile::default();
    let mut total = None;
    let (mut file, mut function) = (String::new(), String::new());
    let mut of_callee = false;
    for (number, line) in (1..).zip(text.lines()) {
        let bad = || format!("line {number} is not understood: `{line}`");
        let entry = line.split_once('=');
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            let (at, count) = line.split_once(' ').ok_or_else(bad)?;
            let at: usize = at.parse().map_err(|_| bad())?;
            let count: u64 = count.parse().map_err(|_| bad())?;
            if !std::mem::take(&mut of_callee) {
                *profile.by_function.entry(function.clone()).or_default() += count;
                *profile.by_line.entry((file.clone(), at)).or_default() += count;
            }
        } else if let Some((key, value)) = entry.filter(|(key, _)| !key.contains(':')) {
            match key {
                "fl" | "fi" | "fe" => value.clone_into(&mut file),
                "fn" => value.clone_into(&mut function),
                "calls" => of_callee = true,
                _ => {}
            }
        } else if let Some((header, value)) = line.split_once(": ") {
            match header {
                "events" if value.trim() != "Ir" => return Err(bad()),
                "positions" if value.trim() != "line" => return Err(bad()),
                "totals" => total = Some(value.trim().parse::<u64>().map_err(|_| bad())?),
                _ => {}
            }
        }
    }
    profile.total = total.ok_or("callgrind wrote no totals")?;
    if profile.total == 0 {
        return Err("callgrind counted nothing: the function to count was not found".into());
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
cmd: program a=b
positions: line
events: Ir
summary: 130

ob=/target/instructions
fl=src/send.rs
fn=<T: Send>::send
10 5
fi=src/ring.rs
7 20
fe=src/send.rs
10 1
cob=/lib/libc.so
cfi=memmove.S
cfn=memcpy
calls=2 44
11 104

ob=/lib/libc.so
fl=memmove.S
fn=memcpy
44 104

totals: 130
";

    #[test]
    fn instructions_are_counted_once_at_their_location() {
        let profile = parse(SAMPLE).expect("well formed");
        assert_eq!(profile.total, 130);
        let functions: Vec<_> = ranked(&profile.by_function);
        assert_eq!(functions, [(&"memcpy".to_owned(), 104), (&"<T: Send>::send".to_owned(), 26)]);
        assert_eq!(profile.by_line[&("src/ring.rs".to_owned(), 7)], 20);
        assert_eq!(profile.by_line[&("src/send.rs".to_owned(), 10)], 6);
        assert_eq!(profile.by_line.values().sum::<u64>(), profile.total);
    }

    #[test]
    fn difference_is_computed_per_location() {
        let more = SAMPLE.replace("7 20", "7 50").replace("totals: 130", "totals: 160");
        let (less, more) = (parse(SAMPLE).expect("good"), parse(&more).expect("good"));
        let difference = more.minus(&less).expect("it has more");
        assert_eq!(difference.total, 30);
        assert_eq!(difference.by_function["<T: Send>::send"], 30);
        assert_eq!(difference.by_function["memcpy"], 0);
        assert_eq!(parse(SAMPLE).expect("good").minus(&less), None);
    }

    #[test]
    fn invalid_profile_is_rejected() {
        assert_eq!(parse("").expect_err("empty"), "callgrind wrote no totals");
        assert!(parse(&SAMPLE.replace("totals: 130", "totals: many")).is_err());
        assert!(parse(&SAMPLE.replace("totals: 130", "totals: 0")).is_err());
        assert!(parse(&SAMPLE.replace("events: Ir", "events: Ir Dr Dw")).is_err());
        assert!(parse(&SAMPLE.replace("positions: line", "positions: instr line")).is_err());
        assert!(parse(&SAMPLE.replace("7 20", "7 20 3")).is_err());
        assert!(parse(&SAMPLE.replace("7 20", "7")).is_err());
        assert!(parse(&SAMPLE.replace("7 20", "0x7 20")).is_err());
    }
}
