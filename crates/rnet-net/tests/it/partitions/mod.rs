//! Random partition schedules over several hosts of this process, which a network in memory joins.
//!
//! Each host has a best effort and a reliable publisher that number their messages, and subscribers to those of
//! others. A schedule cuts, resets and heals connections and changes links at random, and after each healing waits
//! until all subscribers get what is sent by then. At the end each has had its messages in order and once, and what
//! it has not had stands in its loss counters.
//!
//! The same over Zenoh and network namespaces is in `namespaces/partitions.rs`; `runs.rs` says how to run one again.

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
