//! `.proto` texts with faults at any position: an error with a position, or a type, never a panic.

use proptest::prelude::*;
use rnet_schema::{SchemaError, compile_text};

const TEXT: &str = "syntax = \"proto2\"; package a.b;
import \"google/protobuf/any.proto\";
/* A comment */ message M {
  optional int32 x = 1 [default = -5, json_name = \"y\"];
  required bytes b = 2 [default = \"\\001\\xff\"];
  repeated double c = 3 [packed = true];
  optional group G = 4 { optional string s = 1; }
  oneof o { string p = 5; E q = 6; }
  map<string, M> r = 7; optional google.protobuf.Any any = 8;
  reserved 100 to 200, 300; extensions 400 to max;
  message In { enum F { option allow_alias = true; ONE = 1; ALSO = 1; } }
}
enum E { A = 0; reserved \"B\"; } extend M { optional float ext = 401; }
service S { rpc Call(M) returns (stream M); }";

const PIECES: &[&str] = &[
    "{",
    "}",
    ";",
    "=",
    "\"",
    "\\",
    "[",
    "]",
    "<",
    ">",
    "9999999999999999999999",
    "-",
    "é",
    "\u{0}",
    "message",
    "optional",
    "option",
    "inf",
    ".",
    "..",
    "0x",
    "1e400",
    "map<",
    "oneof",
    "syntax",
    "/*",
    "//",
    "\\xé",
    "\\777",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_with_faults_is_an_error_with_a_place_or_a_type(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..8_usize, 0..PIECES.len()), 1..5),
    ) {
        let mut text: Vec<char> = TEXT.chars().collect();
        for (at, remove, piece) in changes {
            let at = at.index(text.len());
            let end = (at + remove).min(text.len());
            text.splice(at..end, PIECES[piece].chars());
        }
        let text: String = text.into_iter().collect();
        match compile_text("m.proto", &text) {
            Ok(compiled) => for name in compiled.messages() {
                // A linker accepts some inputs that a receiver rejects; both results are valid.
                let _ = compiled.schema(&name);
            },
            Err(SchemaError::Proto { place, .. }) => {
                prop_assert!(place.line <= text.lines().count() + 1, "{place}");
            }
            Err(SchemaError::MissingImport { .. } | SchemaError::Invalid { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = |open: &str, close: &str, n: usize| {
        format!("syntax = \"proto3\"; {}{}", open.repeat(n), close.repeat(n))
    };
    assert!(compile_text("m.proto", &deep("message M {", "}", 5000)).is_err());
    let option =
        format!("syntax = \"proto3\"; option (x) = {}{};", "{ a: ".repeat(5000), "}".repeat(5000));
    assert!(compile_text("m.proto", &option).is_err());
}
