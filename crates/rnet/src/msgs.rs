//! The built-in messages of robots, in SI units.
//!
//! This module has the messages of the package `rnet.msgs`, and those of [`foxglove`] whose names are not in
//! `rnet.msgs`. Two names are in both packages: `JointState` here describes all joints
//! ([`foxglove::JointState`] describes a single joint, for viewers), and `Event` is a report of a robot
//! ([`foxglove::Event`] is an interval of a recording). docs/guide/messages.md describes each message.
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
//! Import them in your own `.proto` by their path (`import "rnet/msgs/JointState.proto";`); the crate
//! `rnet-build` generates the code.

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

// The names defined here take precedence over those of the glob above.
include!(concat!(env!("OUT_DIR"), "/rnet.msgs.rs"));

/// The [Foxglove schemas](https://docs.foxglove.dev/docs/sdk/schemas), with their names and numbers, so that
/// viewers and recordings understand them.
pub mod foxglove {
    #[doc(inline)]
    pub use rnet_node::msgs::{Log, log};
    include!(concat!(env!("OUT_DIR"), "/foxglove.rs"));
}
