//! Validates one type of a descriptor set. Only validated types reach prost-reflect, which expects
//! descriptors from compilers and panics on some inputs that no compiler writes.

use super::{Entry, Index, Item, invalid, is_map_entry, join, target_of};
use crate::error::SchemaError;
use crate::limits::{
    MAX_SCHEMA_FULL_NAME_LEN_BYTES, MAX_SCHEMA_LOOKUPS, MAX_SCHEMA_NAME_LEN_BYTES,
};
use prost_reflect::DescriptorPool;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, MessageOptions};
use std::collections::{BTreeSet, HashMap};

type Result<T> = std::result::Result<T, SchemaError>;

pub(super) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The full name of a declaration in `scope`; checks both lengths.
pub(super) fn full_name(scope: &str, name: &str) -> Result<String> {
    let limit = |what: &str, limit_name, limit, found| {
        let what = format!("length in bytes of {what} in {scope:?}");
        Err(SchemaError::Limit { what, limit_name, limit, found })
    };
    if name.len() > MAX_SCHEMA_NAME_LEN_BYTES {
        let (name_of, max) = ("MAX_SCHEMA_NAME_LEN_BYTES", MAX_SCHEMA_NAME_LEN_BYTES);
        return limit("a name", name_of, max, name.len());
    }
    if !is_identifier(name) {
        let why = format!(
            "{name:?} is not a valid name: use letters, digits and `_`, and do not start with a digit"
        );
        return Err(invalid(scope, why));
    }
    let full = join(scope, name);
    if full.len() > MAX_SCHEMA_FULL_NAME_LEN_BYTES {
        let (name_of, max) = ("MAX_SCHEMA_FULL_NAME_LEN_BYTES", MAX_SCHEMA_FULL_NAME_LEN_BYTES);
        return limit("a full name", name_of, max, full.len());
    }
    Ok(full)
}

/// prost-reflect's time depends on this number, which it does not limit.
pub(super) fn lookups(index: &Index<'_>, reached: &BTreeSet<String>) -> Result<()> {
    let values_of = |field: &FieldDescriptorProto| match target_of(field).map(|n| index.get(n)) {
        Some(Some(Entry { item: Item::Enum(e), .. })) => e.value.len(),
        _ => 0,
    };
    let of = |entry: &Entry<'_>| match entry.item {
        Item::Message(m) => {
            let with_default = m.field.iter().filter(|field| field.default_value.is_some());
            m.field.len() * m.reserved_range.len() + with_default.map(values_of).sum::<usize>()
        }
        Item::Enum(e) => e.value.len() * e.reserved_range.len(),
    };
    let found = reached.iter().filter_map(|name| index.get(name)).map(of).sum();
    if found <= MAX_SCHEMA_LOOKUPS {
        return Ok(());
    }
    let what = "comparisons of fields and enum values".to_owned();
    let (limit_name, limit) = ("MAX_SCHEMA_LOOKUPS", MAX_SCHEMA_LOOKUPS);
    Err(SchemaError::Limit { what, limit_name, limit, found })
}

/// Checks a message that the root reaches.
pub(super) fn message(
    index: &Index<'_>,
    full: &str,
    message: &DescriptorProto,
    proto3: bool,
) -> Result<()> {
    if message.options.as_ref().is_some_and(MessageOptions::message_set_wire_format) {
        return Err(invalid(full, "the message-set wire format is not supported"));
    }
    if full.starts_with("google.protobuf.") {
        well_known(full, message)?;
    }
    let (mut numbers, mut names) = (BTreeSet::new(), BTreeSet::new());
    // Counted in one pass: a message may have as many oneofs as fields.
    let mut members: Members = HashMap::new();
    for oneof in message.field.iter().filter_map(|field| field.oneof_index) {
        *members.entry(oneof).or_default() += 1;
    }
    for field in &message.field {
        let at = full_name(full, field.name())?;
        if !names.insert(field.name()) {
            return Err(invalid(&at, "two fields have this name"));
        }
        if !numbers.insert(field.number()) {
            let why = format!("number {} is used by another field", field.number());
            return Err(invalid(&at, why));
        }
        self::field(index, &at, (message, &members), field, proto3)
            .map_err(|why| invalid(&at, why))?;
    }
    for oneof in &message.oneof_decl {
        let at = full_name(full, oneof.name())?;
        if !names.insert(oneof.name()) {
            return Err(invalid(&at, "a field or another oneof has this name"));
        }
    }
    for name in &message.reserved_name {
        if name.len() > MAX_SCHEMA_NAME_LEN_BYTES {
            return Err(invalid(full, "a reserved name is too long"));
        }
    }
    if is_map_entry(message) { map_entry(full, message) } else { Ok(()) }
}

pub(super) fn enumeration(full: &str, enumeration: &EnumDescriptorProto) -> Result<()> {
    let scope = full.rsplit_once('.').map_or("", |(scope, _)| scope);
    for value in &enumeration.value {
        // In protobuf, as in C++, enum values are siblings of their enum.
        full_name(scope, value.name())?;
    }
    if enumeration.value.is_empty() {
        return Err(invalid(full, "an enum needs at least one value"));
    }
    if enumeration.reserved_name.iter().any(|name| name.len() > MAX_SCHEMA_NAME_LEN_BYTES) {
        return Err(invalid(full, "a reserved name is too long"));
    }
    Ok(())
}

/// Number of fields of each oneof of a message, by its index.
type Members = HashMap<i32, usize>;

fn field(
    index: &Index<'_>,
    at: &str,
    message: (&DescriptorProto, &Members),
    field: &FieldDescriptorProto,
    proto3: bool,
) -> std::result::Result<(), String> {
    let number = field.number();
    if !(1..=0x1fff_ffff).contains(&number) || (19_000..20_000).contains(&number) {
        return Err(format!(
            "{number} is not a field number: use 1 to 536870911, except 19000 to 19999"
        ));
    }
    if field.json_name.as_ref().is_some_and(|name| name.len() > MAX_SCHEMA_NAME_LEN_BYTES) {
        return Err("its JSON name is too long".into());
    }
    let kind = field.r#type.map(Type::try_from).and_then(std::result::Result::ok);
    let kind = kind.ok_or("its type does not exist")?;
    let label = Label::try_from(field.label.unwrap_or(Label::Optional as i32))
        .map_err(|_| "its label is not optional, required or repeated")?;
    if proto3 && (label == Label::Required || kind == Type::Group) {
        return Err("required fields and groups do not exist in proto3".into());
    }
    target(index, at, field, kind, label)?;
    let packed = field.options.as_ref().is_some_and(|options| options.packed());
    if packed && (label != Label::Repeated || !is_packable(kind)) {
        return Err("only repeated numbers can be packed".into());
    }
    oneof(message, field, label, proto3)?;
    let Some(default) = &field.default_value else { return Ok(()) };
    if proto3 || label == Label::Repeated || matches!(kind, Type::Message | Type::Group) {
        return Err("it cannot have a default".into());
    }
    default_value(kind, default)
}

fn is_packable(kind: Type) -> bool {
    !matches!(kind, Type::String | Type::Bytes | Type::Message | Type::Group)
}

/// The type that a field refers to: it must exist and have the declared kind.
fn target(
    index: &Index<'_>,
    at: &str,
    field: &FieldDescriptorProto,
    kind: Type,
    label: Label,
) -> std::result::Result<(), String> {
    if !matches!(kind, Type::Message | Type::Group | Type::Enum) {
        return match &field.type_name {
            None => Ok(()),
            Some(_) => Err("a number, string or bytes field cannot have a type name".into()),
        };
    }
    let name = target_of(field).ok_or("its type name is missing, or does not start with a dot")?;
    let entry = index.get(name).ok_or_else(|| {
        let shown: String = name.chars().take(MAX_SCHEMA_NAME_LEN_BYTES).collect();
        format!("its type {shown:?} is not defined in the set")
    })?;
    match (entry.item, kind) {
        (Item::Enum(_), Type::Enum) => Ok(()),
        (Item::Message(entry), Type::Message) if is_map_entry(entry) => {
            let owner = at.rsplit_once('.').map_or("", |(owner, _)| owner);
            let own = name.strip_prefix(owner).and_then(|rest| rest.strip_prefix('.'));
            if label == Label::Repeated && own == Some(entry.name()) {
                Ok(())
            } else {
                Err("a map entry belongs to one map field of the message around it".into())
            }
        }
        (Item::Message(_), Type::Message | Type::Group) => Ok(()),
        _ => Err(format!("{name} does not have the kind that the field declares")),
    }
}

fn oneof(
    (message, members): (&DescriptorProto, &Members),
    field: &FieldDescriptorProto,
    label: Label,
    proto3: bool,
) -> std::result::Result<(), String> {
    let Some(oneof) = field.oneof_index else {
        return if field.proto3_optional() {
            Err("an optional proto3 field needs its own oneof".into())
        } else {
            Ok(())
        };
    };
    if usize::try_from(oneof).ok().is_none_or(|i| i >= message.oneof_decl.len()) {
        return Err(format!("oneof {oneof} does not exist"));
    }
    if label != Label::Optional {
        return Err("a repeated or required field cannot be in a oneof".into());
    }
    if field.proto3_optional() && (members.get(&oneof) != Some(&1) || !proto3) {
        return Err("an optional proto3 field needs its own oneof".into());
    }
    Ok(())
}

fn map_entry(full: &str, message: &DescriptorProto) -> Result<()> {
    let [key, value] = &*message.field else {
        return Err(invalid(full, "a map entry must have two fields"));
    };
    let plain = |f: &FieldDescriptorProto, name, number| {
        f.name() == name
            && f.number() == number
            && f.label() == Label::Optional
            && f.oneof_index.is_none()
            && f.default_value.is_none()
            && f.r#type() != Type::Group
    };
    let no_key =
        [Type::Double, Type::Float, Type::Bytes, Type::Message, Type::Enum].contains(&key.r#type());
    if !plain(key, "key", 1) || !plain(value, "value", 2) || no_key {
        let why = "a map entry must have key = 1, a number, bool or string, and value = 2";
        return Err(invalid(full, why));
    }
    Ok(())
}

/// Checks that a default value, in the notation of compilers, is valid for its type.
fn default_value(kind: Type, text: &str) -> std::result::Result<(), String> {
    let fits = match kind {
        Type::Double | Type::Float => text.parse::<f64>().is_ok(),
        Type::Int32 | Type::Sint32 | Type::Sfixed32 => text.parse::<i32>().is_ok(),
        Type::Int64 | Type::Sint64 | Type::Sfixed64 => text.parse::<i64>().is_ok(),
        Type::Uint32 | Type::Fixed32 => text.parse::<u32>().is_ok(),
        Type::Uint64 | Type::Fixed64 => text.parse::<u64>().is_ok(),
        Type::Bool => text.parse::<bool>().is_ok(),
        Type::Bytes => is_escaped(text.as_bytes()),
        // Building the pool checks that an enum has a value of this name.
        Type::String | Type::Enum | Type::Message | Type::Group => true,
    };
    if fits { Ok(()) } else { Err("its default is not a value of its type".into()) }
}

/// Bytes in C string notation: plain ASCII, `\n` and similar, `\377`, `\xff`.
fn is_escaped(mut text: &[u8]) -> bool {
    let octal = |b: &u8| (b'0'..=b'7').contains(b);
    while let [first, rest @ ..] = text {
        text = rest;
        if !first.is_ascii() {
            return false;
        }
        if *first != b'\\' {
            continue;
        }
        text = match rest {
            [b'x' | b'X', a, b, rest @ ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                rest
            }
            [b'0'..=b'3', b, c, rest @ ..] if octal(b) && octal(c) => rest,
            [b'0'..=b'7', rest @ ..] if !rest.first().is_some_and(octal) => rest,
            [b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v', rest @ ..]
            | [b'\\' | b'?' | b'\'' | b'"', rest @ ..] => rest,
            _ => return false,
        };
    }
    true
}

/// Types that JSON and viewers recognize by name must have the fields of the original type.
fn well_known(full: &str, message: &DescriptorProto) -> Result<()> {
    let Some(real) = DescriptorPool::global().get_message_by_name(full) else { return Ok(()) };
    let shape = |m: &DescriptorProto| -> BTreeSet<_> {
        let of = |f: &FieldDescriptorProto| {
            let target = f.type_name.clone().unwrap_or_default();
            (f.number(), f.name().to_owned(), f.r#type, f.label() as i32, target)
        };
        m.field.iter().map(of).collect()
    };
    if shape(message) == shape(real.descriptor_proto()) {
        return Ok(());
    }
    Err(invalid(full, "it differs from the well-known type of this name; rename it"))
}
