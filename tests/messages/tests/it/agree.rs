//! Generated code and `Dynamic` accept the same bytes for the same message.
//!
//! Messages are built field by field from the descriptor, so a new field or type is tested automatically.
//! The bytes of a message are an encoding by one of the two, two concatenated encodings (which is a merge),
//! or an encoding with some changed bytes.

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use rnet::Message;
use rnet::protobuf::prost;
use rnet::schema::{Dynamic, Schema};
use rnet_message_tests::{Loose, legacy, my, r#type};
use rnet_schema::prost_reflect::{
    Cardinality, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use rnet_schema::reflect::{ReflectDynamic, ReflectSchema};

use crate::common;
use common::schema_of;

/// The largest depth of nested messages.
const MAX_DEPTH: usize = 4;

fn message(rng: &mut TestRng, of: &MessageDescriptor, depth: usize) -> DynamicMessage {
    let mut made = DynamicMessage::new(of.clone());
    for field in of.fields() {
        let is_required = field.cardinality() == Cardinality::Required;
        let holds_message = matches!(field.kind(), Kind::Message(_));
        if !is_required && ((holds_message && depth == 0) || rng.random_bool(0.5)) {
            continue;
        }
        let below = depth.saturating_sub(1);
        let len = rng.random_range(0..4);
        let value = if field.is_map() {
            let entries = (0..len).map(|_| entry(rng, &field, below));
            Value::Map(entries.collect())
        } else if field.is_list() {
            Value::List((0..len).map(|_| single(rng, &field.kind(), below)).collect())
        } else {
            single(rng, &field.kind(), below)
        };
        made.set_field(&field, value);
    }
    made
}

fn entry(rng: &mut TestRng, field: &FieldDescriptor, depth: usize) -> (MapKey, Value) {
    let Kind::Message(entry) = field.kind() else { unreachable!("a map has entries") };
    let key = single(rng, &entry.map_entry_key_field().kind(), depth);
    let value = single(rng, &entry.map_entry_value_field().kind(), depth);
    (key.into_map_key().expect("a key"), value)
}

fn text(rng: &mut TestRng) -> String {
    let chars = ['a', 'ß', '\0', '関', '🤖', ' '];
    (0..rng.random_range(0..12)).map(|_| chars[rng.random_range(0..chars.len())]).collect()
}

/// Without NaN, which is not equal to itself.
fn single(rng: &mut TestRng, kind: &Kind, depth: usize) -> Value {
    let number = match rng.random_range(0..3) {
        0 => rng.random_range(0..3),
        1 => rng.random_range(0..300),
        _ => rng.random::<u64>(),
    };
    match kind {
        Kind::Double => Value::F64(number as f64 * -0.37),
        Kind::Float => Value::F32(number as f32 * -0.37),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(number as i32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(number as i64),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(number as u32),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(number),
        Kind::Bool => Value::Bool(number % 2 == 1),
        Kind::String => Value::String(text(rng)),
        Kind::Bytes => Value::Bytes(text(rng).into_bytes().into()),
        Kind::Message(of) => Value::Message(message(rng, of, depth)),
        Kind::Enum(of) => {
            let values: Vec<i32> = of.values().map(|value| value.number()).collect();
            Value::EnumNumber(values[rng.random_range(0..values.len())])
        }
    }
}

/// Prost and `Dynamic` read these bytes; if both can read them, the results are equal. `held` was decoded
/// before.
fn hold_together<T>(schema: &Schema, bytes: &[u8], held: &mut T) -> bool
where
    T: Message<DecodeBuffer = T> + prost::Message + Default + Clone + PartialEq + std::fmt::Debug,
{
    let fresh = <T as prost::Message>::decode(bytes);
    let again = <T as rnet::protobuf::MessageCodec>::decode(bytes, held);
    assert_eq!(fresh.is_ok(), again.is_ok(), "{fresh:?} {again:?}");
    let dynamic = Dynamic::decode(schema, bytes);
    let Ok(fresh) = fresh else {
        assert_eq!(*held, T::default(), "after an error the message is empty");
        assert!(dynamic.is_err(), "prost refuses what Dynamic accepts: {dynamic:?}");
        return false;
    };
    // A changed byte can make a NaN, which is not equal to itself.
    if fresh == fresh.clone() {
        assert_eq!(*held, fresh, "reused memory changes the result");
    }
    let Ok(dynamic) = dynamic else { return false };
    let ours = Dynamic::decode(schema, &prost::Message::encode_to_vec(&fresh))
        .expect("cannot decode the bytes of prost");
    // A required field of proto2 cannot be "not set" in prost.
    let lacks_required =
        descriptor_requires(schema).any(|field| !dynamic.message().has_field(&field));
    if dynamic == dynamic.clone() && !lacks_required {
        assert_eq!(ours.to_json(&Default::default()), dynamic.to_json(&Default::default()));
    }
    true
}

fn descriptor_requires(schema: &Schema) -> impl Iterator<Item = FieldDescriptor> {
    schema.descriptor().fields().filter(|field| field.cardinality() == Cardinality::Required)
}

fn agrees<T>(rng: &mut TestRng)
where
    T: Message<DecodeBuffer = T> + prost::Message + Default + Clone + PartialEq + std::fmt::Debug,
{
    let schema = schema_of::<T>();
    let descriptor = schema.descriptor();
    let mut held = T::default();
    let encode =
        |rng: &mut TestRng| prost::Message::encode_to_vec(&message(rng, descriptor, MAX_DEPTH));
    let (one, two) = (encode(rng), encode(rng));
    for bytes in [&one, &two, &[&*two, &*one].concat(), &one, &Vec::new()] {
        assert!(hold_together(&schema, bytes, &mut held), "valid bytes are refused");
    }
    for _ in 0..8 {
        let mut bytes = one.clone();
        for _ in 0..rng.random_range(1..4) {
            if let Some(last) = bytes.len().checked_sub(1) {
                bytes[rng.random_range(0..=last)] = rng.random();
            }
        }
        bytes.truncate(rng.random_range(0..=bytes.len()));
        hold_together(&schema, &bytes, &mut held);
    }
}

macro_rules! agree {
    ($($name:ident: $type:ty,)*) => { proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]
        $(#[test]
        fn $name(mut rng in any::<[u8; 32]>().prop_map(|seed| TestRng::from_seed(
            proptest::test_runner::RngAlgorithm::ChaCha, &seed,
        ))) {
            agrees::<$type>(&mut rng);
        })*
    } };
}

agree! {
    plan: my::robot::Plan,
    step: my::robot::plan::Step,
    loose: Loose,
    awkward: r#type::r#fn::r#loop::Self_,
    old: legacy::Old,
    joint_state: rnet::msgs::JointState,
    joint_command: rnet::msgs::JointCommand,
    diagnostic: rnet::msgs::Diagnostic,
    laser_scan: rnet::msgs::LaserScan,
    scene_update: rnet::msgs::SceneUpdate,
}
