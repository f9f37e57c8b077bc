//! Shared code of the demo's Rust nodes: message types, communication with `run.py`, counting.
//!
//! `demo/README.md` describes the processes.
#![forbid(unsafe_code)]

pub mod messages;
pub mod process;
pub mod rates;
pub mod tally;
pub mod traffic_counts;
