//! Quality of service in the format of rosbag2: YAML, one entry per publisher.
//!
//! Older versions write the numbers of `rmw`; Jazzy and later write words. This module reads both, and writes
//! numbers, which all versions read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use rnet::{Durability, Reliability};

use crate::Source;

/// Metadata of a channel: the profiles offered by its publishers.
pub const OFFERED_QOS_KEY: &str = "offered_qos_profiles";

/// Depth of a profile without one: the default of ROS 2.
const DEFAULT_DEPTH: u32 = 10;
/// Maximum length of the text, in bytes: about a hundred publishers.
const MAX_LEN_BYTES: usize = 64 << 10;
/// A time of at least this many seconds is infinite. Versions write 2147483647 or 9223372036.
const INFINITE_S: u64 = i32::MAX as u64;

/// The combined offer of all publishers of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferedQos {
    pub reliability: Reliability,
    pub durability: Durability,
    pub deadline: Option<Duration>,
    pub lifespan: Option<Duration>,
}

/// The values of a profile by key; parts of times have a dotted key: `deadline.sec`.
type Profile<'a> = BTreeMap<String, &'a str>;

/// Parses the profiles. A channel represents all publishers of its topic, so their depths add up, and it is
/// reliable if one of them is. `None` without a profile.
pub fn parse_offered_qos(text: &str) -> Option<OfferedQos> {
    let profiles = profiles(text.get(..MAX_LEN_BYTES).unwrap_or(text));
    let number = |of: &Profile<'_>, key: &str| of.get(key)?.parse::<u64>().ok();
    let is = |of: &Profile<'_>, key: &str, words: [&str; 2]| {
        of.get(key).is_some_and(|value| words.contains(value))
    };
    let latched = profiles.iter().filter(|of| is(of, "durability", ["1", "transient_local"]));
    // rosbag2 does not know the depth and writes 0: each publisher kept at least one message.
    let depths = latched.map(|of| number(of, "depth").unwrap_or(0).clamp(1, u32::MAX.into()));
    let depth = depths.fold(0_u32, |sum, depth| sum.saturating_add(depth as u32));
    let first = profiles.first()?;
    let time = |of: &str| {
        let [s, ns] = ["sec", "nsec"].map(|key| number(first, &format!("{of}.{key}")).unwrap_or(0));
        let time = Duration::new(s.min(INFINITE_S), 0) + Duration::from_nanos(ns);
        (!time.is_zero() && s < INFINITE_S).then_some(time)
    };
    Some(OfferedQos {
        reliability: match profiles.iter().any(|of| is(of, "reliability", ["1", "reliable"])) {
            true => Reliability::Reliable,
            false => Reliability::BestEffort,
        },
        durability: match depth {
            0 => Durability::Volatile,
            depth => Durability::TransientLocal { depth },
        },
        deadline: time("deadline"),
        lifespan: time("lifespan"),
    })
}

/// The entries of the list.
fn profiles(text: &str) -> Vec<Profile<'_>> {
    let mut profiles: Vec<Profile<'_>> = Vec::new();
    let mut within = "";
    for line in text.lines() {
        let line = line.trim();
        let line = match line.strip_prefix('-') {
            Some(rest) => {
                profiles.push(Profile::default());
                rest.trim()
            }
            None => line,
        };
        let (Some(profile), Some((key, value))) = (profiles.last_mut(), line.split_once(':'))
        else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if ["sec", "nsec"].contains(&key) {
            profile.insert(format!("{within}.{key}"), value);
            continue;
        }
        within = key;
        profile.insert(key.to_owned(), value);
        // {sec: 1, nsec: 2}
        let inline = value.strip_prefix('{').unwrap_or_default().trim_end_matches('}');
        for (inner, value) in inline.split(',').filter_map(|part| part.split_once(':')) {
            profile.insert(format!("{key}.{}", inner.trim()), value.trim());
        }
    }
    profiles
}

/// The profile of a publisher, in the format of rosbag2.
pub fn format_profile(source: &Source) -> String {
    let (durability, depth) = match source.durability {
        Durability::TransientLocal { depth } => (1, depth),
        Durability::Volatile => (2, DEFAULT_DEPTH),
    };
    let reliability = if source.reliability == Reliability::Reliable { 1 } else { 2 };
    let mut text = format!(
        "- history: 1\n  depth: {depth}\n  reliability: {reliability}\n  durability: {durability}\n"
    );
    let mut time = |name: &str, time: Option<Duration>| {
        let (s, ns) =
            time.map_or((9_223_372_036, 854_775_807), |t| (t.as_secs(), t.subsec_nanos()));
        // Writing to a String cannot fail.
        let _ = write!(text, "  {name}:\n    sec: {s}\n    nsec: {ns}\n");
    };
    time("deadline", source.deadline);
    time("lifespan", source.lifespan);
    time("liveliness_lease_duration", None);
    text.push_str("  liveliness: 1\n  avoid_ros_namespace_conventions: false");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_written_profile() {
        for (reliability, durability, deadline) in [
            (Reliability::Reliable, Durability::TransientLocal { depth: 3 }, None),
            (Reliability::BestEffort, Durability::Volatile, Some(Duration::from_millis(1500))),
        ] {
            let source = Source { reliability, durability, deadline, ..Source::default() };
            let expected = OfferedQos { reliability, durability, deadline, lifespan: None };
            assert_eq!(parse_offered_qos(&format_profile(&source)), Some(expected));
        }
    }

    #[test]
    fn combines_profiles_of_several_publishers_and_versions() {
        // /tf_static of two publishers, from Humble.
        let one = "- history: 3\n  depth: 0\n  reliability: 1\n  durability: 1\n  deadline:\n    sec: 9223372036\n    \
                   nsec: 854775807\n  lifespan:\n    sec: 9223372036\n    nsec: 854775807\n  liveliness: 1\n";
        let durability = Durability::TransientLocal { depth: 2 };
        let (reliability, deadline) = (Reliability::Reliable, None);
        let both = OfferedQos { reliability, durability, deadline, lifespan: None };
        assert_eq!(parse_offered_qos(&format!("{one}{one}")), Some(both));
        // From Jazzy.
        let words = "- history: keep_last\n  depth: 5\n  reliability: best_effort\n  durability: volatile\n  \
                     deadline: {sec: 1, nsec: 5}\n  lifespan: {sec: 2147483647, nsec: 4294967295}\n";
        let deadline = Some(Duration::new(1, 5));
        assert_eq!(
            parse_offered_qos(words),
            Some(OfferedQos { deadline, ..OfferedQos::default() })
        );
        assert_eq!(
            (parse_offered_qos(""), parse_offered_qos("durability: 1"), parse_offered_qos("null")),
            (None, None, None)
        );
    }
}
