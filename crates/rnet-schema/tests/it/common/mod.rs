//! Helpers for the tests of this crate.
#![allow(dead_code)] // Each test file uses some of it.

use rnet_schema::{Schema, compile_text};

/// The message `M` of a proto3 text without its syntax line; with the prefix `proto2;`, of a proto2 text.
pub fn schema(text: &str) -> Schema {
    let source = match text.strip_prefix("proto2;") {
        Some(rest) => format!("syntax = \"proto2\"; {rest}"),
        None => format!("syntax = \"proto3\"; {text}"),
    };
    let compiled = compile_text("m.proto", &source).unwrap_or_else(|e| panic!("{e}\n{source}"));
    let name = if text.contains("message M ") { "M" } else { "p.M" };
    compiled.schema(name).unwrap_or_else(|e| panic!("{e}\n{source}"))
}
