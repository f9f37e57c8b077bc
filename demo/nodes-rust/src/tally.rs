//! A receiver's own count, from the numbers that the senders wrote into their messages.
//!
//! rnet counts losses too. The demo requires that both agree.

use std::collections::HashMap;

/// Counts of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages received.
    pub received: u64,
    /// Messages missing between those received.
    pub missing: u64,
    /// Messages received twice, or after a later one.
    pub disordered: u64,
    next: HashMap<u64, u64>,
}

impl Tally {
    /// Counts message number `count` of `publisher`.
    pub fn note(&mut self, publisher: u64, count: u64) {
        self.received += 1;
        let next = self.next.entry(publisher).or_insert(count);
        if count < *next {
            self.disordered += 1;
        } else {
            self.missing += count - *next;
            *next = count + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn counts_gaps_and_disorder_by_publisher() {
        let mut tally = Tally::default();
        for (publisher, count) in [(1, 5), (1, 6), (2, 0), (1, 9), (2, 1), (1, 8), (1, 10)] {
            tally.note(publisher, count);
        }
        assert_eq!((tally.received, tally.missing, tally.disordered), (7, 2, 1));
    }
}
