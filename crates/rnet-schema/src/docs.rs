//! What people wrote about a type: the comments of its `.proto` file, and the units that stand in them.
//!
//! Comments are no part of a type: two schemas with different comments are equal. They are kept beside it, by full name, and travel
//! only where somebody will read them.

use crate::escape::is_steering;
use crate::name::join;
use prost_types::source_code_info::Location;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet, SourceCodeInfo,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The comments of a schema, by full name. The value of an enum is found as `package.Enum.VALUE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Docs {
    by_name: BTreeMap<String, String>,
}

impl Docs {
    /// The comment of a message, enum, field (`package.Type.field`) or enum value (`package.Enum.VALUE`).
    pub fn get(&self, full_name: &str) -> Option<&str> {
        self.by_name.get(full_name).map(String::as_str)
    }

    /// The unit of a field, if its comment names one: see [`unit_of`].
    pub fn unit(&self, full_name: &str) -> Option<&str> {
        self.get(full_name).and_then(unit_of)
    }

    /// The unit of a field inside of another field whose unit is `holder`: a component of a vector has the unit of the vector
    /// ([`HOLDERS_UNIT`]). `None` for a plain number (`Unit: 1`) too.
    pub(crate) fn unit_within<'a>(
        &'a self,
        full_name: &str,
        holder: Option<&'a str>,
    ) -> Option<&'a str> {
        match self.unit(full_name) {
            Some(HOLDERS_UNIT | EARLIER_HOLDERS_UNIT) => holder,
            unit => unit.filter(|unit| *unit != PLAIN_NUMBER),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// All names that have a comment, and the comments.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

/// The unit of a field of which only the field around its message knows what it measures, as in `foxglove.Vector3`.
pub const HOLDERS_UNIT: &str = "as the field that holds it";
/// The same in recordings of earlier releases.
const EARLIER_HOLDERS_UNIT: &str = "the holder's";
/// The unit of a ratio or a count, which people do not want to see behind each of them.
const PLAIN_NUMBER: &str = "1";

/// Units in words, as the published schemas write them, and their symbols. Longer ones first.
const UNITS_IN_WORDS: &[(&str, &str)] = &[
    ("in meters per second squared", "m/s²"),
    ("in m/s^2", "m/s²"),
    ("in radians per second squared", "rad/s²"),
    ("in meters per second", "m/s"),
    ("in radians per second", "rad/s"),
    ("in rad/s", "rad/s"),
    ("in m/s", "m/s"),
    ("in newton meters", "N·m"),
    ("in newton-meters", "N·m"),
    ("in newtons", "N"),
    ("in meters", "m"),
    ("in metres", "m"),
    ("in radians", "rad"),
    ("in degrees celsius", "°C"),
    ("in degrees", "°"),
    ("in seconds", "s"),
    ("in nanoseconds", "ns"),
    ("in pixels", "px"),
    ("in bytes", "B"),
    ("in volts", "V"),
    ("in amperes", "A"),
    ("in ampere hours", "Ah"),
    ("in pascals", "Pa"),
    ("in tesla", "T"),
    ("in hertz", "Hz"),
];

/// Longest text that is taken for a unit, in bytes.
const MAX_UNIT_LEN_BYTES: usize = 48;

/// The unit that a comment names: the first thing in square brackets (`Linear velocity [m/s]`), or words such as `in meters per
/// second`.
///
/// ```
/// use rnet_schema::unit_of;
/// assert_eq!(unit_of("Angle of the joint [rad]"), Some("rad"));
/// assert_eq!(unit_of("Angle of the joint. Unit: rad"), Some("rad"));
/// assert_eq!(unit_of("Velocity in meters per second"), Some("m/s"));
/// assert_eq!(unit_of("Name of the frame"), None);
/// ```
pub fn unit_of(comment: &str) -> Option<&str> {
    // Comments come from peers, and units go to terminals.
    let is_harmless = |unit: &str| !unit.contains(|c| char::is_control(c) || is_steering(c));
    // As the built-in messages have it, at the end of the comment.
    if let Some((_, unit)) = comment.rsplit_once("Unit: ") {
        let unit = unit.trim().trim_end_matches('.');
        let is_unit = !unit.is_empty() && unit.len() <= MAX_UNIT_LEN_BYTES && is_harmless(unit);
        return is_unit.then_some(unit);
    }
    let bracketed = comment.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    if let Some((unit, behind)) = bracketed {
        let is_unit = !unit.is_empty()
            && unit.len() <= MAX_UNIT_LEN_BYTES
            && !unit.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            && !unit.contains([',', ' ', '['])
            && is_harmless(unit)
            // `[x](…)` is a link, and no unit.
            && !behind.starts_with('(');
        if is_unit {
            return Some(unit);
        }
    }
    let lower = comment.to_lowercase();
    let ends_there = |at: usize| !lower[at..].starts_with(|c: char| c.is_alphanumeric());
    UNITS_IN_WORDS
        .iter()
        .find(|(words, _)| lower.find(words).is_some_and(|at| ends_there(at + words.len())))
        .map(|(_, symbol)| *symbol)
}

// Numbers of the fields of google/protobuf/descriptor.proto, of which the path of a comment is made.
const FILE_MESSAGE: i32 = 4;
const FILE_ENUM: i32 = 5;
const MESSAGE_FIELD: i32 = 2;
const MESSAGE_NESTED: i32 = 3;
const MESSAGE_ENUM: i32 = 4;
const ENUM_VALUE: i32 = 2;

/// Calls `with(path, full name of the element, full name of its type)` for all that can have a comment.
fn walk(file: &FileDescriptorProto, with: &mut impl FnMut(&[i32], String, &str)) {
    let mut path = Vec::new();
    for (i, message) in file.message_type.iter().enumerate() {
        path.extend([FILE_MESSAGE, i as i32]);
        walk_message(file.package(), message, &mut path, with);
        path.clear();
    }
    for (i, enumeration) in file.enum_type.iter().enumerate() {
        path.extend([FILE_ENUM, i as i32]);
        walk_enum(file.package(), enumeration, &mut path, with);
        path.clear();
    }
}

fn walk_message(
    scope: &str,
    message: &DescriptorProto,
    path: &mut Vec<i32>,
    with: &mut impl FnMut(&[i32], String, &str),
) {
    let full = join(scope, message.name());
    with(path, full.clone(), &full);
    let len = path.len();
    for (i, field) in message.field.iter().enumerate() {
        path.extend([MESSAGE_FIELD, i as i32]);
        with(path, join(&full, field.name()), &full);
        path.truncate(len);
    }
    for (i, nested) in message.nested_type.iter().enumerate() {
        path.extend([MESSAGE_NESTED, i as i32]);
        walk_message(&full, nested, path, with);
        path.truncate(len);
    }
    for (i, enumeration) in message.enum_type.iter().enumerate() {
        path.extend([MESSAGE_ENUM, i as i32]);
        walk_enum(&full, enumeration, path, with);
        path.truncate(len);
    }
}

fn walk_enum(
    scope: &str,
    enumeration: &EnumDescriptorProto,
    path: &mut Vec<i32>,
    with: &mut impl FnMut(&[i32], String, &str),
) {
    let full = join(scope, enumeration.name());
    with(path, full.clone(), &full);
    let len = path.len();
    for (i, value) in enumeration.value.iter().enumerate() {
        path.extend([ENUM_VALUE, i as i32]);
        with(path, join(&full, value.name()), &full);
        path.truncate(len);
    }
}

/// The comments of the types that are reached.
pub(crate) fn collect(files: &[FileDescriptorProto], reached: &BTreeSet<String>) -> Docs {
    let mut by_name = BTreeMap::new();
    for file in files {
        let Some(info) = &file.source_code_info else { continue };
        let comments: HashMap<&[i32], String> = info
            .location
            .iter()
            .filter_map(|location| Some((&*location.path, comment(location)?)))
            .collect();
        if comments.is_empty() {
            continue;
        }
        walk(file, &mut |path, full, of| {
            if let Some(text) = comments.get(path).filter(|_| reached.contains(of)) {
                by_name.insert(full, text.clone());
            }
        });
    }
    Docs { by_name }
}

/// The text before and behind an element, without the blanks around its lines.
fn comment(location: &Location) -> Option<String> {
    let parts = [&location.leading_comments, &location.trailing_comments];
    let text: Vec<&str> = parts
        .into_iter()
        .flatten()
        .flat_map(|part| part.trim().lines())
        .map(|line| line.trim().trim_start_matches("* "))
        .collect();
    let text = text.join("\n");
    (!text.is_empty()).then_some(text)
}

/// Puts the comments back where descriptor sets have them, for those who read them there (recordings, viewers).
pub(crate) fn attach(set: &FileDescriptorSet, docs: &Docs) -> FileDescriptorSet {
    let mut set = set.clone();
    for file in &mut set.file {
        let mut location = Vec::new();
        walk(file, &mut |path, full, _| {
            if let Some(text) = docs.get(&full) {
                location.push(Location {
                    path: path.to_vec(),
                    span: vec![0, 0, 0],
                    leading_comments: Some(format!(" {text}\n")),
                    ..Default::default()
                });
            }
        });
        if !location.is_empty() {
            file.source_code_info = Some(SourceCodeInfo { location });
        }
    }
    set
}
