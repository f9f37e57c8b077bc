//! Cargo regards build dependencies only of crates that have a build script.
fn main() {}
