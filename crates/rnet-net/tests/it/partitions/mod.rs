//! Random partition schedules over several hosts of this process, joined by an in-memory network.
//!
//! Each host has a best-effort and a reliable publisher that number their messages, and subscribers to
//! those of others. A schedule cuts, resets and heals connections and changes links at random, and after
//! each healing waits until all subscribers receive new messages. At the end each has received its messages
//! once and in order, and its loss counters account for the missing ones.
//!
//! The same over Zenoh and network namespaces is in `namespaces/partitions.rs`; `runs.rs` explains how to
//! repeat a run.

pub mod runs;
mod schedule;
pub mod traffic;

#[test]
fn a_few_schedules() {
    runs::run_all(2, schedule::run);
}

#[test]
#[ignore = "for `make soak`: half an hour"]
fn soak() {
    runs::run_all(1000, schedule::run).judge();
}
