//! Structs that the derive rejects, with their messages. `TRYBUILD=overwrite cargo test -p rnet-derive`
//! regenerates the expected messages.

#[test]
fn invalid_structs_are_rejected_with_clear_errors() {
    trybuild::TestCases::new().compile_fail("tests/fail/*.rs");
}
