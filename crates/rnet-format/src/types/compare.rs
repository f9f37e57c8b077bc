//! Compares an old version of types with a new one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rnet::MessageType;
use rnet::schema::{Diff, DiffLine, Schema, Severity, Verdict, check, diff, is_nested};
use rnet_schema::prost_reflect::MessageDescriptor;
use rnet_schema::reflect::ReflectSchema;
use serde::Serialize;

use super::catalog::Catalog;
use super::proto_text::field_type;
use crate::error::{Failure, Outcome};

/// The direction of compatibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Old nodes and recordings write, new nodes read.
    OldWrites,
    /// New nodes write, old nodes read.
    NewWrites,
    /// Both directions.
    Both,
}

/// The compared sides.
pub struct Sides<'a> {
    /// A `.proto` file, a folder of them, or a descriptor set.
    pub old: &'a Path,
    /// The new version of the path.
    pub new: &'a Path,
    /// Names of the types; all if empty.
    pub types: &'a [String],
    /// Folders of imports.
    pub include: &'a [PathBuf],
}

/// The message types of one path, by full name; without those of imports, or only the requested ones.
struct TypeSet {
    path: PathBuf,
    types: BTreeMap<String, Schema>,
}

impl TypeSet {
    fn of(path: &Path, sides: &Sides<'_>) -> Outcome<TypeSet> {
        let catalog = Catalog::of(&[path.to_owned()], sides.include)?;
        let found: Vec<MessageType> = match sides.types.is_empty() {
            true => {
                catalog.names().map(|name| catalog.get(name)).collect::<Result<_, Failure>>()?
            }
            false => {
                sides.types.iter().map(|name| catalog.find(name)).collect::<Result<_, Failure>>()?
            }
        };
        let schemas = found.into_iter().filter_map(|found| match found {
            MessageType::Protobuf(schema) => Some((schema.name().to_owned(), schema)),
            _ => None,
        });
        let side = TypeSet { path: path.to_owned(), types: schemas.collect() };
        match side.types.is_empty() {
            true => Err(Failure::Failed(format!("{} defines no message type", path.display()))),
            false => Ok(side),
        }
    }
}

/// A type on both sides, or on one.
struct TypePair<'a> {
    name: &'a str,
    old: Option<&'a Schema>,
    new: Option<&'a Schema>,
}

/// A type on only one side.
#[derive(Serialize)]
pub struct UnmatchedType {
    name: String,
    /// Whether the change breaks nodes that use the type.
    breaking: bool,
    /// A type on the other side with the same fields.
    same_fields: Option<String>,
}

/// The result of comparing the types of two sides.
#[derive(Serialize)]
pub struct TypeReport<T> {
    old: String,
    new: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    /// Whether no change breaks compatibility.
    pub compatible: bool,
    /// The types on both sides.
    pub types: Vec<T>,
    removed: Vec<UnmatchedType>,
    added: Vec<UnmatchedType>,
    #[serde(skip)]
    broken: usize,
    #[serde(skip)]
    gone: usize,
}

/// A checked type on both sides.
#[derive(Serialize)]
pub struct CheckedType {
    name: String,
    compatible: bool,
    /// Whether the new version reads what the old one writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_writes: Option<Verdict>,
    /// Whether the old version reads what the new one writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_writes: Option<Verdict>,
    /// Changes that work where two nodes meet, but are probably mistakes.
    warnings: Vec<DiffLine>,
}

/// Checks each type on both sides by the rules of nodes.
///
/// # Errors
/// A side cannot be read or defines no type.
pub fn check_types(sides: &Sides<'_>, direction: Direction) -> Outcome<TypeReport<CheckedType>> {
    let compare = |old: &Schema, new: &Schema| checked(old, new, direction);
    report(sides, Some(direction), compare, |one| one.compatible)
}

/// Lists all changes of each type on both sides.
///
/// # Errors
/// A side cannot be read or defines no type.
pub fn diff_types(sides: &Sides<'_>) -> Outcome<TypeReport<Diff>> {
    report(sides, None, diff, |one| one.compatible)
}

fn report<T>(
    sides: &Sides<'_>,
    direction: Option<Direction>,
    compare: impl Fn(&Schema, &Schema) -> T,
    is_compatible: fn(&T) -> bool,
) -> Outcome<TypeReport<T>> {
    let (old, new) = (TypeSet::of(sides.old, sides)?, TypeSet::of(sides.new, sides)?);
    let pairs = pairs(&old, &new);
    let (mut removed, added) = unmatched_types(&pairs);
    // New nodes do not write removed types.
    removed.iter_mut().for_each(|r| r.breaking &= direction != Some(Direction::NewWrites));
    let both = pairs.iter().filter_map(|pair| pair.old.zip(pair.new));
    let types: Vec<T> = both.map(|(old, new)| compare(old, new)).collect();
    let broken = types.iter().filter(|one| !is_compatible(one)).count();
    let gone = removed.iter().filter(|r| r.breaking).count();
    Ok(TypeReport {
        old: old.path.display().to_string(),
        new: new.path.display().to_string(),
        direction: direction.map(|direction| match direction {
            Direction::OldWrites => "old-writes",
            Direction::NewWrites => "new-writes",
            Direction::Both => "both",
        }),
        compatible: broken + gone == 0,
        types,
        removed,
        added,
        broken,
        gone,
    })
}

fn pairs<'a>(old: &'a TypeSet, new: &'a TypeSet) -> Vec<TypePair<'a>> {
    let mut names: Vec<&str> =
        old.types.keys().chain(new.types.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let pair = |name| TypePair { name, old: old.types.get(name), new: new.types.get(name) };
    names.into_iter().map(pair).collect()
}

/// The types on only one side: removed, and added.
fn unmatched_types<'a>(pairs: &[TypePair<'a>]) -> (Vec<UnmatchedType>, Vec<UnmatchedType>) {
    let removed: Vec<(&'a str, &Schema)> = pairs
        .iter()
        .filter(|pair| pair.new.is_none())
        .filter_map(|pair| Some((pair.name, pair.old?)))
        .collect();
    let added: Vec<(&'a str, &Schema)> = pairs
        .iter()
        .filter(|pair| pair.old.is_none())
        .filter_map(|pair| Some((pair.name, pair.new?)))
        .collect();
    let twin = |of: &Schema, among: &[(&'a str, &Schema)]| {
        let same = |(_, other): &&(&str, &Schema)| same_fields(of.descriptor(), other.descriptor());
        among.iter().find(same).map(|(name, _)| *name)
    };
    // A topic may have a top-level type; a nested type is compared as part of its outer type.
    let old_names = || pairs.iter().filter(|pair| pair.old.is_some()).map(|pair| pair.name);
    let unmatched =
        |(name, schema): &(&'a str, &Schema), breaking, others: &[(&'a str, &Schema)]| {
            let same_fields = twin(schema, others).map(str::to_owned);
            UnmatchedType { name: (*name).to_owned(), breaking, same_fields }
        };
    (
        removed.iter().map(|one| unmatched(one, !is_nested(one.0, old_names()), &added)).collect(),
        added.iter().map(|one| unmatched(one, false, &removed)).collect(),
    )
}

/// Whether one may be the other under a new name.
fn same_fields(a: &MessageDescriptor, b: &MessageDescriptor) -> bool {
    let same = |field: rnet_schema::prost_reflect::FieldDescriptor| {
        b.get_field(field.number()).is_some_and(|other| {
            other.name() == field.name() && field_type(&other) == field_type(&field)
        })
    };
    a.fields().len() > 0 && a.fields().len() == b.fields().len() && a.fields().all(same)
}

fn checked(old: &Schema, new: &Schema, direction: Direction) -> CheckedType {
    let old_writes = (direction != Direction::NewWrites).then(|| check(old, new));
    let new_writes = (direction != Direction::OldWrites).then(|| check(new, old));
    let compatible = [&old_writes, &new_writes].into_iter().flatten().all(|v| v.compatible);
    // A change that breaks only over time does not affect the result here; it is reported as a warning.
    let breaks = |line: &DiffLine| {
        let changes = [&old_writes, &new_writes].into_iter().flatten().flat_map(|v| &v.changes);
        changes.filter(|c| c.severity == Severity::Breaking).any(|c| c.path == line.path)
    };
    let only_in_time = |line: &DiffLine| line.severity != Severity::Note && !breaks(line);
    let warnings = diff(old, new).lines.into_iter().filter(only_in_time).collect();
    CheckedType { name: old.name().to_owned(), compatible, old_writes, new_writes, warnings }
}

impl CheckedType {
    /// The result as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let one = self;
        let mut lines = Vec::new();
        let directions = [
            ("old writes, new reads", &one.old_writes),
            ("new writes, old reads", &one.new_writes),
        ];
        let verdicts =
            || directions.iter().filter_map(|(name, verdict)| Some((name, verdict.as_ref()?)));
        let word = match one.compatible {
            false => "INCOMPATIBLE",
            true if verdicts().all(|(_, v)| v.changes.is_empty()) => "no change",
            true => "compatible",
        };
        lines.push(format!("{}: {word}", one.name));
        for (name, verdict) in verdicts().filter(|(_, v)| !v.changes.is_empty()) {
            let word = if verdict.compatible { "compatible" } else { "INCOMPATIBLE" };
            lines.push(format!("  {name}: {word}"));
            for change in &verdict.changes {
                lines.push(format!("    {change}"));
            }
            if verdict.omitted > 0 {
                lines.push(format!("    and {} more", verdict.omitted));
            }
        }
        for line in &one.warnings {
            let DiffLine { what, path, old, new, .. } = line;
            let change = match new.is_empty() {
                true => format!("{old} was removed"),
                false => format!("{old} -> {new}"),
            };
            lines.push(format!("  warning {what} `{path}`: {change}"));
        }
        lines
    }
}

impl<T> TypeReport<T> {
    /// The types on only one side, as lines of text.
    pub fn unmatched_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for one in &self.removed {
            let word = if one.breaking { "REMOVED" } else { "removed" };
            let hint = one.same_fields.as_ref().map_or_else(String::new, |other| {
                format!("; {other} has the same fields, but a type is identified by its name")
            });
            lines.push(format!("{}: {word}{hint}", one.name));
        }
        for one in &self.added {
            lines.push(format!("{}: added", one.name));
        }
        lines
    }

    /// The number of compared types and the result, as text.
    pub fn summary(&self) -> String {
        let (compared, broken) = (self.types.len(), self.broken);
        let s = if compared == 1 { "" } else { "s" };
        let gone = match self.gone {
            0 => String::new(),
            gone => format!(", {gone} removed"),
        };
        format!("{compared} type{s} compared, {broken} incompatible{gone}")
    }
}
