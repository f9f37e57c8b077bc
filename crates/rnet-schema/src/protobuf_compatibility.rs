//! The compatibility of protobuf types: whether a reader of one type understands messages of a writer of
//! another type.
//!
//! The two types are compared field by field, by number first, because the wire format contains only numbers.
//! Each pair of types is compared once, even in recursive types, and a step budget bounds the comparison:
//! both types may come from hostile peers. The traversal is breadth-first, so that a report contains the
//! shortest path.

mod enums;
mod fields;
mod reserved;

use crate::Schema;
use crate::limits::{MAX_CHECK_STEPS, MAX_PATH_LEN_BYTES, MAX_REPORTED_CHANGES};
use crate::rules::{Rule, Severity};
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, Syntax};
use serde::Serialize;
use std::collections::{HashSet, VecDeque};
use std::fmt;

/// One difference between the types of a writer and a reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The rule that covers it.
    pub rule: Rule,
    /// Its severity.
    pub severity: Severity,
    /// The field, from the outside in: `pose.orientation.w`, `legs[].force`; enum values follow a colon:
    /// `mode:IDLE`. Empty for the types as a whole.
    pub path: String,
    /// The writer's side: `double w = 4`; empty if absent.
    pub writer: String,
    /// The reader's side; empty if absent.
    pub reader: String,
}

impl fmt::Display for Change {
    /// ``breaking field.type `pose.x`: writer has double x = 1, reader has float x = 1``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Breaking => "breaking",
        };
        write!(f, "{severity} {}", self.rule)?;
        if !self.path.is_empty() {
            write!(f, " `{}`", self.path)?;
        }
        let or_nothing = |text: &'_ str| if text.is_empty() { "nothing" } else { text }.to_owned();
        let (writer, reader) = (or_nothing(&self.writer), or_nothing(&self.reader));
        write!(f, ": writer has {writer}, reader has {reader}")
    }
}

/// Result of [`check`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether the reader understands the writer.
    pub compatible: bool,
    /// Full name of the writer's type.
    pub writer: String,
    /// Full name of the reader's type.
    pub reader: String,
    /// The differences, the breaking ones first; at most [`MAX_REPORTED_CHANGES`].
    pub changes: Vec<Change>,
    /// Number of changes that are not listed.
    pub omitted: usize,
}

impl Verdict {
    /// The first difference that makes the types incompatible.
    pub fn first_breaking(&self) -> Option<&Change> {
        self.changes.iter().find(|change| change.severity == Severity::Breaking)
    }
}

impl fmt::Display for Verdict {
    /// One line for the verdict, and one for each difference.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match (self.compatible, self.changes.is_empty()) {
            (true, true) => "identical",
            (true, false) => "compatible",
            (false, _) => "INCOMPATIBLE",
        };
        write!(f, "{word}: writer {}, reader {}", self.writer, self.reader)?;
        for change in &self.changes {
            write!(f, "\n  {change}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n  and {} more", self.omitted)?;
        }
        Ok(())
    }
}

/// Compares the type of a writer with that of a reader. Not symmetric: a closed enum, a oneof or a required
/// field at the reader can be compatible in one direction and lose data in the other.
///
/// ```
/// use rnet_schema::{check, compile_text};
/// let text = |body: &str| format!("syntax = \"proto3\"; message Pose {{ {body} }}");
/// let old = compile_text("p.proto", &text("double x = 1;"))?.schema("Pose")?;
/// let new = compile_text("p.proto", &text("float x = 1; double y = 2;"))?.schema("Pose")?;
/// let verdict = check(&old, &new);
/// assert!(!verdict.compatible);
/// assert_eq!(
///     verdict.first_breaking().unwrap().to_string(),
///     "breaking field.type `x`: writer has double x = 1, reader has float x = 1"
/// );
/// # Ok::<(), rnet_schema::SchemaError>(())
/// ```
pub fn check(writer: &Schema, reader: &Schema) -> Verdict {
    check_with_names(writer, reader, PathNames::Reader)
}

/// Which side's field names appear in the paths of a report.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum PathNames {
    Writer,
    Reader,
}

pub(crate) fn check_with_names(writer: &Schema, reader: &Schema, names: PathNames) -> Verdict {
    let mut walk = TypeComparison::new(names);
    if writer != reader {
        walk.run(writer.descriptor(), reader.descriptor());
    }
    let mut changes = walk.changes;
    changes.sort_by_key(|change| std::cmp::Reverse(change.severity));
    let omitted = changes.len().saturating_sub(MAX_REPORTED_CHANGES) + walk.uncounted;
    changes.truncate(MAX_REPORTED_CHANGES);
    Verdict {
        compatible: changes.first().is_none_or(|first| first.severity != Severity::Breaking),
        writer: writer.name().to_owned(),
        reader: reader.name().to_owned(),
        changes,
        omitted,
    }
}

/// State of one comparison.
struct TypeComparison {
    names: PathNames,
    changes: Vec<Change>,
    uncounted: usize,
    steps: usize,
    /// Pairs of full names that are compared or queued.
    seen: HashSet<(String, String)>,
    waiting: VecDeque<(String, MessageDescriptor, MessageDescriptor)>,
}

impl TypeComparison {
    fn new(names: PathNames) -> Self {
        let (seen, waiting) = (HashSet::new(), VecDeque::new());
        Self { names, changes: Vec::new(), uncounted: 0, steps: 0, seen, waiting }
    }

    fn run(&mut self, writer: &MessageDescriptor, reader: &MessageDescriptor) {
        if writer.full_name() != reader.full_name() {
            let (w, r) = (format!("type {}", writer.full_name()), reader.full_name());
            self.add(Rule::TypeName, "", w, format!("type {r}"));
            return;
        }
        self.seen.insert((writer.full_name().to_owned(), reader.full_name().to_owned()));
        self.waiting.push_back((String::new(), writer.clone(), reader.clone()));
        while let Some((path, writer, reader)) = self.waiting.pop_front() {
            let fields = writer.fields().len() + reader.fields().len() + 1;
            let reserved =
                [&writer, &reader].map(|m| m.reserved_ranges().len() + m.reserved_names().len());
            if !self.consume_steps(fields + reserved[0] + reserved[1]) {
                return;
            }
            self.messages(&path, &writer, &reader);
        }
    }

    /// Consumes steps of the budget; returns `false` and reports the limit once if the budget is exhausted.
    fn consume_steps(&mut self, steps: usize) -> bool {
        let within = self.steps <= MAX_CHECK_STEPS;
        self.steps = self.steps.saturating_add(steps);
        if within && self.steps > MAX_CHECK_STEPS {
            let text =
                format!("a comparison of more than MAX_CHECK_STEPS = {MAX_CHECK_STEPS} steps");
            // Without this entry, the verdict would claim more than was compared.
            self.push(Rule::Limit, "", text.clone(), text);
        }
        self.steps <= MAX_CHECK_STEPS
    }

    fn add(&mut self, rule: Rule, path: &str, writer: String, reader: String) {
        // Notes are dropped first, because breaking changes decide.
        let full = self.changes.len() >= 4 * MAX_REPORTED_CHANGES;
        if full && rule.severity() != Severity::Breaking
            || self.changes.len() >= 8 * MAX_REPORTED_CHANGES
        {
            self.uncounted += 1;
            return;
        }
        self.push(rule, path, writer, reader);
    }

    fn push(&mut self, rule: Rule, path: &str, writer: String, reader: String) {
        let (path, severity) = (path.to_owned(), rule.severity());
        self.changes.push(Change { rule, severity, path, writer, reader });
    }

    /// Queues two message types at the same position, unless the pair was seen before.
    fn enqueue_pair(
        &mut self,
        path: String,
        writer: &MessageDescriptor,
        reader: &MessageDescriptor,
    ) {
        let pair = (writer.full_name().to_owned(), reader.full_name().to_owned());
        if self.seen.contains(&pair) || !self.consume_steps(1) {
            return;
        }
        if pair.0 != pair.1 {
            let (w, r) = (format!("message {}", pair.0), format!("message {}", pair.1));
            let other_name = short(&pair.0) != short(&pair.1);
            if other_name && !self.consume_steps(writer.fields().len()) {
                return;
            }
            if other_name && !same_fields(writer, reader) {
                self.add(Rule::TypeReplaced, &path, w, r);
                self.seen.insert(pair);
                return;
            }
            self.add(Rule::TypeRenamed, &path, w, r);
        }
        self.seen.insert(pair);
        self.waiting.push_back((path, writer.clone(), reader.clone()));
    }
}

fn short(full_name: &str) -> &str {
    full_name.rsplit('.').next().unwrap_or(full_name)
}

/// Whether two messages have the same field names and numbers. This decides "renamed" for types with
/// different names: a `Wrench` has the wire form of a `Pose` but is not one.
fn same_fields(a: &MessageDescriptor, b: &MessageDescriptor) -> bool {
    let same = |field: FieldDescriptor| {
        b.get_field(field.number()).is_some_and(|other| other.name() == field.name())
    };
    a.fields().len() == b.fields().len() && a.fields().all(same)
}

/// The path of a nested field. Truncated at the maximum length of a path, because thousands of types may be
/// nested.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else if path.ends_with(ELLIPSIS) {
        path.to_owned()
    } else if path.len() + name.len() > MAX_PATH_LEN_BYTES {
        format!("{path}{ELLIPSIS}")
    } else {
        format!("{path}.{name}")
    }
}

/// Represents the rest of a path; names cannot contain it.
const ELLIPSIS: char = '…';

/// The path of the elements of a list or map.
pub(crate) fn elements_of(path: &str) -> String {
    if path.ends_with(ELLIPSIS) { path.to_owned() } else { format!("{path}[]") }
}

/// The type of a field in `.proto` syntax, without its label.
pub(crate) fn type_text(field: &FieldDescriptor) -> String {
    if field.is_map()
        && let Kind::Message(entry) = field.kind()
    {
        let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
        return format!("map<{}, {}>", type_text(&key), type_text(&value));
    }
    match field.kind() {
        Kind::Message(message) if field.is_group() => format!("group {}", message.full_name()),
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(enumeration) => format!("enum {}", enumeration.full_name()),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
}

/// A field in `.proto` syntax: `repeated double position = 3`.
pub(crate) fn field_text(field: &FieldDescriptor) -> String {
    let label = if field.is_required() {
        "required "
    } else if field.is_list() {
        "repeated "
    } else {
        ""
    };
    format!("{label}{} {} = {}", type_text(field), field.name(), field.number())
}

/// Official runtimes remove numbers that a closed enum does not know from the message.
fn is_closed(enumeration: &EnumDescriptor) -> bool {
    enumeration.parent_file().syntax() == Syntax::Proto2
}
