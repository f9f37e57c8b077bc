//! The integration tests of this crate, one module for each subject.

mod compile_fail;
mod derive;
