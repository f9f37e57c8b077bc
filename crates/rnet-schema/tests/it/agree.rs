//! The verdict agrees with the result of decoding.
//!
//! The tests use random types, random edits of them, and random messages of the writer. Compatible: every
//! message decodes, and every field that both sides know by number and name has the same value. Incompatible:
//! some message does not decode or is misread, unless the rule rejects it on purpose
//! (`ACCEPTED_DISAGREEMENTS`).

use crate::common;
use rnet_schema::reflect::{ReflectDynamic, ReflectSchema};

use common::schema;
use proptest::prelude::*;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};
use rnet_schema::prost_reflect;
use rnet_schema::{Dynamic, Rule, Schema, Severity, check};
use std::collections::BTreeMap;

/// Rules that reject although this decoder yields the same values; docs/design/types.md has the reasons.
const ACCEPTED_DISAGREEMENTS: &[Rule] = &[
    Rule::FieldTypeLossless,
    Rule::TypeReplaced,
    Rule::EnumValueRemoved,
    Rule::EnumValueClosed,
    Rule::FieldRequired,
];

const SCALARS: &[&str] = &[
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32",
    "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes",
];
const MESSAGES: usize = 3;

#[derive(Clone, Debug)]
struct Field {
    number: usize,
    name: String,
    /// Index of the type: the scalars, then `E`, then the messages.
    of: usize,
    /// Single, optional, repeated, map by string, map by int32, in the oneof.
    label: usize,
}

#[derive(Clone, Debug)]
struct Model {
    messages: Vec<(String, Vec<Field>)>,
    /// Name and number.
    values: Vec<(String, i32)>,
    reserved: Vec<i32>,
}

impl Model {
    fn text(&self) -> String {
        let values: Vec<String> = self.values.iter().map(|(n, v)| format!("{n} = {v};")).collect();
        let reserved: Vec<String> =
            self.reserved.iter().map(|n| format!("reserved {n};")).collect();
        let mut text = format!("enum E {{ ZERO = 0; {} {} }}", values.concat(), reserved.concat());
        for (i, (name, fields)) in self.messages.iter().enumerate() {
            let mut oneof = String::new();
            text += &format!(" message {name} {{ ");
            for field in fields {
                let of = self.type_text(i, field.of);
                let (name, number) = (&field.name, field.number);
                match field.label {
                    0 => text += &format!("{of} {name} = {number}; "),
                    1 => text += &format!("optional {of} {name} = {number}; "),
                    2 => text += &format!("repeated {of} {name} = {number}; "),
                    3 => text += &format!("map<string, {of}> {name} = {number}; "),
                    4 => text += &format!("map<int32, {of}> {name} = {number}; "),
                    _ => oneof += &format!("{of} {name} = {number}; "),
                }
            }
            if !oneof.is_empty() {
                text += &format!("oneof o {{ {oneof} }} ");
            }
            text += "}";
        }
        text
    }

    /// A message refers to later ones and to itself: every type is reached within a few steps.
    fn type_text(&self, message: usize, of: usize) -> &str {
        match of.checked_sub(SCALARS.len()) {
            None => SCALARS[of],
            Some(0) => "E",
            Some(n) => &self.messages[(message + n - 1).min(MESSAGES - 1)].0,
        }
    }

    /// One change, selected by four numbers. Keeps the oneof and the names valid, so that the text compiles.
    fn edit(
        &mut self,
        (what, message, field, detail): (usize, usize, usize, usize),
        serial: usize,
    ) {
        let message = message % MESSAGES;
        let kinds = SCALARS.len() + 1 + MESSAGES;
        let root = self.messages[0].1.len();
        let fields = &mut self.messages[message].1;
        let count = fields.len();
        let one = field % count.max(1);
        match what {
            0 => {
                let (number, name) = (200 + serial, format!("added{serial}"));
                fields.push(Field { number, name, of: detail % kinds, label: detail % 6 });
            }
            1 if count > 1 && (message > 0 || root > 1) => {
                fields.remove(one);
            }
            2 if count > 0 => fields[one].name = format!("renamed{serial}"),
            3 if count > 0 => fields[one].of = detail % kinds,
            4 if count > 0 => fields[one].number = 300 + serial,
            5 if count > 0 => fields[one].label = detail % 6,
            6 if count > 1 => {
                let other = detail % count;
                let name = fields[one].name.clone();
                fields[one].name = std::mem::replace(&mut fields[other].name, name);
            }
            7 => self.values.push((format!("ADDED{serial}"), 50 + serial as i32)),
            8 if !self.values.is_empty() => {
                let (_, number) = self.values.remove(field % self.values.len());
                if detail.is_multiple_of(2) {
                    self.reserved.push(number);
                }
            }
            9 if !self.values.is_empty() => {
                let at = field % self.values.len();
                self.values[at].0 = format!("RENAMED{serial}");
            }
            10 if !self.values.is_empty() => {
                let at = field % self.values.len();
                self.values[at].1 = 90 + serial as i32;
            }
            11 if count > 0 => fields[one].label = [0, 1, 5][detail % 3],
            12 if count > 1 => {
                for at in [one, detail % count] {
                    fields[at].label = 5;
                }
            }
            13 if message > 0 => self.messages[message].0 = format!("Renamed{serial}"),
            _ => {}
        }
    }
}

fn model() -> impl Strategy<Value = Model> {
    let field = (0..SCALARS.len() + 1 + MESSAGES, 0..6_usize);
    let message = prop::collection::vec(field, 1..5);
    prop::collection::vec(message, MESSAGES).prop_map(|messages| Model {
        messages: messages
            .into_iter()
            .enumerate()
            .map(|(i, fields)| {
                let name = ["M", "M1", "M2"][i].to_owned();
                let field = |(n, (of, label)): (usize, (usize, usize))| Field {
                    number: n + 1,
                    name: format!("f{n}"),
                    of,
                    label,
                };
                (name, fields.into_iter().enumerate().map(field).collect())
            })
            .collect(),
        values: vec![("ONE".into(), 1), ("MINUS".into(), -5), ("BIG".into(), 70_000)],
        reserved: Vec::new(),
    })
}

/// xorshift64*, so that proptest can shrink and print the one number that determines a message.
struct Random {
    seed: u64,
    /// Whether enum fields get an undeclared number, as from a newer writer.
    undeclared: bool,
}

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn value(&mut self, kind: &Kind, depth: usize) -> Value {
        match kind {
            Kind::Double => Value::F64(self.pick(&[1.5, -2.25e100, 0.0, f64::INFINITY])),
            Kind::Float => Value::F32(self.pick(&[1.5, -3.0e20, 0.0])),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                Value::I32(self.pick(&[-1, 7, 300, i32::MIN, i32::MAX, 0]))
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                Value::I64(self.pick(&[-1, 7, 300, i64::MIN, i64::MAX, 0]))
            }
            Kind::Uint32 | Kind::Fixed32 => Value::U32(self.pick(&[7, 300, u32::MAX, 0])),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(self.pick(&[7, 300, u64::MAX, 0])),
            Kind::Bool => Value::Bool(self.below(4) > 0),
            Kind::String => Value::String(self.pick(&["", "é", "abcabcabc", "x"]).to_owned()),
            Kind::Bytes => {
                Value::Bytes(self.pick(&[&b""[..], b"\xff\xfe\x80", b"\0"]).to_vec().into())
            }
            Kind::Enum(of) => {
                let mut numbers: Vec<i32> = of.values().map(|value| value.number()).collect();
                numbers.extend(self.undeclared.then_some(-7));
                Value::EnumNumber(self.pick(&numbers))
            }
            Kind::Message(of) => {
                let mut message = DynamicMessage::new(of.clone());
                self.fill(&mut message, depth + 1);
                Value::Message(message)
            }
        }
    }

    fn fill(&mut self, message: &mut DynamicMessage, depth: usize) {
        const MAX_DEPTH: usize = 4;
        for field in message.descriptor().fields() {
            let deep = field.kind().as_message().is_some_and(|m| !m.is_map_entry());
            if (deep && depth >= MAX_DEPTH) || self.below(5) == 0 {
                continue;
            }
            let value = if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
                let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
                if depth >= MAX_DEPTH && value.kind().as_message().is_some() {
                    continue;
                }
                let key = self.value(&key.kind(), depth).into_map_key().expect("a key");
                Value::Map([(key, self.value(&value.kind(), depth))].into())
            } else if field.is_list() {
                let kind = field.kind();
                let count = if deep { 1 } else { 1 + self.below(3) };
                Value::List((0..count).map(|_| self.value(&kind, depth)).collect())
            } else {
                self.value(&field.kind(), depth)
            };
            message.set_field(&field, value);
        }
    }
}

/// Whether the reader sees the writer's values in all fields that both know.
fn same_message(w: &DynamicMessage, r: &DynamicMessage) -> bool {
    w.descriptor().fields().all(|wf| {
        let by_number = r.descriptor().get_field(wf.number());
        let by_name = r.descriptor().get_field_by_name(wf.name());
        [by_number, by_name].into_iter().flatten().all(|rf| {
            let is_message =
                |f: &FieldDescriptor| f.supports_presence() && f.kind().as_message().is_some();
            // The defaults of a recursive type have no end: absent messages are compared as absent.
            if is_message(&wf) && is_message(&rf) && !(w.has_field(&wf) && r.has_field(&rf)) {
                return w.has_field(&wf) == r.has_field(&rf);
            }
            same_value(&w.get_field(&wf), &wf, &r.get_field(&rf), &rf)
        })
    })
}

fn same_value(w: &Value, wf: &FieldDescriptor, r: &Value, rf: &FieldDescriptor) -> bool {
    match (w, r) {
        (Value::Message(w), Value::Message(r)) => same_message(w, r),
        (Value::List(w), Value::List(r)) => {
            w.len() == r.len() && w.iter().zip(r).all(|(w, r)| same_value(w, wf, r, rf))
        }
        (Value::Map(w), Value::Map(r)) => {
            let (Kind::Message(we), Kind::Message(re)) = (wf.kind(), rf.kind()) else {
                return false;
            };
            let (wf, rf) = (we.map_entry_value_field(), re.map_entry_value_field());
            let key = |k: &MapKey| format!("{:?}", number(&k.clone().into()).ok_or(k.clone()));
            let r: BTreeMap<String, &Value> = r.iter().map(|(k, v)| (key(k), v)).collect();
            w.len() == r.len()
                && w.iter().all(|(k, w)| r.get(&key(k)).is_some_and(|r| same_value(w, &wf, r, &rf)))
        }
        (Value::EnumNumber(w), Value::EnumNumber(r)) => {
            let (Kind::Enum(we), Kind::Enum(re)) = (wf.kind(), rf.kind()) else { return false };
            let meant = we.get_value(*w).and_then(|value| re.get_value_by_name(value.name()));
            w == r && meant.is_none_or(|meant| meant.number() == *r)
        }
        (Value::F64(w), Value::F64(r)) => w.to_bits() == r.to_bits(),
        (Value::F32(w), Value::F32(r)) => w.to_bits() == r.to_bits(),
        (w, r) => w == r || number(w).is_some_and(|w| Some(w) == number(r)),
    }
}

fn number(value: &Value) -> Option<i128> {
    Some(match value {
        Value::Bool(v) => i128::from(*v),
        Value::I32(v) | Value::EnumNumber(v) => i128::from(*v),
        Value::I64(v) => i128::from(*v),
        Value::U32(v) => i128::from(*v),
        Value::U64(v) => i128::from(*v),
        _ => return None,
    })
}

/// Decodes a random message of the writer as the reader.
fn arrives(writer: &Schema, reader: &Schema, random: &mut Random) -> Result<(), String> {
    let mut message = DynamicMessage::new(writer.descriptor().clone());
    random.fill(&mut message, 1);
    let bytes = prost::Message::encode_to_vec(&message);
    let read = Dynamic::decode(reader, &bytes).map_err(|error| error.to_string())?;
    match same_message(&message, read.message()) {
        true => Ok(()),
        false => Err(format!("writer sent {message}, reader sees {}", read.message())),
    }
}

fn holds(writer: &Schema, reader: &Schema, seed: u64) -> Result<(), String> {
    /// Number of messages that must all be read correctly.
    const ACCEPTED_SAMPLES: usize = 24;
    /// Number of messages of which one must be misread.
    const REFUSED_SAMPLES: usize = 600;
    let verdict = check(writer, reader);
    let mut random = Random { seed: seed | 1, undeclared: false };
    if verdict.compatible {
        return (0..ACCEPTED_SAMPLES).try_for_each(|_| arrives(writer, reader, &mut random));
    }
    let breaking = verdict.changes.iter().filter(|c| c.severity == Severity::Breaking);
    let on_purpose = breaking.clone().any(|change| ACCEPTED_DISAGREEMENTS.contains(&change.rule));
    if on_purpose && breaking.clone().all(|change| ACCEPTED_DISAGREEMENTS.contains(&change.rule)) {
        return Ok(());
    }
    random.undeclared = true;
    let one_fails = (0..REFUSED_SAMPLES).any(|_| arrives(writer, reader, &mut random).is_err());
    if one_fails {
        Ok(())
    } else {
        Err(format!("rejected, but {REFUSED_SAMPLES} messages are read correctly:\n{verdict}"))
    }
}

/// Each scalar type against each other one, single, repeated and in maps; also checks that lossless
/// conversions lose nothing.
#[test]
fn each_pair_of_types_agrees() {
    let kinds: Vec<&str> = SCALARS.iter().copied().chain(["E", "I", "J"]).collect();
    let rest = "enum E { ZERO = 0; ONE = 1; MINUS = -5; BIG = 70000; } \
        message I { int32 a = 1; string s = 2; } message J { int32 a = 1; double d = 2; }";
    let mut wrong = String::new();
    for (n, writer) in kinds.iter().enumerate() {
        for (m, reader) in kinds.iter().enumerate() {
            for label in
                ["{} x = 1;", "optional {} x = 1;", "repeated {} x = 1;", "map<string, {}> x = 1;"]
            {
                let text = |of: &str| format!("{rest} message M {{ {} }}", label.replace("{}", of));
                let (w, r) = (schema(&text(writer)), schema(&text(reader)));
                let seed = (1 + n * 100 + m) as u64;
                let verdict = check(&w, &r);
                let lossless =
                    verdict.first_breaking().is_some_and(|c| c.rule == Rule::FieldTypeLossless);
                // `bytes` hold a message without loss, but never compare equal to it.
                let opaque = lossless && *reader == "bytes";
                let mut random = Random { seed, undeclared: false };
                let result = match lossless && !opaque {
                    true => (0..50).try_for_each(|_| arrives(&w, &r, &mut random)),
                    false => holds(&w, &r, seed),
                };
                if let Err(why) = result {
                    wrong += &format!("\n{writer} -> {reader} as {label}: {why}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdict_matches_the_result_of_decoding(
        old in model(),
        edits in prop::collection::vec((0..14_usize, 0..64_usize, 0..64_usize, 0..4096_usize), 0..3),
        seed: u64,
    ) {
        let mut new = old.clone();
        for (serial, edit) in edits.into_iter().enumerate() {
            new.edit(edit, serial);
        }
        let (old, new) = (old.text(), new.text());
        let (writer, reader) = (schema(&old), schema(&new));
        for (w, r) in [(&writer, &reader), (&reader, &writer), (&writer, &writer)] {
            if let Err(why) = holds(w, r, seed) {
                return Err(TestCaseError::fail(format!("old {old}\nnew {new}\n{} -> {}: {why}", w.hash(), r.hash())));
            }
        }
        prop_assert!(check(&writer, &writer).changes.is_empty());
        // A type that was sent is still the same type.
        let travelled = Schema::from_descriptor_set(writer.descriptor_set(), "M").map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(travelled.descriptor_set(), writer.descriptor_set());
        prop_assert_eq!(travelled, writer);
    }
}
