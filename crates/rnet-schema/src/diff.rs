//! Changes from an old type to a new one: both directions of [`crate::check`], plus rules that involve time.
//!
//! At run time, only a writer and a reader exist, and neither is older. The author of a change knows more: a
//! missing value was removed, and a reserved number must not be reused. This report is therefore stricter,
//! for use in CI.

use crate::Schema;
use crate::protobuf_compatibility::{Change, PathNames, check_with_names};
use crate::rules::{Rule, Severity};
use serde::Serialize;
use std::fmt;

/// One change from an old to a new type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiffLine {
    /// The change: `field.added`, `field.removed`, `enum.value_added`, `enum.value_removed`,
    /// `field.reserved_reused`, `field.not_reserved`, or the id of a [`Rule`].
    pub what: String,
    /// The higher severity of both directions.
    pub severity: Severity,
    /// The field, by its new name.
    pub path: String,
    /// The old side; empty if absent.
    pub old: String,
    /// The new side; empty if absent.
    pub new: String,
    /// Whether this change prevents new nodes from reading messages of old nodes.
    pub new_cannot_read_old: bool,
    /// Whether this change prevents old nodes from reading messages of new nodes.
    pub old_cannot_read_new: bool,
}

impl fmt::Display for DiffLine {
    /// ``BREAKING field.type `pose.x`: double x = 1 -> float x = 1 (new cannot read old, old cannot read
    /// new)``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "ok      ",
            Severity::Warning => "warning ",
            Severity::Breaking => "BREAKING",
        };
        write!(f, "{severity} {} `{}`: ", self.what, self.path)?;
        match (self.old.is_empty(), self.new.is_empty()) {
            (true, _) => write!(f, "+ {}", self.new)?,
            (_, true) => write!(f, "- {}", self.old)?,
            _ => write!(f, "{} -> {}", self.old, self.new)?,
        }
        match (self.new_cannot_read_old, self.old_cannot_read_new) {
            (true, true) => f.write_str(" (new cannot read old, old cannot read new)"),
            (true, false) => f.write_str(" (new cannot read old)"),
            (false, true) => f.write_str(" (old cannot read new)"),
            (false, false) => Ok(()),
        }
    }
}

/// Result of [`diff`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Full name of the old type.
    pub old: String,
    /// Full name of the new type.
    pub new: String,
    /// Whether no line is breaking.
    pub compatible: bool,
    /// The changes, the breaking ones first.
    pub lines: Vec<DiffLine>,
    /// Number of changes that are not listed.
    pub omitted: usize,
}

impl fmt::Display for Diff {
    /// One line for the verdict, and one for each change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match (self.compatible, self.lines.is_empty()) {
            (true, true) => "no change",
            (true, false) => "compatible",
            (false, _) => "INCOMPATIBLE",
        };
        write!(f, "{}: {word}", self.new)?;
        for line in &self.lines {
            write!(f, "\n  {line}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n  and {} more", self.omitted)?;
        }
        Ok(())
    }
}

/// Compares an old type with a new one, for humans and for CI.
pub fn diff(old: &Schema, new: &Schema) -> Diff {
    // Paths use the new names in both directions, so that the two halves of one change match.
    let new_reads_old = check_with_names(old, new, PathNames::Reader);
    let old_reads_new = check_with_names(new, old, PathNames::Writer);
    let omitted = new_reads_old.omitted.max(old_reads_new.omitted);
    let mut lines = Vec::new();
    for (verdict, forward) in [(&new_reads_old, true), (&old_reads_new, false)] {
        for change in &verdict.changes {
            add(&mut lines, line(change, forward));
        }
    }
    warn_of_unreserved(&mut lines);
    lines.sort_by(|a: &DiffLine, b| {
        b.severity
            .cmp(&a.severity)
            .then_with(|| a.path.cmp(&b.path))
            .then_with(|| a.what.cmp(&b.what))
    });
    Diff {
        old: old.name().to_owned(),
        new: new.name().to_owned(),
        compatible: lines.iter().all(|line| line.severity != Severity::Breaking),
        lines,
        omitted,
    }
}

/// A change of one direction, expressed as a change over time. `forward`: the writer is the old type.
fn line(change: &Change, forward: bool) -> DiffLine {
    let (old, new) = match forward {
        true => (change.writer.clone(), change.reader.clone()),
        false => (change.reader.clone(), change.writer.clone()),
    };
    let breaking = change.severity == Severity::Breaking;
    // A reserved number has no field on that side; the kind of the change expresses it.
    let old_reserves = change.rule == Rule::FieldReserved && old == "a reserved number or name";
    let (what, severity) = match change.rule {
        Rule::FieldReserved if old_reserves => ("field.reserved_reused", Severity::Breaking),
        Rule::FieldReaderOnly | Rule::FieldWriterOnly if old.is_empty() => {
            ("field.added", Severity::Note)
        }
        Rule::FieldReaderOnly | Rule::FieldWriterOnly => ("field.removed", Severity::Note),
        Rule::EnumValueReaderOnly | Rule::EnumValueWriterOnly if old.is_empty() => {
            ("enum.value_added", Severity::Note)
        }
        // A node that was not updated may still send the value.
        Rule::EnumValueReaderOnly | Rule::EnumValueWriterOnly => {
            ("enum.value_removed", Severity::Breaking)
        }
        rule => (rule.id(), change.severity),
    };
    let removed = what == "enum.value_removed";
    DiffLine {
        what: what.to_owned(),
        severity,
        path: change.path.clone(),
        old,
        new: if removed { String::new() } else { new },
        new_cannot_read_old: forward && breaking || removed,
        old_cannot_read_new: !forward && breaking,
    }
}

/// Adds a line, or the second direction to the existing line.
fn add(lines: &mut Vec<DiffLine>, line: DiffLine) {
    let same = |have: &&mut DiffLine| {
        have.what == line.what
            && have.path == line.path
            && (have.old == line.old && have.new == line.new || have.what == "oneof.merged")
    };
    match lines.iter_mut().find(same) {
        Some(have) => {
            have.severity = have.severity.max(line.severity);
            have.new_cannot_read_old |= line.new_cannot_read_old;
            have.old_cannot_read_new |= line.old_cannot_read_new;
        }
        None => lines.push(line),
    }
}

/// A removed field whose number is not reserved may be reused by mistake.
fn warn_of_unreserved(lines: &mut [DiffLine]) {
    let reserved: Vec<String> = lines
        .iter()
        .filter(|line| line.what == Rule::FieldReserved.id())
        .map(|line| line.path.clone())
        .collect();
    for line in lines.iter_mut().filter(|line| line.what == "field.removed") {
        if !reserved.contains(&line.path) {
            line.what = "field.not_reserved".to_owned();
            line.severity = Severity::Warning;
            line.new = "its number and name are not reserved".to_owned();
        }
    }
}
