//! The numbers and names that a type reserves, and the numbers for its extensions. Lookups are fast, because
//! a hostile type may have tens of thousands of them.

use prost_reflect::{EnumDescriptor, MessageDescriptor};
use std::collections::HashSet;

#[derive(Default)]
pub(super) struct Reserved {
    /// First number of a range, and the highest number of it and all before it; sorted.
    ranges: Vec<(i64, i64)>,
    names: HashSet<String>,
}

impl Reserved {
    pub(super) fn by_message(message: &MessageDescriptor) -> Self {
        let ranges = message.reserved_ranges();
        let ranges = ranges.map(|range| (i64::from(range.start), i64::from(range.end) - 1));
        Self::new(ranges.collect(), message.reserved_names())
    }

    /// The numbers that extensions of a message may use.
    pub(super) fn for_extensions(message: &MessageDescriptor) -> Self {
        let ranges = message.extension_ranges();
        let ranges = ranges.map(|range| (i64::from(range.start), i64::from(range.end) - 1));
        Self::new(ranges.collect(), std::iter::empty())
    }

    pub(super) fn by_enum(enumeration: &EnumDescriptor) -> Self {
        let ranges = enumeration.reserved_ranges();
        let ranges = ranges.map(|range| (i64::from(*range.start()), i64::from(*range.end())));
        Self::new(ranges.collect(), enumeration.reserved_names())
    }

    fn new<'a>(mut ranges: Vec<(i64, i64)>, names: impl Iterator<Item = &'a str>) -> Self {
        ranges.sort_unstable();
        let mut last = i64::MIN;
        for range in &mut ranges {
            last = last.max(range.1);
            range.1 = last;
        }
        Self { ranges, names: names.map(str::to_owned).collect() }
    }

    pub(super) fn has(&self, number: i64, name: &str) -> bool {
        let behind = self.ranges.partition_point(|(first, _)| *first <= number);
        behind.checked_sub(1).is_some_and(|at| number <= self.ranges[at].1)
            || self.names.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::Reserved;

    #[test]
    fn ranges_may_be_nested() {
        let reserved = Reserved::new(vec![(20, 29), (1, 9), (2, 3), (-5, -5)], ["a"].into_iter());
        let has: Vec<i64> = (-6..=30).filter(|number| reserved.has(*number, "")).collect();
        let right: Vec<i64> = [-5].into_iter().chain(1..=9).chain(20..=29).collect();
        assert_eq!(has, right);
        assert!(reserved.has(100, "a") && !reserved.has(100, "b"));
        assert!(!Reserved::default().has(0, ""));
    }
}
