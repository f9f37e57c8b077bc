//! Which messages of a publisher were met, in memory that grows with their gaps and not with their number.

use std::collections::BTreeMap;

/// Numbers that were met, in runs without gaps, by the first of each.
#[derive(Debug, Default)]
pub struct Numbers {
    runs: BTreeMap<u32, Run>,
}

#[derive(Debug)]
struct Run {
    last: u32,
    /// When the first and the last were sent. Numbers have 32 bits in a file and begin anew; times do not.
    from_ns: u64,
    to_ns: u64,
}

impl Numbers {
    /// Notes a message by its number and the time when it was sent. False if it was met before.
    pub fn add(&mut self, number: u32, sent_ns: u64) -> bool {
        let end = match self.runs.range_mut(..=number).next_back() {
            Some((_, run))
                if number <= run.last && (run.from_ns..=run.to_ns).contains(&sent_ns) =>
            {
                return false;
            }
            Some((first, run))
                if run.last.checked_add(1) == Some(number) && run.to_ns <= sent_ns =>
            {
                (run.last, run.to_ns) = (number, sent_ns);
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
            && run.from_ns >= sent_ns
        {
            let (last, to_ns) = (run.last, run.to_ns);
            self.runs.remove(&next);
            if let Some(run) = self.runs.get_mut(&first) {
                (run.last, run.to_ns) = (last, to_ns);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_in_whatever_order_and_gaps_that_close_cost_nothing() {
        let mut numbers = Numbers::default();
        let mut order: Vec<u32> = (0..1000).map(|n| n * 7 % 1000).collect();
        order.extend(0..1000);
        let new = order.iter().filter(|n| numbers.add(**n, u64::from(**n) * 10)).count();
        assert_eq!((new, numbers.runs.len()), (1000, 1));
        // The same number so much later is another message: the file has the low 32 bits.
        assert!(numbers.add(5, 1 << 40) && !numbers.add(5, 1 << 40));
        assert!(numbers.add(u32::MAX, 1 << 41) && numbers.add(0, 1 << 42));
    }
}
