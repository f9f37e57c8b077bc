//! A path to a value in a message: `pose.position.x`, `legs[2].force[0]`, `by_name["left"].volt`.

use crate::Schema;
use crate::docs::Docs;
use crate::error::ValueError;
use crate::limits::MAX_PATH_LEN_BYTES;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};
use std::borrow::Cow;
use std::fmt;

/// A path that was checked against a type: all fields exist, only lists have indices, and keys match their
/// map's type.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldPath {
    text: String,
    steps: Vec<Step>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Field(FieldDescriptor),
    Index(usize),
    Key(MapKey),
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn error(path: &str, why: impl Into<String>) -> ValueError {
    ValueError { path: path.chars().take(MAX_PATH_LEN_BYTES).collect(), why: why.into() }
}

/// The fields of a message, for error texts.
pub(crate) fn known_fields(message: &MessageDescriptor) -> String {
    const MAX_LISTED: usize = 16;
    let mut names: Vec<String> = message.fields().map(|f| f.name().to_owned()).collect();
    if names.is_empty() {
        return format!("{} has no fields", message.full_name());
    }
    if names.len() > MAX_LISTED {
        let more = names.len() - MAX_LISTED;
        names.truncate(MAX_LISTED);
        names.push(format!("and {more} more"));
    }
    format!("{} has {}", message.full_name(), names.join(", "))
}

impl FieldPath {
    /// Parses a path and checks it against a type.
    ///
    /// # Errors
    /// [`ValueError`] with the path up to the fault, and the existing fields.
    pub fn parse(schema: &Schema, text: &str) -> Result<Self, ValueError> {
        if text.len() > MAX_PATH_LEN_BYTES {
            let why = format!("a path has at most MAX_PATH_LEN_BYTES = {MAX_PATH_LEN_BYTES} bytes");
            return Err(error(text, why));
        }
        let mut parse = Parse { text, at: 0, steps: Vec::new() };
        let mut message = schema.descriptor().clone();
        loop {
            let field = parse.field(&message)?;
            let kind = parse.brackets(&field)?;
            if parse.at == text.len() {
                return Ok(Self { text: text.to_owned(), steps: parse.steps, kind });
            }
            if !text[parse.at..].starts_with('.') {
                return Err(error(&text[..parse.at], "expected a `.` or the end after this"));
            }
            let whole = (field.is_list() || field.is_map())
                && matches!(parse.steps.last(), Some(Step::Field(_)));
            if whole {
                let example = if field.is_list() { "[0]" } else { "[\"key\"]" };
                let why =
                    format!("it has many values; select one, such as {}{example}", field.name());
                return Err(error(&text[..parse.at], why));
            }
            let Kind::Message(inner) = kind else {
                return Err(error(&text[..parse.at], "it is a single value and has no fields"));
            };
            message = inner;
            parse.at += 1;
        }
    }

    /// The path that consists of these fields, for a table.
    pub(crate) fn of_fields(fields: &[FieldDescriptor]) -> Option<Self> {
        let kind = fields.last()?.kind();
        let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
        let steps = fields.iter().cloned().map(Step::Field).collect();
        Some(Self { text: names.join("."), steps, kind })
    }

    /// Whether it ends at a whole map.
    pub fn is_map(&self) -> bool {
        self.kind.as_message().is_some_and(MessageDescriptor::is_map_entry)
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The type of the value, or of the elements of the list.
    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Full name of the last field, as used for comments.
    pub fn field_name(&self) -> &str {
        let field = self.steps.iter().rev().find_map(|step| match step {
            Step::Field(field) => Some(field.full_name()),
            Step::Index(_) | Step::Key(_) => None,
        });
        field.unwrap_or_default()
    }

    /// The unit of the value, which may come from an enclosing field: `angular_velocity.x` is in rad/s
    /// although a `foxglove.Vector3` has no unit. `None` for plain numbers.
    pub fn unit<'a>(&self, docs: &'a Docs) -> Option<&'a str> {
        self.steps.iter().fold(None, |holder, step| match step {
            Step::Field(field) => docs.unit_within(field.full_name(), holder),
            Step::Index(_) | Step::Key(_) => holder,
        })
    }

    /// The path of a field inside the message at this path.
    pub(crate) fn join(&self, fields: &[FieldDescriptor]) -> Option<Self> {
        let inner = Self::of_fields(fields)?;
        let text = format!("{}.{}", self.text, inner.text);
        Some(Self { text, steps: [&self.steps[..], &inner.steps].concat(), kind: inner.kind })
    }

    /// The type of the message at this path, if it is a single message with columns.
    pub(crate) fn single_message(&self) -> Option<&MessageDescriptor> {
        let single = match self.steps.last()? {
            Step::Field(field) => !field.is_list() && !field.is_map(),
            Step::Index(_) | Step::Key(_) => true,
        };
        self.kind.as_message().filter(|_| single)
    }

    /// Whether the value is present, not a default of an unset field.
    pub(crate) fn is_set(&self, message: &DynamicMessage) -> bool {
        let mut at = Cow::Borrowed(message);
        for (i, step) in self.steps.iter().enumerate() {
            let Step::Field(field) = step else { return self.find(message).is_some() };
            if field.supports_presence() && !at.has_field(field) {
                return false;
            }
            if i + 1 == self.steps.len() {
                return true;
            }
            let inner = match at.get_field(field).as_message() {
                Some(inner) => inner.clone(),
                None => return self.find(message).is_some(),
            };
            at = Cow::Owned(inner);
        }
        true
    }

    pub(crate) fn find<'a>(&self, message: &'a DynamicMessage) -> Option<Cow<'a, Value>> {
        let mut steps = self.steps.iter();
        let Some(Step::Field(first)) = steps.next() else { return None };
        let mut value = message.get_field(first);
        for step in steps {
            value = match value {
                Cow::Borrowed(value) => step.of(value)?,
                Cow::Owned(value) => Cow::Owned(step.of(&value)?.into_owned()),
            };
        }
        Some(value)
    }
}

impl Step {
    fn of<'a>(&self, value: &'a Value) -> Option<Cow<'a, Value>> {
        match self {
            Self::Field(field) => value.as_message().map(|message| message.get_field(field)),
            Self::Index(index) => value.as_list()?.get(*index).map(Cow::Borrowed),
            Self::Key(key) => value.as_map()?.get(key).map(Cow::Borrowed),
        }
    }
}

struct Parse<'a> {
    text: &'a str,
    at: usize,
    steps: Vec<Step>,
}

impl Parse<'_> {
    fn field(&mut self, message: &MessageDescriptor) -> Result<FieldDescriptor, ValueError> {
        let rest = &self.text[self.at..];
        let name = &rest[..rest.find(['.', '[']).unwrap_or(rest.len())];
        let end = self.at + name.len();
        let field = message.get_field_by_name(name);
        let field = field.or_else(|| message.get_field_by_json_name(name));
        let field = field.ok_or_else(|| {
            error(&self.text[..end], format!("no such field; {}", known_fields(message)))
        })?;
        self.at = end;
        self.steps.push(Step::Field(field.clone()));
        Ok(field)
    }

    /// Parses the optional index or key after a field. Returns the type of the selected value.
    fn brackets(&mut self, field: &FieldDescriptor) -> Result<Kind, ValueError> {
        let kind = match field.kind() {
            Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
            kind => kind,
        };
        let Some(inside) = self.text[self.at..].strip_prefix('[') else {
            return Ok(if field.is_map() { field.kind() } else { kind });
        };
        let (token, quoted, len) =
            token(inside).ok_or_else(|| error(self.text, "a `[` has no `]`"))?;
        let end = self.at + 1 + len;
        let fail = |why: &str| error(&self.text[..end], why);
        if field.is_list() {
            let index = token.parse().ok().filter(|_| !quoted);
            let index = index.ok_or_else(|| fail("an index is a number from 0"))?;
            self.steps.push(Step::Index(index));
        } else if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
            let key_kind = entry.map_entry_key_field().kind();
            let key = map_key(&token, &key_kind).ok_or_else(|| {
                fail(&format!("the keys of this map are {key_kind:?}").to_lowercase())
            })?;
            self.steps.push(Step::Key(key));
        } else {
            return Err(fail("it is neither a list nor a map, so it has no elements"));
        }
        self.at = end;
        Ok(kind)
    }
}

/// The text in brackets, whether it was quoted, and its length including the `]`.
fn token(inside: &str) -> Option<(String, bool, usize)> {
    if !inside.starts_with('"') {
        let end = inside.find(']')?;
        return Some((inside[..end].to_owned(), false, end + 1));
    }
    // A quoted key is a JSON string.
    let mut strings = serde_json::Deserializer::from_str(inside).into_iter::<String>();
    let token = strings.next()?.ok()?;
    let end = strings.byte_offset();
    inside[end..].starts_with(']').then_some((token, true, end + 1))
}

pub(crate) fn map_key(text: &str, kind: &Kind) -> Option<MapKey> {
    Some(match kind {
        Kind::Bool => MapKey::Bool(text.parse().ok()?),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => MapKey::I32(text.parse().ok()?),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => MapKey::I64(text.parse().ok()?),
        Kind::Uint32 | Kind::Fixed32 => MapKey::U32(text.parse().ok()?),
        Kind::Uint64 | Kind::Fixed64 => MapKey::U64(text.parse().ok()?),
        Kind::String => MapKey::String(text.to_owned()),
        _ => return None,
    })
}

/// The key as text.
pub(crate) fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(v) => v.to_string(),
        MapKey::I32(v) => v.to_string(),
        MapKey::I64(v) => v.to_string(),
        MapKey::U32(v) => v.to_string(),
        MapKey::U64(v) => v.to_string(),
        MapKey::String(v) => v.clone(),
    }
}
