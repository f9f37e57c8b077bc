//! ROS 2 profile: files of ROS 2 are read as if their messages were protobuf, and the built-in messages are written as the
//! standard messages of ROS 2. docs/design/ros2.md is the contract.

mod convert;
mod counterpart;
mod decode;
mod definition;
mod encode;
pub(crate) mod qos;
mod standard;

pub use convert::{OmittedTopic, to_ros2};
pub(crate) use counterpart::Counterpart;
pub(crate) use decode::CdrType;

/// Profile of a file that ROS 2 reads.
pub const PROFILE: &str = "ros2";
/// Encoding of its messages.
pub const CDR: &str = "cdr";
/// Encoding of descriptions: `ros2msg`.
pub const ROS2MSG: &str = "ros2msg";
