//! Quality of service in the terms of ROS 2, and the compatibility of publishers and subscribers.
//!
//! The publisher offers, the subscriber requests. The default is best_effort with the newest few messages: a
//! slow reader must not stop a robot and must not act on stale data. The settings travel as JSON next to the
//! type of a channel. Each field has a default there, so that older and newer nodes can read each other's
//! settings.

use crate::error::{Error, Result};
use crate::limits::{
    DEFAULT_KEEP_LAST, DEFAULT_LARGE_DEPTH, DEFAULT_LOG_LEN_BYTES, DEFAULT_POOL_LIMIT_BYTES,
    MAX_CHUNKS_PER_CHANNEL, MAX_INLINE_LEN_BYTES, MAX_LOG_LEN_BYTES, MIN_LOG_LEN_BYTES, MIN_PERIOD,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The lane of a topic. Lanes share no ring, thread or network link that could queue messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Normal traffic.
    #[default]
    Bulk,
    /// Traffic that must not be delayed: a stop, a fault.
    Urgent,
}

/// Whether a slow reader may miss messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reliability {
    /// The writer never waits; a reader that is too slow misses messages and counts them.
    #[default]
    BestEffort,
    /// The writer does not overwrite what a reliable reader has not read; see [`OnFull`].
    Reliable,
}

/// What a reliable writer does if the space it needs still holds messages that a reader has not read.
///
/// A writer that waits or detaches also slows down for large messages of the bulk lane. It waits up to 20 ms
/// before such a message if a reader is behind by more than `large_depth` of them and 16 MiB and falls back
/// further, until the reader has read half of that. Publisher and reader then use the same memory again. If
/// the reader reads less than 100 MiB/s meanwhile, the publisher does not wait for it again until it has read
/// everything that was unread at that time.
///
/// Subscribers on other hosts count as well. A writer that waits or refuses does so while large messages of
/// more than 4 MiB wait to cross to another host, or while a subscriber there has more than 16 MiB of them to
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// Wait up to this time, then fail as with [`OnFull::Refuse`].
    Wait(Duration),
    /// Fail immediately with [`Error::Full`]; the caller keeps the message.
    Refuse,
    /// Continue without a reader that made no progress for longer than `stall`; that reader gets
    /// [`Error::Detached`].
    Detach {
        /// Maximum time without progress of a reader.
        stall: Duration,
    },
}

impl Default for OnFull {
    /// Waits up to one second.
    fn default() -> Self {
        Self::Wait(Duration::from_secs(1))
    }
}

/// The messages that a publisher keeps for late subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// None: a subscriber gets only messages sent after it joined.
    #[default]
    Volatile,
    /// The last messages, for late joiners.
    TransientLocal {
        /// Number of messages.
        depth: u32,
    },
}

/// The unread messages that a subscriber keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The last [`DEFAULT_KEEP_LAST`] for best_effort subscribers, all for reliable ones.
    #[default]
    ByReliability,
    /// This number of messages per publisher, 1 or more. Older ones are skipped and counted.
    KeepLast(u32),
    /// All messages that the publisher's log still holds.
    KeepAll,
}

/// How a publisher shows that it is alive. For a subscriber: the minimum that it requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveliness {
    /// The publisher is alive while its process exists, as reported by the kernel. A stopped or hung process
    /// is alive.
    #[default]
    Automatic,
    /// The publisher is alive if it sends, or asserts its liveliness, at least once per lease.
    ManualByTopic {
        /// The longest time between two assertions, [`MIN_PERIOD`] or more.
        lease: Duration,
    },
}

/// How a subscriber waits for the next message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Poll continuously: the lowest latency, one busy core.
    Spin,
    /// Spin for a short adaptive time, then sleep.
    #[default]
    Adaptive,
    /// Sleep immediately: no busy cycles, the latency of a wake-up.
    Block,
}

/// The quality of service that a publisher offers.
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
    /// Whether the publisher serves reliable subscribers.
    pub reliability: Reliability,
    /// Behaviour of a reliable writer when a reader is full; ignored for best_effort.
    pub on_full: OnFull,
    /// The messages that late subscribers receive.
    pub durability: Durability,
    /// Maximum log length, in bytes: a power of two between [`MIN_LOG_LEN_BYTES`] and [`MAX_LOG_LEN_BYTES`].
    /// The log starts at [`MIN_LOG_LEN_BYTES`] and grows with the traffic and its readers.
    pub log_len_bytes: u64,
    /// Whether the publisher allocates all memory of the log on creation, so that a send never allocates.
    pub reserve_log: bool,
    /// Maximum size of the pool for large messages, in bytes.
    pub pool_limit_bytes: u64,
    /// Minimum number of large messages that stay readable: 1 to [`MAX_CHUNKS_PER_CHANNEL`].
    pub large_depth: u32,
    /// The longest time between two messages, [`MIN_PERIOD`] or more; `None` for no guarantee.
    pub deadline: Option<Duration>,
    /// Maximum age of a delivered message; `None` for no limit.
    pub lifespan: Option<Duration>,
    /// How the publisher shows that it is alive.
    pub liveliness: Liveliness,
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
            deadline: None,
            lifespan: None,
            liveliness: Liveliness::default(),
        }
    }
}

fn bad_qos(why: String) -> Error {
    Error::BadQos { topic: String::new(), why }
}

/// Checks a period that the control thread monitors. A short period would keep that thread busy.
fn check_period(what: &str, period: Option<Duration>) -> Result<()> {
    match period {
        Some(period) if period < MIN_PERIOD => {
            Err(bad_qos(format!("{what} is {period:?}; it must be {MIN_PERIOD:?} or more")))
        }
        _ => Ok(()),
    }
}

impl Liveliness {
    /// The longest time between two assertions; `None` for automatic liveliness, where the kernel detects
    /// exits.
    pub fn lease(self) -> Option<Duration> {
        match self {
            Liveliness::Automatic => None,
            Liveliness::ManualByTopic { lease } => Some(lease),
        }
    }
}

impl PublisherQos {
    /// Number of messages kept for late joiners.
    pub fn history(&self) -> u64 {
        match self.durability {
            Durability::TransientLocal { depth } => u64::from(depth),
            Durability::Volatile => 0,
        }
    }

    /// Maximum log length: `log_len_bytes`, or more if the messages kept for late joiners could need it. The
    /// extra length uses only the memory of these messages.
    ///
    /// # Errors
    /// [`Error::BadQos`] with an empty topic if no log is long enough.
    pub fn log_len_for_history(&self) -> Result<u64> {
        if self.history() == 0 {
            return Ok(self.log_len_bytes);
        }
        // The longest inline message with its header. The log frees a sixteenth of itself at a time.
        let kept = self.history().saturating_mul(MAX_INLINE_LEN_BYTES as u64 + 16);
        let needed = kept.saturating_add(kept / 15).saturating_add(2 * MIN_LOG_LEN_BYTES);
        if needed > MAX_LOG_LEN_BYTES {
            return Err(bad_qos(format!(
                "transient_local keeps {} messages, which may need {needed} bytes of log; the limit is {MAX_LOG_LEN_BYTES}: keep \
                 fewer",
                self.history()
            )));
        }
        Ok(needed.next_power_of_two().max(self.log_len_bytes))
    }

    /// Checks the settings against each other and against the limits.
    ///
    /// # Errors
    /// [`Error::BadQos`] with an empty topic (see [`Error::with_topic`]), naming the setting and what is
    /// allowed.
    pub fn validate(&self) -> Result<()> {
        let log = self.log_len_bytes;
        if !(MIN_LOG_LEN_BYTES..=MAX_LOG_LEN_BYTES).contains(&log) || !log.is_power_of_two() {
            return Err(bad_qos(format!(
                "log_len_bytes is {log}; it must be a power of two from {MIN_LOG_LEN_BYTES} to {MAX_LOG_LEN_BYTES}"
            )));
        }
        if !(1..=MAX_CHUNKS_PER_CHANNEL as u64).contains(&u64::from(self.large_depth)) {
            return Err(bad_qos(format!(
                "large_depth is {}; it must be 1 to {MAX_CHUNKS_PER_CHANNEL}",
                self.large_depth
            )));
        }
        if let Durability::TransientLocal { depth: 0 } = self.durability {
            return Err(bad_qos("transient_local with depth 0 keeps nothing: set a depth of 1 or more, or use volatile".into()));
        }
        self.log_len_for_history()?;
        check_period("deadline", self.deadline)?;
        check_period("the liveliness lease", self.liveliness.lease())?;
        if self.lifespan.is_some_and(|lifespan| lifespan.is_zero()) {
            return Err(bad_qos(
                "with a lifespan of 0 nothing is ever delivered: make it longer, or leave it out"
                    .into(),
            ));
        }
        match self.on_full {
            OnFull::Detach { stall } if stall.is_zero() => {
                Err(bad_qos("on_full detach with a stall of 0 detaches every reader: set how long a reader may make no progress".into()))
            }
            _ => Ok(()),
        }
    }
}

/// The quality of service that a subscriber requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscriberQos {
    /// The lane that the publisher must have; `None` follows the publisher.
    pub lane: Option<Lane>,
    /// Whether the publisher must wait for this subscriber.
    pub reliability: Reliability,
    /// Whether to receive the messages kept for late joiners.
    pub transient_local: bool,
    /// Which unread messages it keeps.
    pub history: History,
    /// How to wait for the next message.
    pub wait: Wait,
    /// The longest time between two messages of a publisher, [`MIN_PERIOD`] or more; `None` for no
    /// requirement. The publisher must promise at least this.
    pub deadline: Option<Duration>,
    /// The minimum liveliness of the publisher; [`Liveliness::Automatic`] requires nothing.
    pub liveliness: Liveliness,
}

impl SubscriberQos {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::BadQos`] with an empty topic (see [`Error::with_topic`]), naming the setting and what is
    /// allowed.
    pub fn validate(&self) -> Result<()> {
        if self.history == History::KeepLast(0) {
            return Err(bad_qos("with keep_last 0 nothing is ever received: set 1 or more".into()));
        }
        check_period("deadline", self.deadline)?;
        check_period("the liveliness lease", self.liveliness.lease())
    }

    /// Number of unread messages per publisher that it keeps; `None` for all.
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

    /// The same settings with the default history resolved, as announced to peers.
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

/// Checks that a publisher offers what a subscriber requests.
///
/// # Errors
/// A text with the mismatch and the fix: the `why` of [`Error::IncompatibleQos`].
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
        return Err("the subscriber requests reliable and the publisher offers best_effort: \
                    make the publisher reliable, or the subscriber best_effort"
            .into());
    }
    if subscriber.transient_local && publisher.durability == Durability::Volatile {
        return Err(
            "the subscriber requests transient_local and the publisher keeps nothing (volatile): \
                    make the publisher transient_local, or the subscriber volatile"
                .into(),
        );
    }
    deadline_compatible(publisher.deadline, subscriber.deadline)?;
    liveliness_compatible(publisher.liveliness, subscriber.liveliness)?;
    match subscriber.lane {
        Some(lane) if lane != publisher.lane => {
            let (asked, offered) = (lane_name(lane), lane_name(publisher.lane));
            Err(format!(
                "the subscriber requests the {asked} lane and the publisher uses {offered}: \
                 set the publisher's lane to {asked}, or set no lane at the subscriber"
            ))
        }
        _ => Ok(()),
    }
}

/// The publisher's deadline must not exceed the subscriber's.
fn deadline_compatible(
    offered: Option<Duration>,
    asked: Option<Duration>,
) -> std::result::Result<(), String> {
    match (offered, asked) {
        (_, None) => Ok(()),
        (Some(offered), Some(asked)) if offered <= asked => Ok(()),
        (Some(offered), Some(asked)) => Err(format!(
            "the subscriber requests a deadline of {asked:?} and the publisher offers {offered:?}: set the publisher's \
             to {asked:?} or less, or the subscriber's to {offered:?} or more"
        )),
        (None, Some(asked)) => Err(format!(
            "the subscriber requests a deadline of {asked:?} and the publisher offers none: give the publisher a deadline \
             of {asked:?} or less, or the subscriber none"
        )),
    }
}

/// As [`deadline_compatible`], for liveliness.
fn liveliness_compatible(
    offered: Liveliness,
    asked: Liveliness,
) -> std::result::Result<(), String> {
    match (offered.lease(), asked.lease()) {
        (_, None) => Ok(()),
        (Some(offered), Some(asked)) if offered <= asked => Ok(()),
        (Some(offered), Some(asked)) => Err(format!(
            "the subscriber requests liveliness manual_by_topic with a lease of {asked:?} and the publisher offers \
             {offered:?}: set the publisher's lease to {asked:?} or less, or the subscriber's to {offered:?} or more"
        )),
        (None, Some(asked)) => Err(format!(
            "the subscriber requests liveliness manual_by_topic and the publisher offers automatic: make the publisher \
             manual_by_topic with a lease of {asked:?} or less, or the subscriber automatic"
        )),
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
        assert!(why.contains("requests the urgent lane") && why.contains("uses bulk"), "{why}");
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
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
    fn deadline_and_liveliness_are_offered_and_requested() {
        let ms = Duration::from_millis;
        let manual = |n| Liveliness::ManualByTopic { lease: ms(n) };
        let times = [None, Some(ms(10)), Some(ms(20))];
        for (offered, asked) in times.iter().flat_map(|o| times.iter().map(move |a| (*o, *a))) {
            let p = PublisherQos { deadline: offered, ..Default::default() };
            let s = SubscriberQos { deadline: asked, ..Default::default() };
            let fits = asked.is_none_or(|asked| offered.is_some_and(|offered| offered <= asked));
            let verdict = compatible(&p, &s);
            assert_eq!(verdict.is_ok(), fits, "{offered:?} {asked:?}");
            assert!(verdict.err().is_none_or(|why| why.contains("deadline of")));
        }
        let ways = [Liveliness::Automatic, manual(10), manual(20)];
        for (offered, asked) in ways.iter().flat_map(|o| ways.iter().map(move |a| (*o, *a))) {
            let p = PublisherQos { liveliness: offered, ..Default::default() };
            let s = SubscriberQos { liveliness: asked, ..Default::default() };
            let of = |asked| offered.lease().is_some_and(|offered| offered <= asked);
            let verdict = compatible(&p, &s);
            assert_eq!(verdict.is_ok(), asked.lease().is_none_or(of), "{offered:?} {asked:?}");
            assert!(verdict.err().is_none_or(|why| why.contains("liveliness manual_by_topic")));
        }
        for qos in [
            PublisherQos { deadline: Some(Duration::from_micros(999)), ..Default::default() },
            PublisherQos { lifespan: Some(Duration::ZERO), ..Default::default() },
            PublisherQos { liveliness: manual(0), ..Default::default() },
        ] {
            qos.validate().unwrap_err();
        }
        let asks = SubscriberQos { deadline: Some(Duration::ZERO), ..Default::default() };
        assert!(asks.validate().unwrap_err().to_string().contains("deadline is 0ns"));
    }

    #[test]
    fn announcements_of_older_nodes_have_no_deadline_or_lease() {
        let older = r#"{"lane":"bulk","reliability":"best_effort","durability":"volatile","large_depth":4}"#;
        let p: PublisherQos = serde_json::from_str(older).unwrap();
        assert_eq!((p.deadline, p.lifespan, p.liveliness), (None, None, Liveliness::Automatic));
        let s: SubscriberQos = serde_json::from_str("{}").unwrap();
        assert_eq!((s.deadline, s.liveliness), (None, Liveliness::Automatic));
        let full = PublisherQos {
            deadline: Some(Duration::from_millis(20)),
            lifespan: Some(Duration::from_secs(1)),
            liveliness: Liveliness::ManualByTopic { lease: Duration::from_millis(50) },
            ..Default::default()
        };
        let json = serde_json::to_string(&full).unwrap();
        assert!(json.contains(r#""liveliness":{"manual_by_topic":{"lease":"#), "{json}");
        assert_eq!(serde_json::from_str::<PublisherQos>(&json).unwrap(), full);
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
