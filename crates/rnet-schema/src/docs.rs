//! Documentation of a type: the comments of its `.proto` file, and the units in them.
//!
//! Comments are not part of a type: two schemas with different comments are equal. They are stored
//! separately, by full name, and are sent only where they are needed.

use crate::escape::is_terminal_control;
use crate::name::join;
use prost_reflect::{DescriptorPool, FileDescriptor};
use prost_types::source_code_info::Location;
use prost_types::{EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet, SourceCodeInfo};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The comments of a schema, by full name. An enum value has the name `package.Enum.VALUE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Docs {
    by_name: BTreeMap<String, String>,
}

impl Docs {
    /// The comment of a message, enum, field (`package.Type.field`) or enum value (`package.Enum.VALUE`).
    pub fn get(&self, full_name: &str) -> Option<&str> {
        self.by_name.get(full_name).map(String::as_str)
    }

    /// The unit of a field, if its comment contains one: see [`unit_of`].
    pub fn unit(&self, full_name: &str) -> Option<&str> {
        self.get(full_name).and_then(unit_of)
    }

    /// The unit of a field inside another field with the unit `holder`: a component of a vector has the unit
    /// of the vector ([`INHERITED_UNIT`]). Also `None` for a plain number (`Unit: 1`).
    pub(crate) fn unit_within<'a>(
        &'a self,
        full_name: &str,
        holder: Option<&'a str>,
    ) -> Option<&'a str> {
        match self.unit(full_name) {
            Some(INHERITED_UNIT | LEGACY_INHERITED_UNIT) => holder,
            unit => unit.filter(|unit| *unit != PLAIN_NUMBER),
        }
    }

    /// Whether there are no comments.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// All names that have a comment, with the comments.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

/// The unit of a field whose unit depends on the enclosing field, as in `foxglove.Vector3`.
pub const INHERITED_UNIT: &str = "as the field that holds it";
/// The same in recordings of earlier releases.
const LEGACY_INHERITED_UNIT: &str = "the holder's";
/// The unit of a ratio or a count, which is not displayed.
const PLAIN_NUMBER: &str = "1";

/// Unit names of the published schemas, and their symbols. Longer ones first.
const UNITS_IN_WORDS: &str = include_str!("units.txt");

/// Longest text that is accepted as a unit, in bytes.
const MAX_UNIT_LEN_BYTES: usize = 48;

/// The unit in a comment: the first text in square brackets (`Linear velocity [m/s]`), or words such as `in
/// meters per second`.
///
/// ```
/// use rnet_schema::unit_of;
/// assert_eq!(unit_of("Angle of the joint [rad]"), Some("rad"));
/// assert_eq!(unit_of("Angle of the joint. Unit: rad"), Some("rad"));
/// assert_eq!(unit_of("Velocity in meters per second"), Some("m/s"));
/// assert_eq!(unit_of("Name of the frame"), None);
/// ```
pub fn unit_of(comment: &str) -> Option<&str> {
    // Comments come from peers, and units are printed on terminals.
    let is_harmless =
        |unit: &str| !unit.contains(|c| char::is_control(c) || is_terminal_control(c));
    // The form of the built-in messages, at the end of the comment.
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
            // `[x](…)` is a link, not a unit.
            && !behind.starts_with('(');
        if is_unit {
            return Some(unit);
        }
    }
    let lower = comment.to_lowercase();
    let ends_there = |at: usize| !lower[at..].starts_with(|c: char| c.is_alphanumeric());
    let mut units = UNITS_IN_WORDS.lines().filter_map(|line| line.split_once(" = "));
    let is_named = |words: &str| lower.find(words).is_some_and(|at| ends_there(at + words.len()));
    units.find(|(words, _)| is_named(words)).map(|(_, symbol)| symbol)
}

/// The comments of the reached types.
pub(crate) fn collect(files: &[FileDescriptorProto], reached: &BTreeSet<String>) -> Docs {
    let mut by_name = BTreeMap::new();
    for file in files {
        for location in file.source_code_info.iter().flat_map(|info| &info.location) {
            let Some(text) = comment(location) else { continue };
            if let Some((full, of)) = names_at(file, &location.path)
                && reached.contains(&of)
            {
                by_name.insert(full, text);
            }
        }
    }
    Docs { by_name }
}

/// Full names of the element at a path, and of its type. A path consists of field numbers of
/// google/protobuf/descriptor.proto, each with an index.
fn names_at(file: &FileDescriptorProto, path: &[i32]) -> Option<(String, String)> {
    let at = |index: i32| usize::try_from(index).ok();
    let (first, mut rest) = path.split_at_checked(2)?;
    let mut message = match *first {
        [4, index] => file.message_type.get(at(index)?)?,
        [5, index] => return names_in(file.package(), file.enum_type.get(at(index)?)?, rest),
        _ => return None,
    };
    let mut full = join(file.package(), message.name());
    loop {
        match *rest {
            [] => return Some((full.clone(), full)),
            [2, index] => return Some((join(&full, message.field.get(at(index)?)?.name()), full)),
            [3, index, ..] => message = message.nested_type.get(at(index)?)?,
            [4, index, ..] => {
                return names_in(&full, message.enum_type.get(at(index)?)?, &rest[2..]);
            }
            _ => return None,
        }
        full = join(&full, message.name());
        rest = &rest[2..];
    }
}

fn names_in(scope: &str, of: &EnumDescriptorProto, rest: &[i32]) -> Option<(String, String)> {
    let full = join(scope, of.name());
    match *rest {
        [] => Some((full.clone(), full)),
        [2, index] => Some((join(&full, of.value.get(usize::try_from(index).ok()?)?.name()), full)),
        _ => None,
    }
}

/// The text before and after an element, with trimmed lines.
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

/// Adds the comments to a set of the files of a pool, for recordings and viewers.
pub(crate) fn attach(
    mut set: FileDescriptorSet,
    pool: &DescriptorPool,
    docs: &Docs,
) -> FileDescriptorSet {
    let mut locations: HashMap<String, Vec<Location>> = HashMap::new();
    let mut add = |file: FileDescriptor, path: &[i32], full: &str| {
        let Some(text) = docs.get(full) else { return };
        let (path, span) = (path.to_vec(), vec![0, 0, 0]);
        let leading_comments = Some(format!(" {text}\n"));
        let location = Location { path, span, leading_comments, ..Default::default() };
        locations.entry(file.name().to_owned()).or_default().push(location);
    };
    for message in pool.all_messages() {
        add(message.parent_file(), message.path(), message.full_name());
        for field in message.fields() {
            add(field.parent_file(), field.path(), field.full_name());
        }
    }
    for of in pool.all_enums() {
        add(of.parent_file(), of.path(), of.full_name());
        for value in of.values() {
            add(of.parent_file(), value.path(), &join(of.full_name(), value.name()));
        }
    }
    for file in &mut set.file {
        let location = locations.remove(file.name());
        file.source_code_info = location.map(|location| SourceCodeInfo { location });
    }
    set
}
