//! Publishers that were seen and not heard, by topic and node.

use std::collections::BTreeMap;

use rnet::inspect::UnheardCause;

/// Names that are kept; publishers beyond these are counted without a name.
const MAX_NAMES: usize = 1000;
/// What stands for a topic or a node that is not known.
const UNKNOWN: &str = "?";

/// Numbers of publishers that were seen and not heard, or not to their end. Nobody knows how many messages they sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unheard {
    counts: BTreeMap<(String, String, UnheardCause), u64>,
}

impl Unheard {
    /// Counts a publisher.
    pub fn add(&mut self, topic: Option<&str>, node: &str, why: UnheardCause) {
        let (topic, node) = match self.counts.len() < MAX_NAMES {
            true => (topic.unwrap_or(UNKNOWN), node),
            false => (UNKNOWN, UNKNOWN),
        };
        *self.counts.entry((topic.to_owned(), node.to_owned(), why)).or_default() += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Topic, node, why, number, for each that has any; `?` is a topic or node that is not known.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, UnheardCause, u64)> {
        self.counts.iter().map(|((topic, node, why), count)| (&**topic, &**node, *why, *count))
    }

    /// As the record at the end of a file, with the number of publishers that were followed since the recording began.
    pub fn to_metadata(&self, followed: u64) -> BTreeMap<String, String> {
        let counts = self.iter().map(|(topic, node, why, count)| {
            (format!("{topic} {node} {}", why.name()), count.to_string())
        });
        let sums = [("total", self.total()), ("followed", followed)];
        counts.chain(sums.map(|(key, n)| (key.to_owned(), n.to_string()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_up_to_a_number_and_counts_are_not_lost() {
        let mut unheard = Unheard::default();
        for n in 0..MAX_NAMES + 5 {
            unheard.add(Some("/scan"), &format!("/n{n}"), UnheardCause::Closed);
        }
        unheard.add(None, "/n0", UnheardCause::Unreadable);
        assert_eq!(unheard.total(), MAX_NAMES as u64 + 6);
        let metadata = unheard.to_metadata(7);
        assert_eq!((&*metadata["? ? closed"], &*metadata["/scan /n0 closed"]), ("5", "1"));
        assert_eq!((&*metadata["? ? unreadable"], &*metadata["followed"]), ("1", "7"));
    }
}
