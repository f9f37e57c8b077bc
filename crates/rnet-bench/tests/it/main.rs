//! The integration tests of this crate, one module for each subject.

mod forms;
mod sierra_nevada;
