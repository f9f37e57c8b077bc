//! Which messages of a publisher were met, in memory that grows with their gaps and not with their number.

use std::collections::BTreeMap;

/// So far apart are the times of one message at most in two files: each part of a recording measures anew by how much the
/// wall clock is ahead of the monotonic one.
const TOLERANCE_NS: u64 = 1_000_000;

/// Numbers that were met, in runs without gaps, by the first of each.
#[derive(Debug, Default)]
pub struct SequenceSet {
    runs: BTreeMap<u32, Run>,
    /// Numbers that were not met between runs that were forgotten.
    missing: u64,
}

#[derive(Debug)]
struct Run {
    last: u32,
    /// When the first and the last were sent. Numbers have 32 bits in a file and begin anew; times do not.
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
    /// Notes a message by its number and the time when it was sent. False if it was met before.
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
        // It may have closed a gap.
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

    /// Runs that are kept.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Forgets the run with the lowest numbers, if it is not the only one. A message of it is new from then on.
    pub fn forget_lowest_run(&mut self) {
        if self.runs.len() > 1
            && let Some((_, run)) = self.runs.pop_first()
            && let Some(next) = self.runs.keys().next()
        {
            self.missing += u64::from(next.saturating_sub(run.last).saturating_sub(1));
        }
    }

    /// Numbers between those that were met which were not.
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
        // Numbers begin anew behind the greatest. The widest gap of that circle is the one from the end to the beginning.
        gap((u32::MAX - last.unwrap_or(*first)).saturating_add(*first));
        self.missing + sum - u64::from(widest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_in_whatever_order_and_gaps_that_close_cost_nothing() {
        let mut numbers = SequenceSet::default();
        let mut order: Vec<u32> = (0..1000).map(|n| n * 7 % 1000).collect();
        order.extend(0..1000);
        let new = order.iter().filter(|n| numbers.add(**n, u64::from(**n) * 10)).count();
        assert_eq!((new, numbers.runs.len()), (1000, 1));
        // The same number so much later is another message: the file has the low 32 bits.
        assert!(numbers.add(5, 1 << 40) && !numbers.add(5, 1 << 40));
        assert!(numbers.add(u32::MAX, 1 << 41) && numbers.add(0, 1 << 42));
    }

    #[test]
    fn times_of_one_message_differ_from_file_to_file_by_the_measure_of_the_clock() {
        let mut numbers = SequenceSet::default();
        assert!(numbers.add(1, 10_000_000) && numbers.add(2, 10_000_010));
        // Of another file, whose clock was measured 5 us earlier: again, and one that only it has.
        assert!(!numbers.add(1, 9_995_000) && !numbers.add(2, 9_995_010));
        assert!(numbers.add(3, 9_995_020) && !numbers.add(3, 10_000_020));
        assert_eq!(numbers.runs(), 1);
        assert!(numbers.add(1, 12_000_000), "it is another one");
    }

    #[test]
    fn what_is_missing_is_between_what_was_met_in_whatever_order_it_came() {
        let missing = |all: &[u32]| {
            let mut numbers = SequenceSet::default();
            all.iter().enumerate().for_each(|(at, n)| assert!(numbers.add(*n, at as u64)));
            numbers.missing()
        };
        assert_eq!((missing(&[]), missing(&[7]), missing(&[7, 8, 9])), (0, 0, 0));
        assert_eq!((missing(&[7, 10]), missing(&[10, 7]), missing(&[7, 10, 9])), (2, 2, 1));
        // One before the first fills no gap.
        assert_eq!(missing(&[5, 8, 4]), 2);
        assert_eq!(missing(&[u32::MAX - 1, 1]), 2);
    }

    #[test]
    fn what_is_forgotten_still_counts_as_missing() {
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
