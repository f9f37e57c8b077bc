//! The built-in messages: what robots say, in SI units.
//!
//! Here stand the messages of the package `rnet.msgs`, and those of [`foxglove`] whose name is free. Two are in both packages: `JointState`
//! is here that of all joints ([`foxglove::JointState`] is that of one, for viewers), `Event` what a robot reports
//! ([`foxglove::Event`] is a stretch of a recording). What each is for stands in docs/guide/messages.md.
//!
//! ```
//! use rnet::msgs::{JointState, LaserScan, timestamp_now};
//! let joints = JointState {
//!     timestamp: Some(timestamp_now()),
//!     names: vec!["shoulder".into(), "elbow".into()],
//!     position: vec![0.1, 1.2],
//!     ..Default::default()
//! };
//! let scan = LaserScan { frame_id: "laser".into(), ..Default::default() };
//! # assert!(joints.timestamp.is_some() && scan.ranges.is_empty());
//! ```
//!
//! A `.proto` of one's own imports them by their path (`import "rnet/msgs/JointState.proto";`); the crate `rnet-build` makes the code.

pub mod plain;

#[doc(inline)]
pub use foxglove::*;
#[doc(inline)]
pub use plain::{Image, PointCloud, Tensor};
#[doc(inline)]
pub use rnet_call::msgs::*;
#[doc(inline)]
pub use rnet_node::msgs::{
    Clock, Duration, Timestamp, duration_from_ns, duration_to_ns, timestamp_from_ns, timestamp_now,
    timestamp_to_ns,
};
#[doc(inline)]
pub use rnet_state::msgs::*;

// The names that stand here win over those of the glob above.
include!(concat!(env!("OUT_DIR"), "/rnet.msgs.rs"));

/// The [Foxglove schemas](https://docs.foxglove.dev/docs/sdk/schemas), with their names and numbers, so that viewers and recordings
/// understand them.
pub mod foxglove {
    #[doc(inline)]
    pub use rnet_node::msgs::{Log, log};
    include!(concat!(env!("OUT_DIR"), "/foxglove.rs"));
}
