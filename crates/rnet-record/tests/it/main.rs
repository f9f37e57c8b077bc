//! The integration tests of this crate, one module for each subject.

#[path = "../../../rnet/tests/it/common/mod.rs"]
mod shared;

mod blackbox;
mod blackbox_barred;
mod common;
mod damaged;
mod failures;
mod files;
mod latched;
mod options;
mod play;
mod reading;
mod recorder;
mod rerun_calls;
mod ros2;
mod series;
mod tools;
