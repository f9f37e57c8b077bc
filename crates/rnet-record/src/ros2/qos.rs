//! Quality of service as rosbag2 writes it beside a topic: YAML, one entry for each publisher.
//!
//! Numbers are those of `rmw`; versions from Jazzy on write words. Both are read, and numbers are written, which all
//! versions read.

use std::fmt::Write as _;
use std::time::Duration;

use rnet::{Durability, Reliability};

use crate::Source;

/// Metadata of a channel: the profiles that its publishers offered.
pub const OFFERED_QOS_KEY: &str = "offered_qos_profiles";

/// What subscribers may keep where nobody says it: the default of ROS 2.
const DEFAULT_DEPTH: u32 = 10;
/// Longest text that is read, in bytes: some hundred publishers.
const MAX_LEN_BYTES: usize = 64 << 10;
/// From this many seconds on a time is without end. Versions write 2147483647 and 9223372036.
const ENDLESS_S: u64 = i32::MAX as u64;

/// What all publishers of a topic offer together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    pub reliability: Reliability,
    pub durability: Durability,
    pub deadline: Option<Duration>,
    pub lifespan: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Profile {
    depth: u32,
    is_reliable: bool,
    is_latched: bool,
    /// Seconds and nanoseconds.
    deadline: (u64, u64),
    lifespan: (u64, u64),
}

/// Reads the profiles. A channel stands for all publishers of its topic, so it keeps what all of them keep, and is
/// reliable if one is. `None` if there is no profile.
pub fn offered(text: &str) -> Option<Offered> {
    let profiles = profiles(text.get(..MAX_LEN_BYTES).unwrap_or(text));
    let latched = profiles.iter().filter(|profile| profile.is_latched);
    // rosbag2 does not know the depth and writes 0: each publisher kept one at least.
    let depth = latched.fold(0_u32, |sum, profile| sum.saturating_add(profile.depth.max(1)));
    let first = profiles.first()?;
    let time = |(s, ns): (u64, u64)| {
        let time = Duration::new(s.min(ENDLESS_S), 0) + Duration::from_nanos(ns);
        (!time.is_zero() && s < ENDLESS_S).then_some(time)
    };
    Some(Offered {
        reliability: match profiles.iter().any(|profile| profile.is_reliable) {
            true => Reliability::Reliable,
            false => Reliability::BestEffort,
        },
        durability: match depth {
            0 => Durability::Volatile,
            depth => Durability::TransientLocal { depth },
        },
        deadline: time(first.deadline),
        lifespan: time(first.lifespan),
    })
}

/// The entries of the list, with the keys that count here.
fn profiles(text: &str) -> Vec<Profile> {
    let mut profiles: Vec<Profile> = Vec::new();
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
        match key {
            "sec" | "nsec" => time(profile, within, key, value),
            _ => within = key,
        }
        // {sec: 1, nsec: 2}
        for part in value.trim_matches(['{', '}']).split(',').filter(|_| value.starts_with('{')) {
            if let Some((key, value)) = part.split_once(':') {
                time(profile, within, key.trim(), value.trim());
            }
        }
        match key {
            "depth" => profile.depth = value.parse().unwrap_or(0),
            "reliability" => profile.is_reliable = matches!(value, "1" | "reliable"),
            "durability" => profile.is_latched = matches!(value, "1" | "transient_local"),
            _ => {}
        }
    }
    profiles
}

fn time(profile: &mut Profile, within: &str, key: &str, value: &str) {
    let time = match within {
        "deadline" => &mut profile.deadline,
        "lifespan" => &mut profile.lifespan,
        _ => return,
    };
    let value = value.parse().unwrap_or(0);
    match key {
        "sec" => time.0 = value,
        "nsec" => time.1 = value,
        _ => {}
    }
}

/// The profile of a publisher, as rosbag2 has it.
pub fn profile(source: &Source) -> String {
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
    fn what_is_written_is_read() {
        for (reliability, durability, deadline) in [
            (Reliability::Reliable, Durability::TransientLocal { depth: 3 }, None),
            (Reliability::BestEffort, Durability::Volatile, Some(Duration::from_millis(1500))),
        ] {
            let source = Source { reliability, durability, deadline, ..Source::default() };
            let expected = Offered { reliability, durability, deadline, lifespan: None };
            assert_eq!(offered(&profile(&source)), Some(expected));
        }
    }

    #[test]
    fn profiles_of_several_publishers_and_versions_are_one() {
        // /tf_static of two publishers, of Humble.
        let one = "- history: 3\n  depth: 0\n  reliability: 1\n  durability: 1\n  deadline:\n    sec: 9223372036\n    \
                   nsec: 854775807\n  lifespan:\n    sec: 9223372036\n    nsec: 854775807\n  liveliness: 1\n";
        let durability = Durability::TransientLocal { depth: 2 };
        let (reliability, deadline) = (Reliability::Reliable, None);
        let both = Offered { reliability, durability, deadline, lifespan: None };
        assert_eq!(offered(&format!("{one}{one}")), Some(both));
        // Of Jazzy.
        let words = "- history: keep_last\n  depth: 5\n  reliability: best_effort\n  durability: volatile\n  \
                     deadline: {sec: 1, nsec: 5}\n  lifespan: {sec: 2147483647, nsec: 4294967295}\n";
        let deadline = Some(Duration::new(1, 5));
        assert_eq!(offered(words), Some(Offered { deadline, ..Offered::default() }));
        assert_eq!((offered(""), offered("durability: 1"), offered("null")), (None, None, None));
    }
}
