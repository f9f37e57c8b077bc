//! Tracks the sequence numbers of a publisher in memory proportional to the number of gaps.

use std::collections::BTreeMap;

/// Maximum difference between the times of one message in two files: each part of a recording measures the
/// offset of the wall clock from the monotonic clock again.
const TOLERANCE_NS: u64 = 1_000_000;

/// Seen sequence numbers as runs without gaps, by first number.
#[derive(Debug, Default)]
pub struct SequenceSet {
    runs: BTreeMap<u32, Run>,
    /// Missing numbers between runs that were dropped.
    missing: u64,
}

#[derive(Debug)]
struct Run {
    last: u32,
    /// Send times of the first and the last message. Numbers wrap at 32 bits in a file; times do not.
    from_ns: u64,
    to_ns: u64,
}

impl Run {
    fn has(&self, number: u32, sent_ns: u64) -> bool {
        let from_ns = self.from_ns.saturating_sub(TOLERANCE_NS);
        number <= self.last && (from_ns..=later(self.to_ns)).contains(&sent_ns)
    }
}

fn later(ns: u64) -> u64 {
    ns.saturating_add(TOLERANCE_NS)
}

impl SequenceSet {
    /// Adds a message by its number and its send time. Returns false if it was seen before.
    pub fn add(&mut self, number: u32, sent_ns: u64) -> bool {
        let end = match self.runs.range_mut(..=number).next_back() {
            Some((_, run)) if run.has(number, sent_ns) => return false,
            Some((first, run))
                if run.last.checked_add(1) == Some(number) && run.to_ns <= later(sent_ns) =>
            {
                (run.last, run.to_ns) = (number, run.to_ns.max(sent_ns));
                Some(*first)
            }
            _ => None,
        };
        let first = end.unwrap_or_else(|| {
            self.runs.insert(number, Run { last: number, from_ns: sent_ns, to_ns: sent_ns });
            number
        });
        // The message may have closed a gap.
        let next =
            number.checked_add(1).and_then(|next| self.runs.get(&next).map(|run| (next, run)));
        if let Some((next, run)) = next
            && later(run.from_ns) >= sent_ns
        {
            let (last, to_ns) = (run.last, run.to_ns);
            self.runs.remove(&next);
            if let Some(run) = self.runs.get_mut(&first) {
                (run.last, run.to_ns) = (last, run.to_ns.max(to_ns));
            }
        }
        true
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Drops the run with the lowest numbers, unless it is the only one. Its messages count as new
    /// afterwards.
    pub fn forget_lowest_run(&mut self) {
        if self.runs.len() > 1
            && let Some((_, run)) = self.runs.pop_first()
            && let Some(next) = self.runs.keys().next()
        {
            self.missing += u64::from(next.saturating_sub(run.last).saturating_sub(1));
        }
    }

    /// Number of missing numbers between the seen ones.
    pub fn missing(&self) -> u64 {
        let (Some(first), mut last) = (self.runs.keys().next(), None::<u32>) else { return 0 };
        let (mut sum, mut widest) = (0_u64, 0);
        let mut gap = |len: u32| {
            sum += u64::from(len);
            widest = widest.max(len);
        };
        for (first, run) in &self.runs {
            last.into_iter().for_each(|last| gap(first.saturating_sub(last).saturating_sub(1)));
            last = last.max(Some(run.last));
        }
        // Numbers wrap after the greatest. The widest gap of the circle is the one between the end and the
        // beginning.
        gap((u32::MAX - last.unwrap_or(*first)).saturating_add(*first));
        self.missing + sum - u64::from(widest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_each_number_as_new_once_in_any_order() {
        let mut numbers = SequenceSet::default();
        let mut order: Vec<u32> = (0..1000).map(|n| n * 7 % 1000).collect();
        order.extend(0..1000);
        let new = order.iter().filter(|n| numbers.add(**n, u64::from(**n) * 10)).count();
        assert_eq!((new, numbers.runs.len()), (1000, 1));
        // The same number much later is another message: the file has only the low 32 bits.
        assert!(numbers.add(5, 1 << 40) && !numbers.add(5, 1 << 40));
        assert!(numbers.add(u32::MAX, 1 << 41) && numbers.add(0, 1 << 42));
    }

    #[test]
    fn tolerates_clock_offset_between_files() {
        let mut numbers = SequenceSet::default();
        assert!(numbers.add(1, 10_000_000) && numbers.add(2, 10_000_010));
        // From another file, whose clock offset was measured 5 us earlier: duplicates, and a new one.
        assert!(!numbers.add(1, 9_995_000) && !numbers.add(2, 9_995_010));
        assert!(numbers.add(3, 9_995_020) && !numbers.add(3, 10_000_020));
        assert_eq!(numbers.runs(), 1);
        assert!(numbers.add(1, 12_000_000), "a later message");
    }

    #[test]
    fn counts_missing_numbers_in_any_order() {
        let missing = |all: &[u32]| {
            let mut numbers = SequenceSet::default();
            all.iter().enumerate().for_each(|(at, n)| assert!(numbers.add(*n, at as u64)));
            numbers.missing()
        };
        assert_eq!((missing(&[]), missing(&[7]), missing(&[7, 8, 9])), (0, 0, 0));
        assert_eq!((missing(&[7, 10]), missing(&[10, 7]), missing(&[7, 10, 9])), (2, 2, 1));
        // A number before the first fills no gap.
        assert_eq!(missing(&[5, 8, 4]), 2);
        assert_eq!(missing(&[u32::MAX - 1, 1]), 2);
    }

    #[test]
    fn dropped_runs_keep_their_gaps_missing() {
        let mut numbers = SequenceSet::default();
        for n in 0..100 {
            assert!(numbers.add(n * 3, u64::from(n)));
            if numbers.runs() > 10 {
                numbers.forget_lowest_run();
            }
        }
        assert_eq!((numbers.runs(), numbers.missing()), (10, 99 * 2));
    }
}
