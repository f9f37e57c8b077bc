//! What the derive refuses, and in which words. `TRYBUILD=overwrite cargo test -p rnet-derive` writes the expected messages anew.

#[test]
fn bad_structs_are_refused_in_plain_words() {
    trybuild::TestCases::new().compile_fail("tests/fail/*.rs");
}
