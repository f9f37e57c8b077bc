//! The integration tests of this crate, one module for each subject.

mod checker;
mod histories;
