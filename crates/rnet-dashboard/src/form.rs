//! Describes a type as a form: fields, their types, names of enum values, defaults.

use rnet::schema::Schema;
use rnet::{Field, FieldType, MessageType, PlainType, Prim};
use rnet_schema::prost_reflect::{
    EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, Syntax, Value,
};
use rnet_schema::reflect::ReflectSchema;
use serde_json::{Map, Value as Json, json};

/// Maximum nesting depth of a form.
const MAX_DEPTH: usize = 8;
/// Maximum number of fields of a form.
const MAX_FIELDS: usize = 2_000;

/// The form of a type.
pub fn of(ty: &MessageType) -> Json {
    let (kind, fields) = match ty {
        MessageType::Raw => ("raw", Vec::new()),
        MessageType::Plain(plain) => ("plain", plain_fields(plain)),
        MessageType::Protobuf(schema) => {
            let mut walk = FormBuilder { schema, within: Vec::new(), left: MAX_FIELDS };
            ("protobuf", walk.fields(schema.descriptor()))
        }
    };
    let desc = ty.desc();
    json!({"type": desc.name().unwrap_or("raw"), "kind": kind, "fields": fields})
}

struct FormBuilder<'a> {
    schema: &'a Schema,
    /// The messages that contain the current one.
    within: Vec<String>,
    left: usize,
}

impl FormBuilder<'_> {
    fn fields(&mut self, message: &MessageDescriptor) -> Vec<Json> {
        self.within.push(message.full_name().to_owned());
        let mut fields = Vec::new();
        for field in message.fields() {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            fields.push(self.field(&field));
        }
        self.within.pop();
        fields
    }

    fn field(&mut self, field: &FieldDescriptor) -> Json {
        let kind = field.kind();
        let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
        let mut document = Map::new();
        let mut put = |name: &str, value: Json| drop(document.insert(name.to_owned(), value));
        put("name", field.name().into());
        put("type", type_word(&kind).into());
        put("doc", self.schema.docs().get(field.full_name()).into());
        put("list", field.is_list().into());
        put("map", field.is_map().into());
        put("oneof", oneof.map(|oneof| oneof.name().to_owned()).into());
        if !field.is_list() && !field.is_map() {
            put("default", default(field));
        }
        match &kind {
            Kind::Enum(of) => put("values", values(of)),
            Kind::Message(of) if type_word(&kind) == "message" => {
                put("message_type", of.full_name().into());
                let is_within = self.within.iter().any(|name| name == of.full_name());
                if !is_within && self.within.len() < MAX_DEPTH {
                    let fields = self.fields(of);
                    document.insert("fields".to_owned(), fields.into());
                }
            }
            _ => {}
        }
        Json::Object(document)
    }
}

fn type_word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Double => "float64",
        Kind::Float => "float32",
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => "int32",
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => "int64",
        Kind::Uint32 | Kind::Fixed32 => "uint32",
        Kind::Uint64 | Kind::Fixed64 => "uint64",
        Kind::Bool => "bool",
        Kind::String => "string",
        Kind::Bytes => "bytes",
        Kind::Enum(_) => "enum",
        Kind::Message(of) => match of.full_name() {
            "google.protobuf.Timestamp" => "timestamp",
            "google.protobuf.Duration" => "duration",
            _ => "message",
        },
    }
}

fn values(of: &EnumDescriptor) -> Json {
    of.values().map(|value| json!({"name": value.name(), "number": value.number()})).collect()
}

fn default(field: &FieldDescriptor) -> Json {
    if field.parent_message().parent_file().syntax() != Syntax::Proto2 && field.supports_presence()
    {
        return Json::Null;
    }
    match field.default_value() {
        Value::Bool(b) => b.into(),
        Value::I32(n) => n.into(),
        Value::I64(n) => n.into(),
        Value::U32(n) => n.into(),
        Value::U64(n) => n.into(),
        Value::F32(x) => f64::from(x).into(),
        Value::F64(x) => x.into(),
        Value::String(text) => text.into(),
        Value::Bytes(_) => "".into(),
        Value::EnumNumber(number) => match field.kind() {
            Kind::Enum(of) => of.get_value(number).map(|value| value.name().to_owned()).into(),
            _ => Json::Null,
        },
        Value::Message(_) | Value::List(_) | Value::Map(_) => Json::Null,
    }
}

fn plain_fields(plain: &PlainType) -> Vec<Json> {
    plain.fields.iter().filter(|field| !field.is_padding()).map(plain_field).collect()
}

fn plain_field(field: &Field) -> Json {
    let (of, list) = match &field.ty {
        FieldType::Array { of, len } => (&**of, json!(len)),
        ty => (ty, json!(false)),
    };
    let mut document =
        json!({"name": field.name, "list": list, "map": false, "oneof": null, "doc": null});
    match of {
        FieldType::Prim(prim) => {
            document["type"] = prim_word(*prim).into();
            document["default"] = if *prim == Prim::Bool { json!(false) } else { json!(0) };
        }
        FieldType::Struct(plain) => {
            document["type"] = "message".into();
            document["message_type"] = plain.name.as_str().into();
            document["fields"] = plain_fields(plain).into();
        }
        // An array of arrays is entered as JSON.
        FieldType::Array { .. } => document["type"] = "json".into(),
    }
    document
}

fn prim_word(prim: Prim) -> &'static str {
    match prim {
        Prim::Bool => "bool",
        Prim::I8 => "int8",
        Prim::I16 => "int16",
        Prim::I32 => "int32",
        Prim::I64 => "int64",
        Prim::U8 => "uint8",
        Prim::U16 => "uint16",
        Prim::U32 => "uint32",
        Prim::U64 => "uint64",
        Prim::F32 => "float32",
        Prim::F64 => "float64",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rnet::schema::compile_text;

    #[test]
    fn form_has_types_enum_names_defaults_and_stops_at_recursion() {
        let text = r#"syntax = "proto3";
            import "google/protobuf/timestamp.proto";
            enum Mode { IDLE = 0; RUN = 3; }
            message Tree { Tree left = 1; double x = 2; }
            message Ask {
              // How fast.
              double speed = 2;
              Mode mode = 1;
              repeated Tree trees = 3;
              map<string, int32> by_name = 4;
              oneof which { string a = 5; bytes b = 6; }
              google.protobuf.Timestamp when = 7;
              optional uint64 n = 8;
            }"#;
        let schema = compile_text("ask.proto", text).unwrap().schema("Ask").unwrap();
        let form = of(&MessageType::from(schema));
        let names: Vec<&str> = form["fields"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["mode", "speed", "trees", "by_name", "a", "b", "when", "n"]);
        let field = |name: &str| {
            form["fields"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap()
        };
        assert_eq!(field("speed")["type"], "float64");
        assert_eq!(field("speed")["default"], 0.0);
        assert!(field("speed")["doc"].as_str().unwrap().contains("How fast"));
        assert_eq!(
            field("mode")["values"],
            json!([{"name": "IDLE", "number": 0}, {"name": "RUN", "number": 3}])
        );
        assert_eq!(field("mode")["default"], "IDLE");
        assert_eq!(field("trees")["list"], true);
        assert_eq!(field("trees")["fields"][0]["message_type"], "Tree");
        assert_eq!(field("trees")["fields"][0].get("fields"), None);
        assert_eq!(field("by_name")["map"], true);
        assert_eq!((&field("a")["oneof"], &field("b")["type"]), (&json!("which"), &json!("bytes")));
        assert_eq!(field("when")["type"], "timestamp");
        assert_eq!(field("n")["default"], Json::Null);
    }

    #[test]
    fn plain_form_has_array_lengths() {
        let ty = rnet::TypeDesc::from_json(
            r#"{"kind":"plain","name":"T","size":16,"align":8,"fields":[
                {"name":"x","offset":0,"type":"f64"},{"name":"rgb","offset":8,"type":{"array":{"of":"u8","len":3}}},
                {"name":"_pad","offset":11,"type":{"array":{"of":"u8","len":5}}}]}"#,
        );
        let form = of(&MessageType::try_from(ty.unwrap()).unwrap());
        assert_eq!(form["fields"].as_array().unwrap().len(), 2);
        assert_eq!(
            (&form["fields"][1]["type"], &form["fields"][1]["list"]),
            (&json!("uint8"), &json!(3))
        );
    }
}
