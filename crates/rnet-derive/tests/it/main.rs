//! The integration tests of this crate, one module per subject.

mod compile_fail;
mod derive;
