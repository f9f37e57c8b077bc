//! The integration tests of this crate, one module per subject.

mod common;
mod conformance;
mod exit;
mod large_plain;
mod link_start;
mod naming;
mod plain;
mod protobuf;
mod typed_alloc;
mod typed_rust;
