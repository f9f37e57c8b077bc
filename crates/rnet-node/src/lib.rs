//! The engine of a node: matching, threads, waits, and endpoints of bytes, of type descriptions and of Rust
//! messages.
//!
//! It does not depend on what is built on it: state and parameters (`rnet-state`), calls and commands
//! (`rnet-call`). An [`Extension`] tells them what they need to know of the node. Users see all of this in
//! `rnet`; the modules of this crate are not an API for users.
#![forbid(unsafe_code)]

// Generated code of messages names `::rnet::`.
extern crate self as rnet;

pub mod aligned_bytes;
pub mod bridge;
pub mod callback_errors;
pub mod callbacks;
pub mod compatibility;
mod control;
pub mod core;
pub mod deadlines;
mod debug_by;
pub mod directory_guard;
pub mod dispatch;
pub mod endpoint_watch;
pub mod endpoints;
pub mod extension;
pub mod former_publishers;
pub mod handle;
pub mod inbox;
pub mod inspection_shortage;
pub mod internal;
pub mod interrupt;
pub mod log;
pub mod match_event;
pub mod matched_publishers;
pub mod matching;
pub mod message;
pub mod msgs;
pub mod node_event;
pub mod node_time;
pub mod options;
pub mod protobuf;
mod qos_choice;
pub mod receiver;
pub mod remote_nodes;
mod reply_estimator;
pub mod schedule;
pub mod settings;
mod sim_clock;
pub mod spin_or_sleep;
pub mod subscriber_state;
pub mod subscription;
pub mod sync;
pub mod timers;
pub mod trace;
pub mod trace_publisher;
pub mod typed;
pub mod types;
pub mod wait_loop;
pub mod wait_set_member;
pub mod wait_source;

pub use self::core::NodeCore;
pub use callbacks::CallbackGuard;
pub use endpoint_watch::EndpointWatch;
pub use endpoints::{Endpoint, EndpointEvent, EndpointQos};
pub use extension::Extension;
pub use former_publishers::PublisherStats;
pub use handle::NodeHandle;
pub use interrupt::Interrupter;
pub use log::{LOG_TOPIC, LogLevel, Logger, WeakLogger};
pub use match_event::{
    DeadlineMissed, LivelinessChange, LivelinessCounts, MatchChanges, MatchEvent, PeerInfo,
};
pub use message::Message;
pub use node_event::NodeEvent;
pub use schedule::Tick;
pub use settings::NodeSettings;
pub use subscription::Subscription;
pub use typed::{
    AnySubscription, Dynamic, Loan, MalformedCounter, OwnedLoan, OwnedSample, Publisher,
    PublisherBuilder, Rate, ReceiveStream, Sample, SampleStream, Samples, Subscriber,
    SubscriberBuilder, Timer, TimerBuilder, WaitSet, WaitSetEntry, WaitSetHandle, Waitable,
};
pub use types::MessageType;
// Used by the code of `protobuf_message!`.
pub use {rnet_core::Result, rnet_schema as schema};

/// Version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
