//! The integration tests of this crate, one module for each subject.

mod agree;
mod code;
mod common;
