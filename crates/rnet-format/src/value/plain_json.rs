//! Encodes a plain message from JSON. For built-in headers, derived fields are filled in: the position of the
//! data, the used length of a list, and the rest of such a list.

use rnet::msgs::plain::{FieldForm, HeaderDescription};
use rnet::{FieldType, PlainType};
use serde_json::{Map, Value};

/// The bytes of the message; a built-in header is validated as its readers do.
pub fn encode(plain: &PlainType, value: &Value) -> Result<Vec<u8>, String> {
    let encoded = |value: &Value| plain.encode(value).map_err(|error| error.to_string());
    let Some(described) = HeaderDescription::find(plain) else { return encoded(value) };
    let mut value = value.clone();
    if let Value::Object(fields) = &mut value {
        fill_lists(plain, &described, fields);
        fields.entry("data_offset").or_insert(plain.size.into());
        if let Some(len) = fields.get("data_len").cloned() {
            if !fields.contains_key("_data") {
                fields.entry("_data_len").or_insert(len);
            }
        } else {
            // The check of the given data comes first.
            let len = encoded(&Value::Object(fields.clone()))?.len() - plain.size;
            fields.insert("data_len".to_owned(), len.into());
        }
    }
    let bytes = encoded(&value)?;
    described.check(&bytes).map_err(|error| {
        let given =
            "pass the data as \"_data\": [0, 255, …], or the number of zero bytes as \"_data_len\"";
        format!("{error}; {given}")
    })?;
    Ok(bytes)
}

fn fill_lists(plain: &PlainType, described: &HeaderDescription, fields: &mut Map<String, Value>) {
    for doc in described.fields {
        let FieldForm::Counted(by) = doc.form else { continue };
        let layout = plain.fields.iter().find(|field| field.name == doc.path);
        let Some(FieldType::Array { of, len }) = layout.map(|field| &field.ty) else { continue };
        let Some(Value::Array(items)) = fields.get_mut(doc.path) else { continue };
        let used = items.len();
        let empty = match **of {
            FieldType::Struct(_) => Value::Object(Map::new()),
            _ => Value::from(0),
        };
        let len = usize::try_from(*len).unwrap_or(usize::MAX);
        items.resize(used.max(len), empty);
        if used < len {
            fields.entry(by).or_insert(used.into());
        }
    }
}
