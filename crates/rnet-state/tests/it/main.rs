//! The integration tests of this crate, one module for each subject.

#[path = "../../../rnet/tests/it/common/mod.rs"]
mod common;

mod durable;
mod param;
mod param_hostile;
mod state;
mod state_alloc;
