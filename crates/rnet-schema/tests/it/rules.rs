//! Tests each rule for changes of a type, in both directions.
//!
//! A case contains an old and a new text of the type `M`, the differences that a new reader reports for an
//! old writer, and those that an old reader reports for a new writer, each as `rule path`. The verdict must
//! contain exactly these. A rule without a case fails the test, and so does a rule that is missing in
//! docs/design/types.md.

use crate::common;

use common::schema;
use rnet_schema::{Rule, Severity, check, diff};
use std::collections::BTreeSet;

struct Case {
    old: &'static str,
    new: &'static str,
    /// Old writer, new reader.
    forward: &'static [&'static str],
    /// New writer, old reader.
    backward: &'static [&'static str],
}

const fn case(
    old: &'static str,
    new: &'static str,
    forward: &'static [&'static str],
    backward: &'static [&'static str],
) -> Case {
    Case { old, new, forward, backward }
}

/// The same differences in both directions.
const fn both(old: &'static str, new: &'static str, changes: &'static [&'static str]) -> Case {
    Case { old, new, forward: changes, backward: changes }
}

const CASES: &[Case] = &[
    both("message M { double x = 1; }", "message M { double x = 1; }", &[]),
    // Field order, comments and other messages are not part of the type.
    both(
        "message M { double x = 1; string s = 2; }",
        "message Other { int32 a = 1; } message M { string s = 2; /* [m] */ double x = 1; }",
        &[],
    ),
    // Fields added, removed, renamed.
    case(
        "message M { double x = 1; }",
        "message M { double x = 1; string s = 2; }",
        &["field.reader_only s"],
        &["field.writer_only s"],
    ),
    case(
        "message M { double x = 1; string s = 2; }",
        "message M { double x = 1; reserved 2; }",
        &["field.writer_only s", "field.reserved s"],
        &["field.reader_only s", "field.reserved s"],
    ),
    case(
        "message M { double x = 1; }",
        "message M { double width = 1; }",
        &["field.renamed width"],
        &["field.renamed x"],
    ),
    both(
        "message M { double x_y = 1; }",
        "message M { double x_y = 1 [json_name = \"z\"]; }",
        &["field.json_name x_y"],
    ),
    // A reserved number is reused with another name and type.
    case(
        "message M { reserved 2; double x = 1; }",
        "message M { double x = 1; string s = 2; }",
        &["field.reader_only s", "field.reserved s"],
        &["field.writer_only s", "field.reserved s"],
    ),
    // The number of a removed, unreserved field is reused with another name and type.
    case(
        "message M { double x = 1; }",
        "message M { string s = 1; }",
        &["field.renamed s", "field.type s"],
        &["field.renamed x", "field.type x"],
    ),
    // The same name under another number.
    both("message M { double x = 1; }", "message M { double x = 2; }", &["field.number x"]),
    both(
        "message M { double x = 1; double y = 2; }",
        "message M { double y = 1; double x = 2; }",
        &["field.number x", "field.number y"],
    ),
    // Presence.
    both(
        "message M { double x = 1; }",
        "message M { optional double x = 1; }",
        &["field.presence x"],
    ),
    both(
        "proto2; message M { optional double x = 1; }",
        "message M { double x = 1; }",
        &["field.presence x"],
    ),
    // Types: misread or an error on the wire.
    both("message M { double x = 1; }", "message M { float x = 1; }", &["field.type x"]),
    both("message M { int32 x = 1; }", "message M { sint32 x = 1; }", &["field.type x"]),
    both("message M { int32 x = 1; }", "message M { fixed32 x = 1; }", &["field.type x"]),
    both("message M { fixed32 x = 1; }", "message M { sfixed32 x = 1; }", &["field.type x"]),
    both("message M { int32 x = 1; }", "message M { uint32 x = 1; }", &["field.type x"]),
    both("message M { int64 x = 1; }", "message M { uint64 x = 1; }", &["field.type x"]),
    both("message M { int32 x = 1; }", "message M { uint64 x = 1; }", &["field.type x"]),
    both("message M { int32 x = 1; }", "message M { string x = 1; }", &["field.type x"]),
    both("message M { fixed64 x = 1; }", "message M { double x = 1; }", &["field.type x"]),
    // Types: readable in one direction, rejected in both.
    case(
        "message M { int32 x = 1; }",
        "message M { int64 x = 1; }",
        &["field.type_lossless x"],
        &["field.type x"],
    ),
    case(
        "message M { uint32 x = 1; }",
        "message M { uint64 x = 1; }",
        &["field.type_lossless x"],
        &["field.type x"],
    ),
    case(
        "message M { uint32 x = 1; }",
        "message M { int64 x = 1; }",
        &["field.type_lossless x"],
        &["field.type x"],
    ),
    case(
        "message M { sint32 x = 1; }",
        "message M { sint64 x = 1; }",
        &["field.type_lossless x"],
        &["field.type x"],
    ),
    case(
        "message M { bool x = 1; }",
        "message M { int32 x = 1; }",
        &["field.type_lossless x"],
        &["field.type x"],
    ),
    case(
        "message M { string x = 1; }",
        "message M { bytes x = 1; }",
        &["field.type_lossless x"],
        &["field.type x"],
    ),
    case(
        "message M { message I { int32 a = 1; } I x = 1; }",
        "message M { bytes x = 1; }",
        &["field.type_lossless x"],
        &["field.type x"],
    ),
    both(
        "message M { message I { int32 a = 1; } I x = 1; }",
        "message M { string x = 1; }",
        &["field.type x"],
    ),
    both(
        "enum E { A = 0; } message M { E x = 1; }",
        "message M { int32 x = 1; }",
        &["field.type_lossless x"],
    ),
    case(
        "enum E { A = 0; } message M { E x = 1; }",
        "message M { uint32 x = 1; }",
        &["field.type x"],
        &["field.type x"],
    ),
    case(
        "proto2; enum E { A = 0; } message M { required E x = 1; }",
        "proto2; message M { required int32 x = 1; }",
        &["field.type_lossless x"],
        &["field.type x"],
    ),
    both(
        "proto2; message M { optional group G = 1 { optional int32 a = 1; } }",
        "proto2; message M { message G { optional int32 a = 1; } optional G g = 1; }",
        &["field.type g"],
    ),
    // Single and repeated.
    both(
        "message M { double x = 1; }",
        "message M { repeated double x = 1; }",
        &["field.repeated x"],
    ),
    both(
        "message M { string x = 1; }",
        "message M { repeated string x = 1; }",
        &["field.repeated x"],
    ),
    both(
        "message I { int32 a = 1; } message M { I x = 1; }",
        "message I { int32 a = 1; } message M { repeated I x = 1; }",
        &["field.repeated x"],
    ),
    both(
        "message M { map<string, double> x = 1; }",
        "message M { message E { string key = 1; double value = 2; } repeated E x = 1; }",
        &["field.repeated x"],
    ),
    both(
        "message M { repeated double x = 1; }",
        "message M { repeated double x = 1 [packed = false]; }",
        &["field.packed x"],
    ),
    // Maps: key and value like fields.
    case(
        "message M { map<int32, double> x = 1; }",
        "message M { map<int64, double> x = 1; }",
        &["field.type_lossless x[key]"],
        &["field.type x[key]"],
    ),
    both(
        "message M { map<string, double> x = 1; }",
        "message M { map<string, float> x = 1; }",
        &["field.type x"],
    ),
    case(
        "message I { int32 a = 1; } message M { map<string, I> x = 1; }",
        "message I { int32 a = 1; int32 b = 2; } message M { map<string, I> x = 1; }",
        &["field.reader_only x[].b"],
        &["field.writer_only x[].b"],
    ),
    case(
        "message M { map<string, double> x = 1; }",
        "message M { map<string, double> y = 1; }",
        &["field.renamed y"],
        &["field.renamed x"],
    ),
    // Meaning of an omitted value.
    both(
        "proto2; message M { optional int32 x = 1 [default = 5]; }",
        "proto2; message M { optional int32 x = 1 [default = 7]; }",
        &["field.default x"],
    ),
    both(
        "proto2; message M { optional double x = 1 [default = nan]; }",
        "proto2; message M { optional double x = 1 [default = nan]; }",
        &[],
    ),
    both(
        "proto2; message M { optional int32 x = 1 [default = 5]; }",
        "message M { int32 x = 1; }",
        &["field.default x", "field.presence x"],
    ),
    // A required field is always sent, so the writer's default is never used.
    case(
        "proto2; message M { required int32 x = 1 [default = 5]; }",
        "proto2; message M { optional int32 x = 1; }",
        &[],
        &["field.required x", "field.default x"],
    ),
    case(
        "proto2; message M { optional int32 y = 2; }",
        "proto2; message M { required int32 x = 1; optional int32 y = 2; }",
        &["field.required x", "field.reader_only x"],
        &["field.writer_only x"],
    ),
    case(
        "proto2; message M { optional int32 x = 1; }",
        "proto2; message M { required int32 x = 1; }",
        &["field.required x"],
        &[],
    ),
    // Extensions are not part of a type: they arrive as unknown fields.
    both(
        "proto2; message M { optional int32 x = 1; extensions 100 to 200; } extend M { optional int32 e = 100; }",
        "proto2; message M { optional int32 x = 1; }",
        &[],
    ),
    // But a number in an extension range may carry any type.
    case(
        "proto2; message M { optional int32 x = 1; extensions 100 to 200; }",
        "proto2; message M { optional int32 x = 1; optional string s = 150; }",
        &["field.extension s"],
        &["field.writer_only s"],
    ),
    case(
        "proto2; message M { optional int32 x = 1; extensions 100 to 200, 300; }",
        "proto2; message M { optional int32 x = 1; optional string s = 99; optional bytes t = 201; optional M m = 300; }",
        &["field.reader_only s", "field.reader_only t", "field.extension m"],
        &["field.writer_only s", "field.writer_only t", "field.writer_only m"],
    ),
    // Oneofs.
    both(
        "message M { double x = 1; }",
        "message M { oneof o { double x = 1; } }",
        &["field.presence x", "oneof.moved x"],
    ),
    case(
        "message M { optional double x = 1; optional double y = 2; }",
        "message M { oneof o { double x = 1; double y = 2; } }",
        &["oneof.moved x", "oneof.merged y"],
        &["oneof.moved x", "oneof.moved y"],
    ),
    case(
        "message M { oneof o { double x = 1; double y = 2; } oneof p { double z = 3; } }",
        "message M { oneof o { double x = 1; double y = 2; double z = 3; } }",
        &["oneof.merged z"],
        &[],
    ),
    case(
        "message M { oneof o { double x = 1; } }",
        "message M { oneof o { double x = 1; double y = 2; } }",
        &["field.reader_only y"],
        &["field.writer_only y"],
    ),
    both(
        "message M { oneof o { double x = 1; double y = 2; } }",
        "message M { oneof other { double x = 1; double y = 2; } }",
        &[],
    ),
    // Names of types.
    both(
        "message A { double x = 1; } message M { A a = 1; }",
        "message B { double x = 1; } message M { B a = 1; }",
        &["type.renamed a"],
    ),
    both(
        "message A { double x = 1; double w = 2; } message M { A a = 1; }",
        "message B { double force = 1; double w = 2; } message M { B a = 1; }",
        &["type.replaced a"],
    ),
    case(
        "message V1 { message A { double x = 1; } } message M { V1.A a = 1; }",
        "message V2 { message A { double x = 1; double y = 2; } } message M { V2.A a = 1; }",
        &["type.renamed a", "field.reader_only a.y"],
        &["type.renamed a", "field.writer_only a.y"],
    ),
    both(
        "enum A { ZERO = 0; ONE = 1; } message M { A a = 1; }",
        "enum B { ZERO = 0; ONE = 1; } message M { B a = 1; }",
        &["type.renamed a"],
    ),
    both(
        "enum A { ZERO = 0; ONE = 1; } message M { A a = 1; }",
        "enum B { NONE = 0; SOME = 1; } message M { B a = 1; }",
        &["type.replaced a"],
    ),
    both("message M { double x = 1; }", "package p; message M{ double x = 1; }", &["type.name "]),
    // Enum values.
    case(
        "enum E { A = 0; B = 1; } message M { E e = 1; }",
        "enum E { A = 0; B = 1; C = 2; } message M { E e = 1; }",
        &["enum.value_reader_only e:C"],
        &["enum.value_writer_only e:C"],
    ),
    case(
        "enum E { A = 0; B = 1; } message M { E e = 1; }",
        "enum E { A = 0; reserved 1; } message M { E e = 1; }",
        &["enum.value_removed e:B"],
        &["enum.value_reader_only e:B"],
    ),
    case(
        "enum E { A = 0; B = 1; } message M { E e = 1; }",
        "enum E { A = 0; reserved \"B\"; } message M { E e = 1; }",
        &["enum.value_removed e:B"],
        &["enum.value_reader_only e:B"],
    ),
    case(
        "enum E { A = 0; B = 1; } message M { E e = 1; }",
        "enum E { A = 0; BUSY = 1; } message M { E e = 1; }",
        &["enum.value_renamed e:B"],
        &["enum.value_renamed e:BUSY"],
    ),
    both(
        "enum E { A = 0; B = 1; } message M { E e = 1; }",
        "enum E { A = 0; B = 2; } message M { E e = 1; }",
        &["enum.value_number e:B"],
    ),
    both(
        "enum E { A = 0; B = 1; C = 2; } message M { E e = 1; }",
        "enum E { A = 0; C = 1; B = 2; } message M { E e = 1; }",
        &["enum.value_number e:B", "enum.value_number e:C"],
    ),
    // A second name for a number that both sides know changes nothing.
    both(
        "enum E { A = 0; B = 1; } message M { E e = 1; }",
        "enum E { option allow_alias = true; A = 0; B = 1; BUSY = 1; } message M { E e = 1; }",
        &[],
    ),
    both(
        "proto2; enum E { A = 0; B = 1; } message M { optional E e = 1; }",
        "enum E { A = 0; B = 1; } message M { optional E e = 1; }",
        &["enum.openness e"],
    ),
    case(
        "proto2; enum E { A = 0; B = 1; } message M { optional E e = 1; }",
        "enum E { A = 0; B = 1; C = 2; } message M { optional E e = 1; }",
        &["enum.value_reader_only e:C", "enum.openness e"],
        &["enum.value_closed e:C"],
    ),
    both(
        "proto2; enum E { A = 1; B = 2; } message M { optional E e = 1; }",
        "proto2; enum E { B = 2; A = 1; } message M { optional E e = 1; }",
        &["field.default e"],
    ),
    // Deeply nested and recursive types: each pair once, by the shortest path.
    both(
        "message Q { double w = 4; } message P { Q orientation = 2; } message M { P pose = 1; }",
        "message Q { float w = 4; } message P { Q orientation = 2; } message M { P pose = 1; }",
        &["field.type pose.orientation.w"],
    ),
    both(
        "message M { M next = 1; repeated M children = 2; double x = 3; }",
        "message M { M next = 1; repeated M children = 2; float x = 3; }",
        &["field.type x"],
    ),
    case(
        "message A { B b = 1; int32 x = 2; } message B { A a = 1; } message M { repeated A a = 1; }",
        "message A { B b = 1; bool x = 2; } message B { A a = 1; } message M { repeated A a = 1; }",
        &["field.type a[].x"],
        &["field.type_lossless a[].x"],
    ),
];

fn found(old: &str, new: &str) -> Vec<String> {
    let verdict = check(&schema(old), &schema(new));
    let breaking = verdict.changes.iter().any(|change| change.severity == Severity::Breaking);
    assert_eq!(verdict.compatible, !breaking, "{verdict}");
    let mut found: Vec<String> =
        verdict.changes.iter().map(|change| format!("{} {}", change.rule, change.path)).collect();
    found.sort();
    found
}

fn sorted(expected: &[&str]) -> Vec<String> {
    let mut expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
    expected.sort();
    expected
}

#[test]
fn each_case_gives_exactly_its_changes_in_both_directions() {
    let mut wrong = String::new();
    for case in CASES {
        for (writer, reader, expected) in
            [(case.old, case.new, case.forward), (case.new, case.old, case.backward)]
        {
            let (found, expected) = (found(writer, reader), sorted(expected));
            if found != expected {
                wrong += &format!(
                    "\nwriter {writer}\nreader {reader}\n  found    {found:?}\n  expected {expected:?}\n"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn each_rule_has_cases_with_and_without_it() {
    // Exceeding the step budget needs a type too large for a line: see `hostile_sets.rs`.
    let elsewhere = BTreeSet::from([Rule::Limit.id()]);
    let shown: BTreeSet<&str> = CASES
        .iter()
        .flat_map(|case| case.forward.iter().chain(case.backward))
        .filter_map(|text| text.split(' ').next())
        .collect();
    for rule in Rule::ALL {
        let id = rule.id();
        assert!(shown.contains(id) || elsewhere.contains(id), "no case shows {id}");
        let without = |c: &Case| !c.forward.iter().chain(c.backward).any(|t| t.starts_with(id));
        assert!(CASES.iter().any(without), "{id} is in every case");
    }
    let known: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    assert!(shown.is_subset(&known), "unknown: {:?}", shown.difference(&known));
}

#[test]
fn each_rule_is_in_the_design_document_with_its_verdict() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/types.md");
    let document = std::fs::read_to_string(path).expect("docs/design/types.md");
    for rule in Rule::ALL {
        let verdict = match rule.severity() {
            Severity::Breaking => "incompatible",
            Severity::Note | Severity::Warning => "compatible",
        };
        let row = format!("| `{}` | {verdict} |", rule.id());
        assert!(document.contains(&row), "docs/design/types.md has no row {row}");
    }
    let rows = document.lines().filter(|line| {
        line.starts_with("| `")
            && !line.starts_with("| `plain.")
            && (line.contains("` | compatible |") || line.contains("` | incompatible |"))
    });
    assert_eq!(rows.count(), Rule::ALL.len(), "docs/design/types.md has rows without a rule");
}

#[test]
fn diff_distinguishes_old_and_new_and_is_stricter() {
    let old = schema(
        "message M { reserved 7; double x = 1; string gone = 2; string kept_out = 3; enum E { A = 0; B = 1; } E e = 4; }",
    );
    let new = schema(
        "message M { reserved 3; reserved \"kept_out\"; float x = 1; int32 again = 7; int32 added = 5; enum E { A = 0; C = 2; } E e = 4; }",
    );
    let diff = diff(&old, &new);
    let lines: Vec<String> =
        diff.lines.iter().map(|l| format!("{:?} {} {}", l.severity, l.what, l.path)).collect();
    assert_eq!(
        lines,
        [
            "Breaking field.reserved_reused again",
            "Breaking enum.value_removed e:B",
            "Breaking field.type x",
            "Warning field.not_reserved gone",
            "Note field.added added",
            "Note field.added again",
            "Note enum.value_added e:C",
            "Note field.removed kept_out",
            "Note field.reserved kept_out",
        ],
        "{diff}"
    );
    assert!(!diff.compatible);
    let line = diff.lines.iter().find(|line| line.path == "x").map(ToString::to_string);
    assert_eq!(
        line.as_deref(),
        Some(
            "BREAKING field.type `x`: double x = 1 -> float x = 1 (new cannot read old, old cannot read new)"
        )
    );
    let json = serde_json::to_value(&diff).expect("a diff has a JSON form");
    assert_eq!(json["lines"][2]["what"], "field.type");
    assert_eq!(json["lines"][2]["severity"], "breaking");
}

#[test]
fn diff_reports_which_side_cannot_read() {
    let one_way = diff(
        &schema("proto2; message M { optional int32 x = 1; }"),
        &schema("proto2; message M { required int32 x = 1; }"),
    );
    let line = &one_way.lines[0];
    assert_eq!((line.new_cannot_read_old, line.old_cannot_read_new), (true, false), "{one_way}");
    let same = schema("message M { double x = 1; }");
    let none = diff(&same, &same);
    assert!(none.compatible && none.lines.is_empty());
    assert_eq!(none.to_string(), "M: no change");
}

#[test]
fn verdict_has_text_and_json_forms() {
    let verdict = check(
        &schema("message M { double x = 1; }"),
        &schema("message M { float x = 1; int32 y = 2; }"),
    );
    assert_eq!(
        verdict.to_string(),
        "INCOMPATIBLE: writer M, reader M\n  \
         breaking field.type `x`: writer has double x = 1, reader has float x = 1\n  \
         note field.reader_only `y`: writer has nothing, reader has int32 y = 2"
    );
    let json = serde_json::to_value(&verdict).expect("a verdict has a JSON form");
    assert_eq!(json["changes"][0]["rule"], "field.type");
    assert_eq!(json["compatible"], false);
}
