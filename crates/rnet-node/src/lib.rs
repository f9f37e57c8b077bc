//! The engine of a node: how it meets its peers, its threads, its waits, and endpoints of bytes and type
//! descriptions.
//!
//! It knows nothing of what stands on it. State and parameters (`rnet-state`) ask it for its node, its
//! threads and its waits, and are told of what they have to know by an [`Extension`]; typed endpoints and all
//! that users see are `rnet`. The modules are the engine's surface for those two crates, and are no API for
//! users.
#![forbid(unsafe_code)]

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
pub mod inbox;
pub mod inspection_shortage;
#[doc(hidden)]
pub mod interrupt;
#[doc(hidden)]
pub mod match_event;
#[doc(hidden)]
pub mod matched_publishers;
#[doc(hidden)]
pub mod matching;
pub mod message;
#[doc(hidden)]
pub mod node_event;
#[doc(hidden)]
pub mod node_time;
#[doc(hidden)]
pub mod options;
#[doc(hidden)]
pub mod period_estimator;
#[doc(hidden)]
pub mod receiver;
#[doc(hidden)]
pub mod remote_nodes;
mod reply_estimator;
#[doc(hidden)]
pub mod schedule;
#[doc(hidden)]
pub mod settings;
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
pub use interrupt::Interrupter;
pub use match_event::{
    DeadlineMissed, LivelinessChange, LivelinessCounts, MatchChanges, MatchEvent, PeerInfo,
};
pub use message::Message;
pub use node_event::NodeEvent;
pub use options::{PublisherOptions, SubscriberOptions};
pub use schedule::Tick;
pub use settings::NodeSettings;
pub use subscription::Subscription;
pub use types::MessageType;

/// Version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
