//! A message from text written by a person, and examples of a type.

use rnet::msgs::plain::HeaderDescription;
use rnet::{FieldType, MessageType, PlainType, Prim};
use rnet_schema::prost_reflect::{Kind, MessageDescriptor};
use rnet_schema::reflect::ReflectSchema;
use serde_json::{Map, Value, json};

use crate::error::{Failure, Outcome};
use crate::yaml;

/// Nesting depth of an example, unless the example gets longer than this.
const EXAMPLE_DEPTH: usize = 2;
const EXAMPLE_CHARS: usize = 300;
/// Maximum number of array elements of a plain message in an example.
const EXAMPLE_ITEMS: u32 = 4;

/// The bytes of a message; `what` is its name on the command line.
///
/// # Errors
/// The reason, with an example of the type.
pub fn encode(what: &str, message_type: &MessageType, value: &Value) -> Outcome<Vec<u8>> {
    if let MessageType::Raw = message_type {
        let why = "raw bytes have no fields; use --hex, --text or --file";
        return Err(Failure::Usage(why.to_owned()));
    }
    super::encode(message_type, value).map_err(|why| {
        let (desc, example) = (message_type.desc(), example(message_type));
        let name = desc.name().unwrap_or("raw");
        Failure::Usage(format!("invalid {what} for type {name}: {why}; example: '{example}'"))
    })
}

/// The fields of a message from DATA on the command line.
pub fn fields(data: &str) -> Outcome<Value> {
    yaml::json(data).map_err(|why| {
        Failure::Usage(format!(
            "invalid DATA: {why}; write the fields as '{{x: 1.0, y: [1, 2]}}', or use --text or --hex for bytes"
        ))
    })
}

/// The fields of a type with a value for each, in the input format.
pub fn example(message_type: &MessageType) -> String {
    let of_depth = |depth| match message_type {
        MessageType::Plain(plain) => plain_example(plain),
        MessageType::Protobuf(schema) => message_example(schema.descriptor(), depth),
        MessageType::Raw => Value::Null,
    };
    let whole = yaml::flow(&of_depth(EXAMPLE_DEPTH));
    if whole.len() <= EXAMPLE_CHARS { whole } else { yaml::flow(&of_depth(0)) }
}

fn message_example(message: &MessageDescriptor, depth: usize) -> Value {
    match message.full_name() {
        "google.protobuf.Timestamp" => return "2026-01-31T12:00:00Z".into(),
        "google.protobuf.Duration" => return "1.5s".into(),
        name if name.starts_with("google.protobuf.") => return Value::Null,
        _ => {}
    }
    // Only one field of a oneof may be set.
    let fields = message.fields().filter(|field| {
        let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
        oneof.is_none_or(|oneof| oneof.fields().next().as_ref() == Some(field))
    });
    let example = |field: rnet_schema::prost_reflect::FieldDescriptor| {
        let one = match field.kind() {
            _ if field.is_map() => json!({}),
            Kind::Message(of) if depth > 0 || is_well_known(&of) => {
                message_example(&of, depth.saturating_sub(1))
            }
            Kind::Message(_) => json!({}),
            Kind::Enum(of) => of.default_value().name().into(),
            Kind::Double | Kind::Float => json!(0.0),
            Kind::Bool => json!(false),
            Kind::String | Kind::Bytes => json!(""),
            _ => json!(0),
        };
        (field.name().to_owned(), if field.is_list() { json!([one]) } else { one })
    };
    Value::Object(fields.map(example).collect())
}

fn is_well_known(message: &MessageDescriptor) -> bool {
    message.full_name().starts_with("google.protobuf.")
}

fn plain_example(plain: &PlainType) -> Value {
    // In a built-in header, the fields that describe the data are filled in.
    let filled_in = if HeaderDescription::find(plain).is_some() { "data_" } else { "\0" };
    let fields = plain.fields.iter().filter(|f| !f.is_padding() && !f.name.starts_with(filled_in));
    let shown = fields.filter_map(|field| Some((field.name.clone(), field_example(&field.ty)?)));
    Value::Object(shown.collect::<Map<_, _>>())
}

/// `None` for arrays that nobody writes by hand.
fn field_example(ty: &FieldType) -> Option<Value> {
    Some(match ty {
        FieldType::Prim(Prim::F32 | Prim::F64) => json!(0.0),
        FieldType::Prim(Prim::Bool) => json!(false),
        FieldType::Prim(_) => json!(0),
        FieldType::Struct(plain) => plain_example(plain),
        FieldType::Array { of, len } => match &**of {
            FieldType::Prim(Prim::U8) if *len > EXAMPLE_ITEMS => json!(""),
            of if *len <= EXAMPLE_ITEMS => vec![field_example(of)?; *len as usize].into(),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Catalog;

    #[test]
    fn example_of_each_built_in_type_is_valid() {
        let catalog = Catalog::built_in().unwrap();
        for name in catalog.names() {
            let found = catalog.get(name).unwrap();
            let example = example(&found);
            let value =
                yaml::json(&example).unwrap_or_else(|why| panic!("{name}: {why}: {example}"));
            let is_one = match &found {
                // The values of built-in headers must match their data, which an example does not have.
                MessageType::Plain(plain) => plain.encode(&value).is_ok(),
                _ => encode("DATA", &found, &value).is_ok(),
            };
            assert!(is_one, "{name}: {example}");
        }
        let twist = catalog.find("Twist").unwrap();
        assert_eq!(
            example(&twist),
            "{linear: {x: 0.0, y: 0.0, z: 0.0}, angular: {x: 0.0, y: 0.0, z: 0.0}}"
        );
    }
}
