//! What the Rust nodes of the demo share: message types, the talk with `run.py`, counting.
//!
//! `demo/README.md` says which process does what.
#![forbid(unsafe_code)]

pub mod messages;
pub mod process;
pub mod rates;
pub mod tally;
pub mod traffic_counts;
