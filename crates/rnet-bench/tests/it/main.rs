//! The integration tests of this crate, one module for each subject.

mod formats;
mod sierra_nevada;
