//! The specification of a worker process, as JSON on the first line of its standard input.
//!
//! [`rnet_bench::worker`] has the conversation that follows; the worker reports a [`PhaseResult`] for each phase.
//! Publishers repeat [`Hello`](crate::message::Kind::Hello) until the first `go`, and
//! [`End`](crate::message::Kind::End) after each phase until the next line arrives; both every 5 ms,
//! or every millisecond per publisher of the process where that is longer.

use crate::result::PhaseResult;
use crate::{Net, Topic};
pub use rnet_bench::worker::Order;

/// The first line.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Spec {
    /// The system's id.
    pub system: String,
    /// Where the endpoints meet.
    pub net: Net,
    /// The role of the process.
    pub role: Role,
    /// How many phases there will be.
    pub phases: usize,
}

/// Roles of worker processes.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Role {
    /// Publishes and subscribes.
    Peer {
        /// Its publishers.
        publishes: Vec<PublishSpec>,
        /// Its subscriptions.
        subscribes: Vec<SubscribeSpec>,
    },
    /// Sends growing messages and measures their round trips.
    Pinger {
        /// The topic to the echo.
        there: Topic,
        /// The topic back.
        back: Topic,
        /// For each phase.
        loads: Vec<PingLoad>,
    },
    /// Sends back each message.
    Echo {
        /// The topic to the echo.
        there: Topic,
        /// The topic back.
        back: Topic,
    },
    /// Sets or gets keys.
    KeyValue {
        /// This client's number.
        client: usize,
        /// For each phase.
        loads: Vec<KeyValueLoad>,
    },
}

/// A publisher of a peer.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct PublishSpec {
    /// The topic, with this publisher's index.
    pub topic: Topic,
    /// Its messages in each phase; `None` is only the End.
    pub loads: Vec<Option<Load>>,
}

/// A stretch of sending. It ends after `count` messages or `seconds`, whichever comes first.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Load {
    /// Bytes of each message.
    pub len: usize,
    /// The most messages.
    pub count: u64,
    /// The most seconds.
    pub seconds: f64,
    /// Messages per second; `None` is as fast as possible. `go` may give another rate.
    pub rate_hz: Option<f64>,
    /// Each message is written whole by the sender, in place where the system lends memory, and
    /// summed whole by the receiver.
    pub filled: bool,
}

/// A subscription of a peer.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct SubscribeSpec {
    /// The topic, with this subscriber's index.
    pub topic: Topic,
    /// For each phase.
    pub expects: Vec<Expect>,
}

/// A subscription's expectations of a phase.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Expect {
    /// Messages of fewer than 16 bytes carry no header and belong to this phase, their length this.
    pub len: usize,
    /// Later than this is late, ns.
    pub late_ns: Option<u64>,
    /// Later than this is too late (and no more counted as late), ns.
    pub too_late_ns: Option<u64>,
}

/// Round trips of growing messages: `count` of them, `first_len`, then `step_len` more each.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct PingLoad {
    /// Bytes of the first message.
    pub first_len: usize,
    /// By how many bytes each next one is longer.
    pub step_len: usize,
    /// How many.
    pub count: u64,
    /// One is sent every this many ms, or when the one before is back where that takes longer.
    pub period_ms: f64,
}

/// A stretch of key-value calls, each as soon as the one before is done.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct KeyValueLoad {
    /// The called service.
    pub call: Call,
    /// The key.
    pub key: String,
    /// Bytes of the value.
    pub len: usize,
    /// For how long.
    pub seconds: f64,
    /// Each value carries the time of its own set, so that its age is known at each get; otherwise that of
    /// the last clock reading, which costs as much as a fast store's call.
    pub aged: bool,
}

/// A key-value call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Sets the key to a numbered, stamped value.
    Set,
    /// Gets the key.
    Get,
    /// Adds one to the key's number, in one call.
    Add,
    /// Adds one by compare-and-set.
    CompareAndSet,
    /// Reads the key's number, once.
    Total,
    /// Nothing.
    Rest,
}

impl Call {
    /// Its name in raw data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Get => "get",
            Self::Add => "add",
            Self::CompareAndSet => "compare_and_set",
            Self::Total => "total",
            Self::Rest => "rest",
        }
    }
}

/// Each line on standard output.
pub type Event = rnet_bench::worker::Event<PhaseResult>;
