//! The integration tests of this crate, one module per subject.

mod agree;
mod builtin;
mod common;
mod compile;
mod dynamic;
mod hostile_sets;
mod plain_doc;
mod rules;
mod text_faults;
mod well_known;
