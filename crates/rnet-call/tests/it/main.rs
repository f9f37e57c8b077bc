//! The integration tests of this crate, one module for each subject.

#[path = "../../../rnet/tests/it/common/mod.rs"]
mod common;
#[path = "../../../rnet-net/tests/it/partitions/random.rs"]
mod random;

mod actions;
mod actions_hostile;
mod call_timeouts;
mod calls;
mod calls_cleanup;
mod calls_from_threads;
mod calls_unanswerable;
mod command_thread;
mod commands;
mod commands_killed;
mod commands_races;
mod commands_rechecked;
mod commands_without_memory;
mod queues;
mod service_closes;
