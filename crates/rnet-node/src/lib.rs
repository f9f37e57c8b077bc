//! The engine of a node: matching, threads, waits, and endpoints of bytes, of type descriptions and of Rust messages.
//!
//! It does not depend on what is made of it: state and parameters (`rnet-state`), calls and commands (`rnet-call`). An
//! [`Extension`] tells these what they have to know of the node. Users see all of this in `rnet`; the modules of this
//! crate are not an API for users.
#![forbid(unsafe_code)]

// Generated code of messages says `::rnet::`.
extern crate self as rnet;

#[doc(hidden)]
pub mod aligned_bytes;
#[doc(hidden)]
pub mod callback_errors;
#[doc(hidden)]
pub mod compatibility;
#[doc(hidden)]
pub mod control;
#[doc(hidden)]
pub mod core;
#[doc(hidden)]
pub mod deadlines;
mod debug_by;
#[doc(hidden)]
pub mod directory_guard;
#[doc(hidden)]
pub mod dispatch;
#[doc(hidden)]
pub mod endpoint_watch;
#[doc(hidden)]
pub mod endpoints;
#[doc(hidden)]
pub mod extension;
#[doc(hidden)]
pub mod former_publishers;
#[doc(hidden)]
pub mod handle;
#[doc(hidden)]
pub mod inbox;
pub mod inspection_shortage;
#[doc(hidden)]
pub mod interrupt;
pub mod log;
#[doc(hidden)]
pub mod match_event;
#[doc(hidden)]
pub mod matched_publishers;
#[doc(hidden)]
pub mod matching;
pub mod message;
pub mod msgs;
#[doc(hidden)]
pub mod node_event;
#[doc(hidden)]
pub mod node_time;
#[doc(hidden)]
pub mod options;
#[doc(hidden)]
pub mod period_estimator;
#[doc(hidden)]
pub mod protobuf;
#[doc(hidden)]
pub mod receiver;
#[doc(hidden)]
pub mod remote_nodes;
mod reply_estimator;
#[doc(hidden)]
pub mod schedule;
#[doc(hidden)]
pub mod settings;
mod sim_clock;
#[doc(hidden)]
pub mod subscriber_state;
#[doc(hidden)]
pub mod subscription;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod timers;
#[doc(hidden)]
pub mod trace;
#[doc(hidden)]
pub mod trace_publisher;
pub mod typed;
#[doc(hidden)]
pub mod types;
#[doc(hidden)]
pub mod wait_set_member;
#[doc(hidden)]
pub mod wait_source;
#[doc(hidden)]
pub mod wait_strategy;
#[doc(hidden)]
pub mod wake_stream;

pub use self::core::NodeCore;
pub use endpoint_watch::EndpointWatch;
pub use endpoints::{Endpoint, EndpointEvent, EndpointQos};
pub use extension::Extension;
pub use former_publishers::PublisherStats;
#[doc(hidden)]
pub use handle::NodeHandle;
pub use interrupt::Interrupter;
pub use log::{LOG_TOPIC, LogLevel, Logger, WeakLogger};
pub use match_event::{
    DeadlineMissed, LivelinessChange, LivelinessCounts, MatchChanges, MatchEvent, PeerInfo,
};
pub use message::Message;
pub use node_event::NodeEvent;
pub use options::{PublisherOptions, SubscriberOptions};
pub use schedule::Tick;
pub use settings::NodeSettings;
pub use subscription::Subscription;
pub use typed::{
    AnySubscription, Dynamic, Loan, MalformedCounter, OwnedLoan, OwnedSample, Publisher, Rate,
    Sample, SampleStream, Subscriber, Timer, TimerOptions, WaitSet, WaitSetEntry, WaitSetHandle,
    Waitable,
};
pub use types::MessageType;
// Named by the code of `protobuf_message!`.
#[doc(hidden)]
pub use {rnet_core::Result, rnet_schema as schema};

/// Version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
