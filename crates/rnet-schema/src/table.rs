//! Messages as table rows: the columns depend only on the type, so all rows of a recording have the same
//! columns.

use crate::error::ValueError;
use crate::json::{self, JsonOptions};
use crate::limits::{MAX_COLUMN_FIELDS, MAX_COLUMNS, MAX_DECODE_DEPTH};
use crate::path::FieldPath;
use crate::{Dynamic, Schema};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, Value};
use std::borrow::Cow;

/// The columns of a table: the path of each single value of the type. Lists, maps and recursive messages are
/// one JSON cell each.
#[derive(Clone, Debug)]
pub struct Columns {
    paths: Vec<FieldPath>,
}

impl Columns {
    /// All columns of a type, in the order of the field numbers.
    ///
    /// # Errors
    /// [`ValueError`] for more than [`MAX_COLUMNS`], or more than [`MAX_COLUMN_FIELDS`] fields on the paths
    /// to them.
    pub fn all(schema: &Schema) -> Result<Self, ValueError> {
        let mut paths = Vec::new();
        collect(schema.descriptor(), None, &mut Vec::new(), &mut paths, &mut 0)?;
        Ok(Self { paths })
    }

    /// The columns of these fields: for a message field those of the message, otherwise the field itself.
    ///
    /// # Errors
    /// As [`Columns::all`].
    pub fn within<'a>(fields: impl IntoIterator<Item = &'a FieldPath>) -> Result<Self, ValueError> {
        let (mut paths, mut visited) = (Vec::new(), 0);
        for path in fields {
            match path.single_message().filter(|m| !json::is_well_known(m.full_name())) {
                Some(inner) => {
                    collect(inner, Some(path), &mut Vec::new(), &mut paths, &mut visited)?;
                }
                None => paths.push(path.clone()),
            }
        }
        Ok(Self { paths })
    }

    /// The paths as text.
    pub fn header(&self) -> Vec<String> {
        self.paths.iter().map(ToString::to_string).collect()
    }

    /// The cells of one message. Unset fields are empty.
    pub fn row(&self, message: &Dynamic) -> Vec<String> {
        self.paths.iter().map(|path| cell(path, message)).collect()
    }
}

fn collect(
    message: &MessageDescriptor,
    under: Option<&FieldPath>,
    fields: &mut Vec<FieldDescriptor>,
    paths: &mut Vec<FieldPath>,
    visited: &mut usize,
) -> Result<(), ValueError> {
    let refused = |what: &str, limit: usize, of: &str| {
        let why =
            format!("a table has at most {what} = {limit} {of}; select the fields that you need");
        ValueError { path: String::new(), why }
    };
    for field in message.fields() {
        // Messages without single values yield no column, but visiting them takes time.
        *visited += 1;
        if *visited > MAX_COLUMN_FIELDS {
            return Err(refused(
                "MAX_COLUMN_FIELDS",
                MAX_COLUMN_FIELDS,
                "fields on the paths to its columns",
            ));
        }
        fields.push(field.clone());
        let inner = match field.kind() {
            Kind::Message(inner) if !(field.is_list() || field.is_map()) => Some(inner),
            _ => None,
        };
        let around = |m: &MessageDescriptor| fields.iter().any(|f| f.parent_message() == m);
        // Messages that can be decoded are not nested deeper.
        let inner = inner.filter(|_| fields.len() < MAX_DECODE_DEPTH);
        match inner.filter(|m| !json::is_well_known(m.full_name()) && !around(m)) {
            Some(inner) => collect(&inner, under, fields, paths, visited)?,
            None => paths.extend(match under {
                Some(under) => under.join(fields),
                None => FieldPath::of_fields(fields),
            }),
        }
        fields.pop();
        if paths.len() > MAX_COLUMNS {
            return Err(refused("MAX_COLUMNS", MAX_COLUMNS, "columns"));
        }
    }
    Ok(())
}

fn cell(path: &FieldPath, message: &Dynamic) -> String {
    if !path.is_set(message.message()) {
        return String::new();
    }
    // A field without presence always has a value, also in the messages of a list.
    let options = JsonOptions { proto_names: true, defaults: true, plain_integers: true };
    let Some(value) = message.get(path) else { return String::new() };
    match json::value(&value, path.kind(), &options) {
        serde_json::Value::String(text) if !matches!(*value, Value::List(_)) => text,
        other => other.to_string(),
    }
}

/// One line of a CSV file (RFC 4180), without the line end.
///
/// ```
/// assert_eq!(rnet_schema::csv_line(["a,b", "1"]), "\"a,b\",1");
/// ```
pub fn csv_line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |cell: &'a str| match cell.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\""))),
        false => Cow::Borrowed(cell),
    };
    cells.into_iter().map(quoted).collect::<Vec<_>>().join(",")
}
