//! `rnet type check` and `rnet type diff`: an old version of types against a new one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rnet::MessageType;
use rnet::schema::prost_reflect::MessageDescriptor;
use rnet::schema::{Diff, DiffLine, Schema, Severity, Verdict, check, diff, is_nested};
use serde::Serialize;

use super::args::{CompareArgs, Direction, TypeCheckArgs, TypeDiffArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use rnet_format::FormatError;
use rnet_format::types::Catalog;
use rnet_format::types::field_type;

/// The message types of one path, by full name; without those of imports, or only those that are asked for.
struct TypeSet {
    path: PathBuf,
    types: BTreeMap<String, Schema>,
}

impl TypeSet {
    fn of(path: &Path, args: &CompareArgs) -> Outcome<TypeSet> {
        let catalog = Catalog::of(&[path.to_owned()], &args.include)?;
        let found: Vec<MessageType> = match args.types.is_empty() {
            true => {
                catalog.names().map(|name| catalog.get(name)).collect::<Result<_, FormatError>>()?
            }
            false => args
                .types
                .iter()
                .map(|name| catalog.find(name))
                .collect::<Result<_, FormatError>>()?,
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

/// One type of either side.
struct TypePair<'a> {
    name: &'a str,
    old: Option<&'a Schema>,
    new: Option<&'a Schema>,
}

/// A type that is on one side only.
#[derive(Serialize)]
struct UnmatchedType<'a> {
    name: &'a str,
    /// Whether nodes that use the type are left alone.
    breaking: bool,
    /// A type of the other side that has the same fields.
    same_fields: Option<&'a str>,
}

#[derive(Serialize)]
struct Report<'a, T> {
    old: String,
    new: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    compatible: bool,
    types: Vec<T>,
    removed: Vec<UnmatchedType<'a>>,
    added: Vec<UnmatchedType<'a>>,
}

#[derive(Serialize)]
struct CheckedType {
    name: String,
    compatible: bool,
    /// The new version reads what the old one writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_writes: Option<Verdict>,
    /// The old version reads what the new one writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_writes: Option<Verdict>,
    /// What works where two nodes meet, and is a mistake in a change.
    warnings: Vec<DiffLine>,
}

pub fn check_run(context: &mut Context, args: TypeCheckArgs) -> Outcome {
    let direction = args.direction;
    let compare = |old: &Schema, new: &Schema| checked(old, new, direction);
    run(context, &args.sides, Some(direction), compare, |one| one.compatible, print_checked)
}

pub fn diff_run(context: &mut Context, args: TypeDiffArgs) -> Outcome {
    let print = |context: &mut Context, one: &Diff| match one.lines.is_empty() {
        true => Ok(()),
        false => context.line(format_args!("{one}")),
    };
    run(context, &args.sides, None, diff, |one| one.compatible, print)
}

/// Compares each type that both sides have, and prints what was found.
fn run<T: Serialize>(
    context: &mut Context,
    args: &CompareArgs,
    direction: Option<Direction>,
    compare: impl Fn(&Schema, &Schema) -> T,
    is_compatible: fn(&T) -> bool,
    print: fn(&mut Context, &T) -> Outcome,
) -> Outcome {
    let (old, new) = (TypeSet::of(&args.old, args)?, TypeSet::of(&args.new, args)?);
    let pairs = pairs(&old, &new);
    let (mut removed, added) = unmatched_types(&pairs);
    // What is gone is not written by new nodes.
    removed.iter_mut().for_each(|r| r.breaking &= direction != Some(Direction::NewWrites));
    let both = pairs.iter().filter_map(|pair| pair.old.zip(pair.new));
    let types: Vec<T> = both.map(|(old, new)| compare(old, new)).collect();
    let broken = types.iter().filter(|one| !is_compatible(one)).count();
    let gone = removed.iter().filter(|r| r.breaking).count();
    let compatible = broken + gone == 0;
    let report = Report {
        old: old.path.display().to_string(),
        new: new.path.display().to_string(),
        direction: direction.map(|direction| match direction {
            Direction::OldWrites => "old-writes",
            Direction::NewWrites => "new-writes",
            Direction::Both => "both",
        }),
        compatible,
        types,
        removed,
        added,
    };
    if context.json() {
        context.document(&report)?;
    } else {
        report.types.iter().try_for_each(|one| print(context, one))?;
        print_unmatched(context, &report.removed, &report.added)?;
        summary(context, report.types.len(), broken, gone)?;
    }
    if compatible { Ok(()) } else { Err(Failure::AlreadyReported) }
}

fn pairs<'a>(old: &'a TypeSet, new: &'a TypeSet) -> Vec<TypePair<'a>> {
    let mut names: Vec<&str> =
        old.types.keys().chain(new.types.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let pair = |name| TypePair { name, old: old.types.get(name), new: new.types.get(name) };
    names.into_iter().map(pair).collect()
}

/// The types that only one side has: removed, and added.
fn unmatched_types<'a>(pairs: &[TypePair<'a>]) -> (Vec<UnmatchedType<'a>>, Vec<UnmatchedType<'a>>) {
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
    // A topic may be of a type that stands by itself; one inside of another is a part of that, which is compared.
    let old_names = || pairs.iter().filter(|pair| pair.old.is_some()).map(|pair| pair.name);
    let unmatched =
        |(name, schema): &(&'a str, &Schema), breaking, others: &[(&'a str, &Schema)]| {
            UnmatchedType { name, breaking, same_fields: twin(schema, others) }
        };
    (
        removed.iter().map(|one| unmatched(one, !is_nested(one.0, old_names()), &added)).collect(),
        added.iter().map(|one| unmatched(one, false, &removed)).collect(),
    )
}

/// Whether one may be the other under a new name.
fn same_fields(a: &MessageDescriptor, b: &MessageDescriptor) -> bool {
    let same = |field: rnet::schema::prost_reflect::FieldDescriptor| {
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
    // What only time makes a fault is no verdict here; it is told.
    let breaks = |line: &DiffLine| {
        let changes = [&old_writes, &new_writes].into_iter().flatten().flat_map(|v| &v.changes);
        changes.filter(|c| c.severity == Severity::Breaking).any(|c| c.path == line.path)
    };
    let only_in_time = |line: &DiffLine| line.severity != Severity::Note && !breaks(line);
    let warnings = diff(old, new).lines.into_iter().filter(only_in_time).collect();
    CheckedType { name: old.name().to_owned(), compatible, old_writes, new_writes, warnings }
}

fn print_checked(context: &mut Context, one: &CheckedType) -> Outcome {
    let directions =
        [("old writes, new reads", &one.old_writes), ("new writes, old reads", &one.new_writes)];
    let verdicts =
        || directions.iter().filter_map(|(name, verdict)| Some((name, verdict.as_ref()?)));
    let word = match one.compatible {
        false => "INCOMPATIBLE",
        true if verdicts().all(|(_, v)| v.changes.is_empty()) => "no change",
        true => "compatible",
    };
    context.line(format_args!("{}: {word}", one.name))?;
    for (name, verdict) in verdicts().filter(|(_, v)| !v.changes.is_empty()) {
        let word = if verdict.compatible { "compatible" } else { "INCOMPATIBLE" };
        context.line(format_args!("  {name}: {word}"))?;
        for change in &verdict.changes {
            context.line(format_args!("    {change}"))?;
        }
        if verdict.omitted > 0 {
            context.line(format_args!("    and {} more", verdict.omitted))?;
        }
    }
    for line in &one.warnings {
        let DiffLine { what, path, old, new, .. } = line;
        let change = match new.is_empty() {
            true => format!("{old} was removed"),
            false => format!("{old} -> {new}"),
        };
        context.line(format_args!("  warning {what} `{path}`: {change}"))?;
    }
    Ok(())
}

fn print_unmatched(
    context: &mut Context,
    removed: &[UnmatchedType<'_>],
    added: &[UnmatchedType<'_>],
) -> Outcome {
    for one in removed {
        let word = if one.breaking { "REMOVED" } else { "removed" };
        let hint = one.same_fields.map_or_else(String::new, |other| {
            format!("; {other} has the same fields, but a type is identified by its name")
        });
        context.line(format_args!("{}: {word}{hint}", one.name))?;
    }
    for one in added {
        context.line(format_args!("{}: added", one.name))?;
    }
    Ok(())
}

/// Behind the lines that it sums up, on a terminal too.
fn summary(context: &mut Context, compared: usize, broken: usize, gone: usize) -> Outcome {
    context.flush()?;
    let s = if compared == 1 { "" } else { "s" };
    let gone = if gone == 0 { String::new() } else { format!(", {gone} removed") };
    context.eprintln(format_args!("{compared} type{s} compared, {broken} incompatible{gone}"));
    Ok(())
}
