//! Counts of the messages that a subscriber lost, by cause.

use serde::{Deserialize, Serialize};

/// Why a subscriber did not get a message. [`LossCounts`] describes each cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// The writer overwrote messages before the subscriber read them.
    Overrun,
    /// Lost between hosts.
    Link,
    /// The publisher exited or restarted.
    Restart,
    /// The writer had detached the subscriber.
    Detached,
}

impl LossCause {
    /// All causes, in the order of [`LossCounts::parts`] and of the shared layout.
    pub const ALL: [LossCause; 4] = [Self::Overrun, Self::Link, Self::Restart, Self::Detached];

    /// The name in [`LossCounts::parts`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overrun => "overrun",
            Self::Link => "link",
            Self::Restart => "restart",
            Self::Detached => "detached",
        }
    }
}

/// Messages that a subscriber did not get, by cause. Each lost message is in exactly one of these counts.
///
/// ```
/// let lost = rnet_core::LossCounts { overrun: 3, link: 1, ..Default::default() };
/// assert_eq!(lost.total(), 4);
/// assert_eq!(lost.to_string(), "4 lost (overrun 3, link 1)");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct LossCounts {
    /// The writer overwrote messages that this best_effort subscriber had not read.
    pub overrun: u64,
    /// Lost between hosts.
    pub link: u64,
    /// Sent by a publisher that exited or restarted before they were read.
    pub restart: u64,
    /// Sent while a reliable writer had detached this subscriber because it made no progress for too long.
    pub detached: u64,
}

impl From<[u64; 4]> for LossCounts {
    /// Counts in the order of [`LossCause::ALL`].
    fn from([overrun, link, restart, detached]: [u64; 4]) -> Self {
        Self { overrun, link, restart, detached }
    }
}

impl LossCounts {
    /// The sum over all causes. Saturates instead of wrapping.
    pub fn total(&self) -> u64 {
        self.parts().iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// Adds the counts of `other`, cause by cause (for example those of several publishers of one topic).
    /// Saturates.
    pub fn add(&mut self, other: &LossCounts) {
        self.overrun = self.overrun.saturating_add(other.overrun);
        self.link = self.link.saturating_add(other.link);
        self.restart = self.restart.saturating_add(other.restart);
        self.detached = self.detached.saturating_add(other.detached);
    }

    /// The name and count of each cause, in the order in which tools show them.
    pub fn parts(&self) -> [(&'static str, u64); 4] {
        let counts = [self.overrun, self.link, self.restart, self.detached];
        std::array::from_fn(|at| (LossCause::ALL[at].name(), counts[at]))
    }
}

impl std::fmt::Display for LossCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lost", self.total())?;
        let mut sep = " (";
        for (cause, n) in self.parts().into_iter().filter(|(_, n)| *n > 0) {
            write!(f, "{sep}{cause} {n}")?;
            sep = ", ";
        }
        if sep == ", " { write!(f, ")") } else { Ok(()) }
    }
}

/// Backlog of a reader: messages that were sent and not yet read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Backlog {
    /// Number of unread messages. Messages already dropped from the log count until the reader detects the
    /// loss.
    pub messages: u64,
    /// Age of the oldest unread message that the log still holds, in ns.
    pub age_ns: u64,
}

impl Backlog {
    /// Combines the backlogs of several publishers: the sum of the messages and the highest age.
    pub fn add(&mut self, other: &Backlog) {
        self.messages = self.messages.saturating_add(other.messages);
        self.age_ns = self.age_ns.max(other.age_ns);
    }
}

impl std::fmt::Display for Backlog {
    /// `3 messages behind, the oldest 120 ms old`, or `0 messages behind`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.messages {
            0 => write!(f, "0 messages behind"),
            n => {
                let (noun, ms) =
                    (if n == 1 { "message" } else { "messages" }, self.age_ns / 1_000_000);
                write!(f, "{n} {noun} behind, the oldest {ms} ms old")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_saturates_and_text_lists_causes() {
        let mut a = LossCounts::default();
        assert_eq!(a.to_string(), "0 lost");
        a.add(&LossCounts { overrun: u64::MAX, link: 2, restart: 3, detached: 4 });
        assert_eq!(a.total(), u64::MAX);
        assert_eq!(a.parts()[2], ("restart", 3));
    }

    #[test]
    fn backlog_of_several_publishers_is_sum_and_highest_age() {
        let mut a = Backlog { messages: 2, age_ns: 3_500_000 };
        a.add(&Backlog { messages: 5, age_ns: 1_000_000 });
        assert_eq!(a, Backlog { messages: 7, age_ns: 3_500_000 });
        assert_eq!(a.to_string(), "7 messages behind, the oldest 3 ms old");
        assert_eq!(Backlog::default().to_string(), "0 messages behind");
    }
}
