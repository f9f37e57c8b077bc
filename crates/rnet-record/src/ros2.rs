//! ROS 2 profile: reads ROS 2 files as if their messages were protobuf, and writes built-in messages as
//! standard messages of ROS 2. docs/design/ros2.md is the specification.

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

/// Profile of a ROS 2 file.
pub const PROFILE: &str = "ros2";
/// Encoding of its messages.
pub const CDR: &str = "cdr";
/// Encoding of its schemas.
pub const ROS2MSG: &str = "ros2msg";
