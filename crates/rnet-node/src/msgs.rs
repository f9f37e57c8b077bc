//! The built-in messages that the engine sends and receives: log lines and the simulated time. `rnet::msgs`
//! has all.

mod time;

pub use time::{
    Duration, Timestamp, duration_from_ns, duration_to_ns, timestamp_from_ns, timestamp_now,
    timestamp_to_ns,
};

include!(concat!(env!("OUT_DIR"), "/foxglove.rs"));
include!(concat!(env!("OUT_DIR"), "/rnet.msgs.rs"));
