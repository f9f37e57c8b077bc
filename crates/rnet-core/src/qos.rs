//! Quality of service, in the words of ROS 2, and which publishers and subscribers fit together.
//!
//! The publisher offers, the subscriber asks. The default is best_effort with the newest few messages: a slow reader must
//! not stop a robot, and must not act on old news. The settings travel as JSON next to the type of a channel, and every
//! field has a default there, so that older and newer nodes read each other's.

use crate::error::{Error, Result};
use crate::limits::{
    DEFAULT_KEEP_LAST, DEFAULT_LARGE_DEPTH, DEFAULT_LOG_LEN_BYTES, DEFAULT_POOL_LIMIT_BYTES,
    MAX_CHUNKS_PER_CHANNEL, MAX_INLINE_LEN_BYTES, MAX_LOG_LEN_BYTES, MIN_LOG_LEN_BYTES,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which lane a topic takes. The lanes share nothing that can queue: not a ring, not a thread, not a network link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Everything that may wait for its turn.
    #[default]
    Bulk,
    /// What nothing may delay: a stop, a fault.
    Urgent,
}

/// Whether a slow reader may miss messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reliability {
    /// The writer never waits; a reader that is too slow misses messages and counts them.
    #[default]
    BestEffort,
    /// The writer does not write over what a reliable reader has not read; see [`OnFull`].
    Reliable,
}

/// What a reliable writer does when a reader holds it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// Wait up to this time, then refuse as [`OnFull::Refuse`] does.
    Wait(Duration),
    /// Fail at once with [`Error::Full`]; the message stays with the caller.
    Refuse,
    /// Go on without a reader that stood still for longer than `stall`; that reader gets [`Error::Detached`].
    Detach {
        /// How long a reader may stand still.
        stall: Duration,
    },
}

impl Default for OnFull {
    /// Wait up to one second.
    fn default() -> Self {
        Self::Wait(Duration::from_secs(1))
    }
}

/// What a publisher keeps for subscribers that come later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Nothing: a subscriber gets what is sent after it joined.
    #[default]
    Volatile,
    /// The last messages, for late joiners.
    TransientLocal {
        /// How many messages.
        depth: u32,
    },
}

/// Which of its unread messages a subscriber still wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The last [`DEFAULT_KEEP_LAST`] for best_effort subscribers, all for reliable ones.
    #[default]
    ByReliability,
    /// This many of each publisher, 1 or more. Older ones are passed over and counted as skipped.
    KeepLast(u32),
    /// All that the publisher's log still holds.
    KeepAll,
}

/// How a subscriber waits for the next message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Look again and again: the shortest latency, one core kept busy.
    Spin,
    /// Spin while it pays, then sleep.
    #[default]
    Adaptive,
    /// Sleep at once: no wasted cycle, the latency of a wake-up.
    Block,
}

/// What a publisher offers.
///
/// ```
/// use rnet_core::{Durability, PublisherQos, Reliability};
/// let qos = PublisherQos {
///     reliability: Reliability::Reliable,
///     durability: Durability::TransientLocal { depth: 1 },
///     ..Default::default()
/// };
/// qos.validate()?;
/// # Ok::<(), rnet_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PublisherQos {
    /// The lane of the topic.
    pub lane: Lane,
    /// Whether reliable subscribers are served.
    pub reliability: Reliability,
    /// What to do when a reliable reader holds the writer back; without meaning for best_effort.
    pub on_full: OnFull,
    /// What late joiners get.
    pub durability: Durability,
    /// How long the log may get, in bytes: a power of two between [`MIN_LOG_LEN_BYTES`] and [`MAX_LOG_LEN_BYTES`]. It takes
    /// [`MIN_LOG_LEN_BYTES`] at first and as much as the traffic and its readers ask for.
    pub log_len_bytes: u64,
    /// Whether the log takes all of its memory when the publisher is made, so that no send asks the system for any.
    pub reserve_log: bool,
    /// How far the pool for large messages may grow, in bytes.
    pub pool_limit_bytes: u64,
    /// How many large messages stay readable, at least: 1 to [`MAX_CHUNKS_PER_CHANNEL`].
    pub large_depth: u32,
}

impl Default for PublisherQos {
    fn default() -> Self {
        Self {
            lane: Lane::default(),
            reliability: Reliability::default(),
            on_full: OnFull::default(),
            durability: Durability::default(),
            log_len_bytes: DEFAULT_LOG_LEN_BYTES,
            reserve_log: false,
            pool_limit_bytes: DEFAULT_POOL_LIMIT_BYTES,
            large_depth: DEFAULT_LARGE_DEPTH,
        }
    }
}

fn bad(why: String) -> Error {
    Error::BadQos { topic: String::new(), why }
}

impl PublisherQos {
    /// How many of the newest messages stay for late joiners.
    pub fn history(&self) -> u64 {
        match self.durability {
            Durability::TransientLocal { depth } => u64::from(depth),
            Durability::Volatile => 0,
        }
    }

    /// How long the log may get: `log_len_bytes`, or longer where the messages that are kept for late joiners could need it.
    /// It takes no more memory than they do.
    ///
    /// # Errors
    /// [`Error::BadQos`] with an empty topic if no log is long enough.
    pub fn log_len_for_history(&self) -> Result<u64> {
        if self.history() == 0 {
            return Ok(self.log_len_bytes);
        }
        // The longest message that stands in the log, with its header; the log gives up a sixteenth of itself at a time.
        let kept = self.history().saturating_mul(MAX_INLINE_LEN_BYTES as u64 + 16);
        let needed = kept.saturating_add(kept / 15).saturating_add(2 * MIN_LOG_LEN_BYTES);
        if needed > MAX_LOG_LEN_BYTES {
            return Err(bad(format!(
                "transient_local keeps {} messages, for which the log may need {needed} bytes, and it has {MAX_LOG_LEN_BYTES} at \
                 most: keep fewer",
                self.history()
            )));
        }
        Ok(needed.next_power_of_two().max(self.log_len_bytes))
    }

    /// Checks the settings against each other and against the limits.
    ///
    /// # Errors
    /// [`Error::BadQos`] with an empty topic (see [`Error::with_topic`]), naming the setting and what is allowed.
    pub fn validate(&self) -> Result<()> {
        let log = self.log_len_bytes;
        if !(MIN_LOG_LEN_BYTES..=MAX_LOG_LEN_BYTES).contains(&log) || !log.is_power_of_two() {
            return Err(bad(format!(
                "log_len_bytes is {log}, and must be a power of two from {MIN_LOG_LEN_BYTES} to {MAX_LOG_LEN_BYTES}"
            )));
        }
        if !(1..=MAX_CHUNKS_PER_CHANNEL as u64).contains(&u64::from(self.large_depth)) {
            return Err(bad(format!(
                "large_depth is {}, and must be 1 to {MAX_CHUNKS_PER_CHANNEL}",
                self.large_depth
            )));
        }
        if let Durability::TransientLocal { depth: 0 } = self.durability {
            return Err(bad("transient_local with depth 0 keeps nothing: name a depth of 1 or more, or use volatile".into()));
        }
        self.log_len_for_history()?;
        match self.on_full {
            OnFull::Detach { stall } if stall.is_zero() => {
                Err(bad("on_full detach with a stall of 0 would detach every reader: name how long one may stand still".into()))
            }
            _ => Ok(()),
        }
    }
}

/// What a subscriber asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscriberQos {
    /// The lane that the publisher must have; `None` follows the publisher.
    pub lane: Option<Lane>,
    /// Whether the publisher must hold back for this subscriber.
    pub reliability: Reliability,
    /// Whether to get the messages that the publisher kept for late joiners.
    pub transient_local: bool,
    /// Which unread messages it still wants.
    pub history: History,
    /// How to wait for the next message.
    pub wait: Wait,
}

impl SubscriberQos {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::BadQos`] with an empty topic (see [`Error::with_topic`]), naming the setting and what is allowed.
    pub fn validate(&self) -> Result<()> {
        if self.history == History::KeepLast(0) {
            return Err(bad(
                "keep_last is 0, and must be 1 or more: nothing would ever be received".into(),
            ));
        }
        Ok(())
    }

    /// How many unread messages of each publisher it wants; `None` for all.
    ///
    /// ```
    /// use rnet_core::{History, Reliability, SubscriberQos};
    /// let best_effort = SubscriberQos::default();
    /// assert_eq!(best_effort.depth(), Some(10));
    /// let reliable = SubscriberQos { reliability: Reliability::Reliable, ..Default::default() };
    /// assert_eq!(reliable.depth(), None);
    /// ```
    pub fn depth(&self) -> Option<u32> {
        match (self.history, self.reliability) {
            (History::KeepLast(depth), _) => Some(depth),
            (History::ByReliability, Reliability::BestEffort) => Some(DEFAULT_KEEP_LAST),
            (History::ByReliability, Reliability::Reliable) | (History::KeepAll, _) => None,
        }
    }

    /// The same settings with the default of the history spelled out, as they are announced.
    #[must_use]
    pub fn resolved(self) -> Self {
        let history = self.depth().map_or(History::KeepAll, History::KeepLast);
        Self { history, ..self }
    }
}

fn lane_name(lane: Lane) -> &'static str {
    match lane {
        Lane::Bulk => "bulk",
        Lane::Urgent => "urgent",
    }
}

/// Whether a publisher offers what a subscriber asks for.
///
/// # Errors
/// Says in plain words what does not fit and which of both must change. Becomes the `why` of
/// [`Error::IncompatibleQos`].
///
/// ```
/// use rnet_core::{PublisherQos, Reliability, SubscriberQos, qos_compatible};
/// let asks = SubscriberQos { reliability: Reliability::Reliable, ..Default::default() };
/// let why = qos_compatible(&PublisherQos::default(), &asks).unwrap_err();
/// assert!(why.contains("make the publisher reliable"));
/// ```
pub fn compatible(
    publisher: &PublisherQos,
    subscriber: &SubscriberQos,
) -> std::result::Result<(), String> {
    if subscriber.reliability == Reliability::Reliable
        && publisher.reliability == Reliability::BestEffort
    {
        return Err("the subscriber asks for reliable and the publisher offers best_effort: \
                    make the publisher reliable, or the subscriber best_effort"
            .into());
    }
    if subscriber.transient_local && publisher.durability == Durability::Volatile {
        return Err(
            "the subscriber asks for transient_local and the publisher keeps nothing (volatile): \
                    make the publisher transient_local, or the subscriber volatile"
                .into(),
        );
    }
    match subscriber.lane {
        Some(lane) if lane != publisher.lane => {
            let (asked, offered) = (lane_name(lane), lane_name(publisher.lane));
            Err(format!(
                "the subscriber asks for the {asked} lane and the publisher uses {offered}: \
                 make the publisher {asked}, or leave the lane of the subscriber open"
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_fit_and_are_valid() {
        PublisherQos::default().validate().unwrap();
        SubscriberQos::default().validate().unwrap();
        compatible(&PublisherQos::default(), &SubscriberQos::default()).unwrap();
        assert_eq!(OnFull::default(), OnFull::Wait(Duration::from_secs(1)));
    }

    #[test]
    fn every_pair_of_settings_follows_the_three_rules() {
        for bits in 0_u32..1 << 7 {
            let on = |i: u32| bits >> i & 1 == 1;
            let rel = |b| if b { Reliability::Reliable } else { Reliability::BestEffort };
            let lane = |b| if b { Lane::Urgent } else { Lane::Bulk };
            let p = PublisherQos {
                reliability: rel(on(0)),
                durability: if on(1) {
                    Durability::TransientLocal { depth: 3 }
                } else {
                    Durability::Volatile
                },
                lane: lane(on(2)),
                ..Default::default()
            };
            let s = SubscriberQos {
                reliability: rel(on(3)),
                transient_local: on(4),
                lane: on(5).then(|| lane(on(6))),
                ..Default::default()
            };
            let fits = (!on(3) || on(0)) && (!on(4) || on(1)) && (!on(5) || on(6) == on(2));
            assert_eq!(compatible(&p, &s).is_ok(), fits, "{p:?} {s:?}");
        }
    }

    #[test]
    fn reasons_name_the_lane() {
        let s = SubscriberQos { lane: Some(Lane::Urgent), ..Default::default() };
        let why = compatible(&PublisherQos::default(), &s).unwrap_err();
        assert!(why.contains("asks for the urgent lane") && why.contains("uses bulk"), "{why}");
    }

    #[test]
    fn senseless_settings_are_refused_by_name() {
        let ok = PublisherQos::default();
        let cases = [
            (PublisherQos { log_len_bytes: 0, ..ok.clone() }, "log_len_bytes"),
            (PublisherQos { log_len_bytes: 3 << 14, ..ok.clone() }, "power of two"),
            (PublisherQos { log_len_bytes: 2 << 30, ..ok.clone() }, "log_len_bytes"),
            (PublisherQos { large_depth: 0, ..ok.clone() }, "large_depth"),
            (PublisherQos { large_depth: 1025, ..ok.clone() }, "large_depth"),
            (
                PublisherQos { durability: Durability::TransientLocal { depth: 0 }, ..ok.clone() },
                "depth 0",
            ),
            (
                PublisherQos { on_full: OnFull::Detach { stall: Duration::ZERO }, ..ok },
                "stall of 0",
            ),
        ];
        for (qos, word) in cases {
            let text = qos.validate().unwrap_err().to_string();
            assert!(text.contains(word), "{text}");
        }
        let nothing = SubscriberQos { history: History::KeepLast(0), ..Default::default() };
        assert!(nothing.validate().is_err());
    }

    #[test]
    fn reliable_subscribers_keep_all_unless_a_depth_is_given() {
        let qos =
            |reliability, history| SubscriberQos { reliability, history, ..Default::default() };
        for (reliability, history, depth) in [
            (Reliability::BestEffort, History::ByReliability, Some(DEFAULT_KEEP_LAST)),
            (Reliability::Reliable, History::ByReliability, None),
            (Reliability::BestEffort, History::KeepAll, None),
            (Reliability::Reliable, History::KeepLast(3), Some(3)),
        ] {
            let qos = qos(reliability, history);
            qos.validate().unwrap();
            assert_eq!((qos.depth(), qos.clone().resolved().depth()), (depth, depth));
            assert_ne!(qos.resolved().history, History::ByReliability);
        }
    }

    #[test]
    fn json_is_snake_case_and_every_field_has_a_default() {
        let qos = PublisherQos {
            on_full: OnFull::Detach { stall: Duration::from_millis(5) },
            ..Default::default()
        };
        let json = serde_json::to_string(&qos).unwrap();
        assert!(
            json.contains("\"best_effort\"") && json.contains("{\"detach\":{\"stall\":"),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<PublisherQos>(&json).unwrap(), qos);
        assert_eq!(serde_json::from_str::<PublisherQos>("{}").unwrap(), PublisherQos::default());
        assert_eq!(
            serde_json::from_str::<SubscriberQos>("{\"newer\":1}").unwrap(),
            SubscriberQos::default()
        );
    }
}
