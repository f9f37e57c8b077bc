//! Tests each rule of the table "Plain types" in docs/design/types.md in both directions, and compares it
//! with the result of reading messages.

use super::*;
use crate::types::plain_compatibility::Rule;

/// A type in short form: `T 16; x f64 0; q f32[4] 8; at {Stamp 8; ns i64 0} 24`; `T+` for a type with data
/// after it.
fn ty(text: &str) -> PlainType {
    let mut parts = split(text, ';').into_iter();
    let head = parts.next().expect("a name and a size");
    let (name, size) = head.trim().split_once(' ').expect("a name and a size");
    let fields = parts.map(|part| {
        let part = part.trim();
        let (name, rest) = part.split_once(' ').expect("a name");
        let (ty, offset) = rest.rsplit_once(' ').expect("an offset");
        field(name, offset.parse().expect("an offset"), field_type(ty))
    });
    let mut plain =
        plain(name.trim_end_matches('+'), size.parse().expect("a size"), 1, fields.collect());
    plain.tail = name.ends_with('+');
    plain.validate().expect(text);
    plain
}

/// Splits at `at`, except inside braces.
fn split(text: &str, at: char) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0 && c == at
    })
    .collect()
}

fn field_type(text: &str) -> FieldType {
    if let Some(inner) = text.strip_suffix(']') {
        let (of, len) = inner.rsplit_once('[').expect("a length");
        array(field_type(of), len.parse().expect("a length"))
    } else if let Some(inner) = text.strip_prefix('{') {
        FieldType::Struct(ty(inner.strip_suffix('}').expect("a brace")))
    } else {
        prim(text)
    }
}

struct Case {
    what: &'static str,
    publisher: &'static str,
    subscriber: &'static str,
    /// The rule, without `plain.`, and the path.
    forward: &'static [&'static str],
    /// The same with publisher and subscriber swapped.
    backward: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        what: "the same",
        publisher: "T 16; x f64 0; y f32 8",
        subscriber: "T 16; y f32 8; x f64 0; _pad u8[4] 12",
        forward: &[],
        backward: &[],
    },
    Case {
        what: "a field after the last",
        publisher: "T 16; x f64 0; y f64 8",
        subscriber: "T 8; x f64 0",
        forward: &["appended_by_publisher y"],
        backward: &["appended_by_subscriber y"],
    },
    Case {
        what: "a struct after the last, with a gap before it",
        publisher: "T 12; x f64 0; y f32 8",
        subscriber: "T 32; x f64 0; y f32 8; at {P 16; z f64 0; w f64 8} 16",
        forward: &["appended_by_subscriber at"],
        backward: &["appended_by_publisher at"],
    },
    Case {
        what: "the size grows without a new field",
        publisher: "T 16; x f64 0",
        subscriber: "T 8; x f64 0",
        forward: &["size "],
        backward: &["size "],
    },
    Case {
        what: "a field in a gap",
        publisher: "T 16; x f64 0; y f32 8; z f32 12",
        subscriber: "T 16; x f64 0; y f32 8",
        forward: &["passed_over z"],
        backward: &["padding_filled z"],
    },
    Case {
        what: "a field in named padding",
        publisher: "T 16; x f64 0; y f32 8; z f32 12",
        subscriber: "T 16; x f64 0; y f32 8; _pad u8[4] 12",
        forward: &["passed_over z"],
        backward: &["padding_filled z"],
    },
    Case {
        what: "a field in reserved bytes",
        publisher: "T 16; x f64 0; y f32 8; z f32 12",
        subscriber: "T 16; x f64 0; y f32 8; _reserved0 u8[4] 12",
        forward: &["passed_over z"],
        backward: &["reserved_used z"],
    },
    Case {
        what: "a field in two reserved ones and beyond the end",
        publisher: "T 16; x f64 0; y f64 8",
        subscriber: "T 12; x f64 0; _reserved0 u8[2] 8; _reserved1 u16 10",
        forward: &["appended_by_publisher y"],
        backward: &["reserved_used y"],
    },
    Case {
        what: "a field partly in reserved bytes",
        publisher: "T 16; x f64 0; y f64 8",
        subscriber: "T 16; x f64 0; _reserved0 u8[4] 8",
        forward: &["passed_over y"],
        backward: &["padding_filled y"],
    },
    Case {
        what: "a field partly beyond the end, otherwise in a gap",
        publisher: "T 20; x f64 0; y f64 12",
        subscriber: "T 16; x f64 0",
        forward: &["appended_by_publisher y"],
        backward: &["padding_filled y"],
    },
    Case {
        what: "a field in reserved bytes of an inner struct",
        publisher: "T 16; legs {L 8; a f32 0; b f32 4}[2] 0",
        subscriber: "T 16; legs {L 8; a f32 0; _reserved f32 4}[2] 0",
        forward: &["passed_over legs[].b"],
        backward: &["reserved_used legs[].b"],
    },
    Case {
        what: "another name",
        publisher: "T 16; x f64 0; y f64 8",
        subscriber: "T 16; x f64 0; z f64 8",
        forward: &["renamed y"],
        backward: &["renamed z"],
    },
    Case {
        what: "other names, outside and inside",
        publisher: "T 8; a {P 8; x f64 0} 0",
        subscriber: "T 8; b {P 8; y f64 0} 0",
        forward: &["renamed a.x", "renamed a"],
        backward: &["renamed b.y", "renamed b"],
    },
    Case {
        what: "another name and another type",
        publisher: "T 8; a f32 0",
        subscriber: "T 8; b u32 0",
        forward: &["field_type a"],
        backward: &["field_type b"],
    },
    Case {
        what: "names are swapped",
        publisher: "T 16; x f64 0; y f64 8",
        subscriber: "T 16; y f64 0; x f64 8",
        forward: &["moved x", "moved y"],
        backward: &["moved y", "moved x"],
    },
    Case {
        what: "a field inserted in the middle",
        publisher: "T 16; x f64 0; y f64 8",
        subscriber: "T 24; x f64 0; new f64 8; y f64 16",
        forward: &["moved y", "overlap new"],
        backward: &["moved y"],
    },
    Case {
        what: "an existing name moves to a new field",
        publisher: "T 16; x f64 0; y f64 8",
        subscriber: "T 24; x f64 0; z f64 8; y f64 16",
        forward: &["moved y", "overlap z"],
        backward: &["moved y"],
    },
    Case {
        what: "a field that overlaps two",
        publisher: "T 8; x f32 0; y f32 4",
        subscriber: "T 8; z u16 2; y f32 4",
        forward: &["overlap z"],
        backward: &["overlap x"],
    },
    Case {
        what: "another type",
        publisher: "T 8; x f32 0; n u32 4",
        subscriber: "T 8; x f32 0; n i32 4",
        forward: &["field_type n"],
        backward: &["field_type n"],
    },
    Case {
        what: "a single value becomes an array",
        publisher: "T 8; x f32 0",
        subscriber: "T 8; x f32[2] 0",
        forward: &["field_type x"],
        backward: &["field_type x"],
    },
    Case {
        what: "other elements",
        publisher: "T 8; x f32[2] 0",
        subscriber: "T 8; x u32[2] 0",
        forward: &["field_type x"],
        backward: &["field_type x"],
    },
    Case {
        what: "more elements, also at the end",
        publisher: "T 8; x f32[2] 0",
        subscriber: "T 12; x f32[3] 0",
        forward: &["array_len x"],
        backward: &["array_len x"],
    },
    Case {
        what: "the dimensions are swapped",
        publisher: "T 24; x f32[2][3] 0",
        subscriber: "T 24; x f32[3][2] 0",
        forward: &["array_len x"],
        backward: &["array_len x"],
    },
    Case {
        what: "an inner struct of another name",
        publisher: "T 8; p {P 8; x f64 0} 0",
        subscriber: "T 8; p {Q 8; x f64 0} 0",
        forward: &["struct_name p"],
        backward: &["struct_name p"],
    },
    Case {
        what: "an inner struct that grows, also at the end",
        publisher: "T 16; x f64 0; p {P 8; x f64 0} 8",
        subscriber: "T 24; x f64 0; p {P 16; x f64 0; y f64 8} 8",
        forward: &["struct_size p"],
        backward: &["struct_size p"],
    },
    Case {
        what: "an inner struct that grows and has a changed field",
        publisher: "T 16; p {P 8; x f64 0} 0",
        subscriber: "T 16; p {P 16; x u64 0; y f64 8} 0",
        forward: &["field_type p.x", "struct_size p"],
        backward: &["field_type p.x", "struct_size p"],
    },
    Case {
        what: "another type name",
        publisher: "T 8; x f64 0",
        subscriber: "U 8; y u64 0",
        forward: &["type_name "],
        backward: &["type_name "],
    },
    Case {
        what: "data after one of them",
        publisher: "T+ 8; x f64 0",
        subscriber: "T 8; x f64 0",
        forward: &["tail "],
        backward: &["tail "],
    },
    Case {
        what: "data after both, and a header that grew",
        publisher: "T+ 8; x f64 0",
        subscriber: "T+ 16; x f64 0; y f64 8",
        forward: &["appended_by_subscriber y"],
        backward: &["appended_by_publisher y"],
    },
];

fn changes_between(publisher: &TypeDesc, subscriber: &TypeDesc) -> Vec<String> {
    let notes = compare(publisher, subscriber);
    let breaking = notes.iter().find(|note| note.breaking);
    match (compatible(publisher, subscriber), breaking) {
        (Ok(all), None) => assert_eq!(all, notes),
        (Err(mismatch), Some(note)) => {
            assert_eq!(mismatch.field_path, note.path);
            assert_eq!(
                (mismatch.publisher, mismatch.subscriber),
                (note.publisher.clone(), note.subscriber.clone())
            );
        }
        (verdict, _) => panic!("{verdict:?}, and {notes:?}"),
    }
    let short = |rule: &str| rule.strip_prefix("plain.").expect("one prefix").to_owned();
    notes.iter().map(|note| format!("{} {}", short(note.rule), note.path)).collect()
}

#[test]
fn each_rule_applies_as_in_the_table() {
    let mut seen = Vec::new();
    for case in CASES {
        let (p, s) = (TypeDesc::from(ty(case.publisher)), TypeDesc::from(ty(case.subscriber)));
        assert_eq!(changes_between(&p, &s), case.forward, "{}, forward", case.what);
        assert_eq!(changes_between(&s, &p), case.backward, "{}, backward", case.what);
        assert_eq!(changes_between(&p, &p), [""; 0], "{}, with itself", case.what);
        assert_eq!(changes_between(&p, &TypeDesc::Raw), [""; 0], "{}, raw", case.what);
        assert_eq!(changes_between(&TypeDesc::Raw, &p), ["kind "], "{}, from raw", case.what);
        seen.extend(case.forward.iter().chain(case.backward).map(|t| t.split(' ').next().unwrap()));
    }
    seen.push("kind");
    for rule in Rule::ALL {
        let id = rule.id().strip_prefix("plain.").unwrap();
        assert!(seen.contains(&id), "no case covers {id}");
    }
}

#[test]
fn each_rule_is_in_the_document_with_its_verdict() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/types.md");
    let document = std::fs::read_to_string(path).expect("docs/design/types.md");
    for rule in Rule::ALL {
        let verdict = if rule.is_breaking() { "incompatible" } else { "compatible" };
        let row = format!("| `{}` | {verdict} |", rule.id());
        assert!(document.contains(&row), "docs/design/types.md has no row {row}");
    }
    let rows = document.lines().filter(|line| line.starts_with("| `plain."));
    assert_eq!(rows.count(), Rule::ALL.len(), "docs/design/types.md has rows without a rule");
}

/// Rules that reject types although the bytes could be read; the document gives the reasons.
const ACCEPTED_DISAGREEMENTS: &[Rule] =
    &[Rule::TypeName, Rule::Tail, Rule::ArrayLen, Rule::StructName, Rule::StructSize];

/// A struct in a message: its offset, depth and type.
type Level<'a> = (usize, usize, &'a PlainType);

/// A number in a message.
struct Leaf<'a> {
    offset: usize,
    prim: Prim,
    /// The structs and arrays around it, from the outside in.
    shape: String,
    /// The structs around it, each with the index of the field.
    levels: Vec<(Level<'a>, usize)>,
}

/// All numbers of a type; adds the offsets of reserved bytes to `zeros`.
fn leaves<'a>(
    within: (&[(Level<'a>, usize)], &str),
    level: Level<'a>,
    leaves_out: &mut Vec<Leaf<'a>>,
    zeros: &mut Vec<std::ops::Range<usize>>,
) {
    for (index, field) in level.2.fields.iter().enumerate() {
        let start = level.0 + field.offset;
        if field.is_reserved() {
            zeros.push(start..start + field.ty.size());
        }
        if field.is_padding() {
            continue;
        }
        let levels = [within.0, &[(level, index)]].concat();
        leaves_of((&levels, within.1), (start, level.1, &field.ty), leaves_out, zeros);
    }
}

fn leaves_of<'a>(
    within: (&[(Level<'a>, usize)], &str),
    (start, depth, ty): (usize, usize, &'a FieldType),
    out: &mut Vec<Leaf<'a>>,
    zeros: &mut Vec<std::ops::Range<usize>>,
) {
    let (levels, shape) = within;
    match ty {
        FieldType::Prim(prim) => out.push(Leaf {
            offset: start,
            prim: *prim,
            shape: shape.to_owned(),
            levels: levels.to_vec(),
        }),
        FieldType::Array { of, len } => {
            for i in 0..*len as usize {
                let shape = format!("{shape}[");
                leaves_of((levels, &shape), (start + i * of.size(), depth, of), out, zeros);
            }
        }
        FieldType::Struct(plain) => {
            leaves((levels, &format!("{shape}.")), (start, depth + 1, plain), out, zeros);
        }
    }
}

fn all_leaves(plain: &PlainType) -> (Vec<Leaf<'_>>, Vec<std::ops::Range<usize>>) {
    let (mut out, mut zeros) = (Vec::new(), Vec::new());
    leaves((&[], ""), (0, 0, plain), &mut out, &mut zeros);
    (out, zeros)
}

/// A message of the writer: every byte except the reserved ones is nonzero; bytes in gaps are `garbage`.
fn message(writer: &PlainType, garbage: u8) -> Vec<u8> {
    let (leaves, zeros) = all_leaves(writer);
    let mut bytes = vec![garbage; writer.size];
    for range in zeros {
        bytes[range].fill(0);
    }
    for leaf in leaves {
        let bytes = &mut bytes[leaf.offset..leaf.offset + leaf.prim.size()];
        bytes.iter_mut().enumerate().for_each(|(i, b)| *b = (leaf.offset + i) as u8 | 1);
    }
    bytes
}

/// Whether the reader gets the writer's value for a number, or a default if the writer does not have it.
fn reads(leaf: &Leaf<'_>, writer: &[Leaf<'_>], messages: &[(Vec<u8>, Vec<u8>)]) -> bool {
    let range = leaf.offset..leaf.offset + leaf.prim.size();
    let same =
        |w: &&Leaf<'_>| w.offset == leaf.offset && w.prim == leaf.prim && w.shape == leaf.shape;
    let Some(theirs) = writer.iter().find(same) else {
        // A default: zero in every message, and the writer has no field of this name elsewhere.
        let zero = messages.iter().all(|(_, read)| read[range.clone()].iter().all(|b| *b == 0));
        let elsewhere = leaf.levels.iter().any(|((start, depth, plain), index)| {
            let field = &plain.fields[*index];
            writer.iter().flat_map(|w| &w.levels).any(|((s, d, p), i)| {
                let other = &p.fields[*i];
                (s, d) == (start, depth) && other.name == field.name && other.offset != field.offset
            })
        });
        return zero && !elsewhere;
    };
    let value_kept =
        messages.iter().all(|(sent, read)| sent.get(range.clone()) == read.get(range.clone()));
    let has = |plain: &PlainType, name: &str| {
        plain.fields.iter().any(|field| !field.is_padding() && field.name == name)
    };
    value_kept
        && leaf.levels.iter().zip(&theirs.levels).all(|(((_, _, ours), i), ((_, _, theirs), j))| {
            let (our, their) = (&ours.fields[*i], &theirs.fields[*j]);
            our.offset == their.offset
                && (our.name == their.name || (!has(theirs, &our.name) && !has(ours, &their.name)))
        })
}

/// One change, selected by numbers; does nothing if the result would be invalid.
fn edited(t: &PlainType, (what, which, detail): (usize, usize, usize), serial: usize) -> PlainType {
    let mut new = t.clone();
    let count = new.fields.len();
    let one = which % count.max(1);
    let some_prim = || FieldType::Prim(Prim::ALL[detail % Prim::ALL.len()]);
    match what {
        0 => {
            let added = field(&format!("added{serial}"), new.size + detail % 3, some_prim());
            new.size = added.offset + added.ty.size() + detail % 2;
            new.fields.push(added);
        }
        1 => {
            let added = field(&format!("added{serial}"), detail % (new.size + 1), some_prim());
            new.fields.insert(one, added);
        }
        2 => new.size += 1 + detail % 8,
        3 if count > 0 => drop(new.fields.remove(one)),
        4 if count > 0 => new.fields[one].name = format!("renamed{serial}"),
        5 if count > 0 => new.fields[one].name = format!("_reserved{serial}"),
        6 if count > 0 => new.fields[one].name = format!("_pad{serial}"),
        7 if count > 0 => new.fields[one].ty = some_prim(),
        8 if count > 0 => new.fields[one].offset = detail % (new.size + 1),
        9 if count > 1 => {
            let other = detail % count;
            let name = new.fields[one].name.clone();
            new.fields[one].name = std::mem::replace(&mut new.fields[other].name, name);
        }
        10 if count > 1 => {
            let other = detail % count;
            let offset = new.fields[one].offset;
            new.fields[one].offset = std::mem::replace(&mut new.fields[other].offset, offset);
        }
        11 if count > 0 => {
            let last = new.fields.pop().unwrap();
            new.size = last.offset;
        }
        12.. if count > 0 => match &mut new.fields[one].ty {
            FieldType::Array { len, .. } if detail.is_multiple_of(2) => {
                *len = 1 + detail as u32 % 4
            }
            FieldType::Prim(_) => {}
            ty if has_struct(ty) => {
                let inside = inner(ty);
                let deeper = (detail % 12, which / 3, detail / 12);
                if detail % 13 == 12 {
                    inside.name = format!("Q{serial}");
                } else {
                    *inside = edited(inside, deeper, serial);
                    if inside.fields.iter().all(Field::is_padding) {
                        return t.clone();
                    }
                }
            }
            FieldType::Array { .. } | FieldType::Struct(_) => {}
        },
        _ => {}
    }
    if new.validate().is_ok() { new } else { t.clone() }
}

fn has_struct(ty: &FieldType) -> bool {
    match ty {
        FieldType::Prim(_) => false,
        FieldType::Array { of, .. } => has_struct(of),
        FieldType::Struct(_) => true,
    }
}

fn agree(writer: &PlainType, reader: &PlainType) -> std::result::Result<(), TestCaseError> {
    let messages = [0xA5, 0x5A].map(|garbage| {
        let sent = message(writer, garbage);
        let read = reader.fit(&sent).into_owned();
        (sent, read)
    });
    let (writers, _) = all_leaves(writer);
    let (readers, _) = all_leaves(reader);
    let wrong = readers.iter().find(|leaf| !reads(leaf, &writers, &messages));
    let notes = compare(&writer.clone().into(), &reader.clone().into());
    let breaking = || notes.iter().filter(|note| note.breaking);
    // A struct is checked as a whole, including its gaps and reserved bytes.
    let as_a_whole = [Rule::PaddingFilled, Rule::Overlap, Rule::FieldType];
    let is_one_of = |rules: &[Rule], note: &TypeChange| rules.iter().any(|r| r.id() == note.rule);
    let on_purpose = |note: &TypeChange| {
        is_one_of(ACCEPTED_DISAGREEMENTS, note)
            || (is_one_of(&as_a_whole, note)
                && [&note.publisher, &note.subscriber].iter().any(|text| text.contains("struct ")))
    };
    if breaking().next().is_none() {
        let at = wrong.map(|leaf| leaf.offset);
        prop_assert!(at.is_none(), "byte {at:?} is read wrongly with {notes:?}");
    } else if breaking().any(|note| !on_purpose(note)) {
        prop_assert!(wrong.is_some(), "everything is read correctly with {notes:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn verdict_matches_the_result_of_reading(
        t in any_type(),
        before in prop::collection::vec((0_usize..16, 0_usize..64, 0_usize..1000), 0..4),
        edits in prop::collection::vec((0_usize..16, 0_usize..64, 0_usize..1000), 0..4),
    ) {
        // First add gaps and reserved bytes, which the strategy does not create.
        let old = before.iter().enumerate().fold(t, |t, (i, edit)| edited(&t, *edit, 100 + i));
        let new = edits.iter().enumerate().fold(old.clone(), |t, (i, edit)| edited(&t, *edit, i));
        agree(&old, &new)?;
        agree(&new, &old)?;
    }
}
