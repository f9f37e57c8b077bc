//! The compatibility of plain types: differences between a publisher's and a subscriber's type, and whether
//! the subscriber can read the messages.
//!
//! Layouts are compared byte by byte. At the offset of each subscriber field the publisher must have the same
//! field, or bytes that are zero in every message. Two kinds of bytes are zero: those beyond the end of the
//! publisher's message, because a reader zero-extends shorter messages ([`PlainType::fit`]), and those that
//! the publisher reserved (`_reserved…`). Bytes between fields may have any value, because C and ctypes leave
//! gaps. A struct may therefore grow at its end, and a `#[repr(C)]` struct in Rust and a `ctypes` struct in
//! Python are compatible if their bytes agree.
//!
//! docs/design/types.md lists the rules and their reasons; tests/rules.rs has a case in both directions for
//! each.

use super::{Field, FieldType, PlainType, TypeDesc};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use strum::{IntoStaticStr, VariantArray};

/// The first difference that prevents a subscriber from reading a publisher's messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TypeMismatch {
    /// The field, from the outside in: `pose.x`, `legs[].force`. Empty if the types differ as a whole.
    pub field_path: String,
    /// The publisher's side, as text.
    pub publisher: String,
    /// The subscriber's side, as text.
    pub subscriber: String,
}

impl TypeMismatch {
    /// As [`Display`](std::fmt::Display), with other terms for publisher and subscriber.
    pub(crate) fn between(&self, publisher: &str, subscriber: &str) -> String {
        let field = match &*self.field_path {
            "" => String::new(),
            path => format!("field `{path}`: "),
        };
        format!("{field}{publisher} has {}, {subscriber} has {}", self.publisher, self.subscriber)
    }
}

impl std::fmt::Display for TypeMismatch {
    /// ``field `pose.x`: publisher has f64 at 8, subscriber has f32 at 8``.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.between("publisher", "subscriber"))
    }
}

impl std::error::Error for TypeMismatch {}

/// One difference between a publisher's and a subscriber's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct TypeChange {
    /// The matching rule of docs/design/types.md: `plain.renamed`.
    pub rule: &'static str,
    /// Whether it makes the types incompatible.
    pub breaking: bool,
    /// The field, from the outside in, with the publisher's names if the publisher has the field: `pose.x`.
    /// Empty if the types differ as a whole.
    pub path: String,
    /// The publisher's side; empty if absent.
    pub publisher: String,
    /// The subscriber's side; empty if absent.
    pub subscriber: String,
}

impl std::fmt::Display for TypeChange {
    /// ``field.renamed `pose.x`: publisher has double x = 1, subscriber has double px = 1``.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.rule)?;
        if !self.path.is_empty() {
            write!(f, " `{}`", self.path)?;
        }
        let shown = |text: &'_ str| if text.is_empty() { "nothing" } else { text }.to_owned();
        let (publisher, subscriber) = (shown(&self.publisher), shown(&self.subscriber));
        write!(f, ": publisher has {publisher}, subscriber has {subscriber}")
    }
}

/// A rule for one kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", prefix = "plain.")]
pub(super) enum Rule {
    AppendedByPublisher,
    AppendedBySubscriber,
    PassedOver,
    ReservedUsed,
    Renamed,
    Size,
    Kind,
    TypeName,
    Tail,
    FieldType,
    ArrayLen,
    StructName,
    StructSize,
    Moved,
    Overlap,
    PaddingFilled,
}

impl Rule {
    /// All rules, in the order of the document.
    #[cfg(test)]
    pub(super) const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The name in documents and in [`TypeChange::rule`].
    pub(super) fn id(self) -> &'static str {
        self.into()
    }

    /// Whether messages are unreadable if the rule applies.
    pub(super) const fn is_breaking(self) -> bool {
        !matches!(
            self,
            Self::AppendedByPublisher
                | Self::AppendedBySubscriber
                | Self::PassedOver
                | Self::ReservedUsed
                | Self::Renamed
                | Self::Size
        )
    }
}

/// Checks that a subscriber's type can read a publisher's type, and returns the remaining differences. A raw
/// subscriber accepts every type. A plain subscriber accepts the plain type of the same name if each of its
/// fields has the same offset in the publisher's type, or is read as zero because the publisher does not have
/// it yet.
///
/// # Errors
/// The first incompatible difference. Its offsets count from the start of the message (in arrays, of the
/// first element). [`compare`] returns all differences.
///
/// ```
/// use rnet_core::{Field, FieldType, PlainType, Prim, TypeDesc, types_compatible};
/// let field = |name: &str, offset| Field { name: name.into(), offset, ty: FieldType::Prim(Prim::F64) };
/// let old = PlainType { name: "Level".into(), size: 8, align: 8, tail: false, fields: vec![field("volt", 0)] };
/// let mut new = old.clone();
/// (new.size, new.fields) = (16, vec![field("volt", 0), field("ampere", 8)]);
/// let (old, new) = (TypeDesc::from(old), TypeDesc::from(new));
/// assert_eq!(types_compatible(&old, &new)?[0].rule, "plain.appended_by_subscriber");
/// assert_eq!(types_compatible(&new, &old)?[0].path, "ampere");
/// # Ok::<(), rnet_core::TypeMismatch>(())
/// ```
pub fn compatible(
    publisher: &TypeDesc,
    subscriber: &TypeDesc,
) -> Result<Vec<TypeChange>, TypeMismatch> {
    let mut notes = compare(publisher, subscriber);
    match notes.first().filter(|note| note.breaking) {
        None => Ok(notes),
        Some(_) => {
            let TypeChange { path, publisher, subscriber, .. } = notes.swap_remove(0);
            Err(TypeMismatch { field_path: path, publisher, subscriber })
        }
    }
}

/// All differences between a publisher's and a subscriber's type, incompatible ones first; empty for a raw
/// subscriber. The alignment, the order of the fields in the description and the names of padding do not
/// count as differences.
pub fn compare(publisher: &TypeDesc, subscriber: &TypeDesc) -> Vec<TypeChange> {
    let mut walk = Comparison::default();
    let whole = |walk: &mut Comparison, rule| {
        walk.note(rule, "", publisher.to_string(), subscriber.to_string());
    };
    match (publisher, subscriber) {
        (_, TypeDesc::Raw) => {}
        (TypeDesc::Plain(p), TypeDesc::Plain(s)) if p.name != s.name => {
            whole(&mut walk, Rule::TypeName);
        }
        (TypeDesc::Plain(p), TypeDesc::Plain(s)) if p.tail != s.tail => {
            whole(&mut walk, Rule::Tail);
        }
        (TypeDesc::Plain(p), TypeDesc::Plain(s)) => {
            walk.compare_structs(&FieldPosition::default(), p, s, true);
            // Differences beyond padding are reported for their own fields.
            let only_padding = |plain: &PlainType| {
                let mut fields = plain.fields.iter().filter(|field| !field.is_padding());
                fields.all(|field| end(field) <= p.size.min(s.size))
            };
            if p.size != s.size && only_padding(p) && only_padding(s) {
                whole(&mut walk, Rule::Size);
            }
        }
        (TypeDesc::Protobuf(p), TypeDesc::Protobuf(s)) if p == s => {}
        _ => whole(&mut walk, Rule::Kind),
    }
    walk.notes.sort_by_key(|note| !note.breaking);
    walk.notes
}

/// `pose` and `x` make `pose.x`.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Position in the two messages.
#[derive(Clone, Default)]
struct FieldPosition {
    path: String,
    /// Bytes from the start of the message, on each side.
    p_base: usize,
    s_base: usize,
}

/// The fields of one struct without padding, and the bytes that its publisher sends as zeros.
struct Layout<'a> {
    by_offset: Vec<&'a Field>,
    by_name: HashMap<&'a str, &'a Field>,
    /// Start and end of each reserved field, ordered by start.
    reserved: Vec<(usize, usize)>,
    size: usize,
}

fn end(field: &Field) -> usize {
    field.offset.saturating_add(field.ty.size())
}

impl<'a> Layout<'a> {
    fn of(plain: &'a PlainType) -> Self {
        let shown = || plain.fields.iter().filter(|field| !field.is_padding());
        let mut by_offset: Vec<&Field> = shown().collect();
        by_offset.sort_by_key(|field| field.offset);
        let reserved = plain.fields.iter().filter(|field| field.is_reserved());
        let mut reserved: Vec<_> = reserved.map(|field| (field.offset, end(field))).collect();
        reserved.sort_unstable();
        let by_name = shown().map(|field| (field.name.as_str(), field)).collect();
        Self { by_offset, by_name, reserved, size: plain.size }
    }

    /// The field that starts at `offset`.
    fn at(&self, offset: usize) -> Option<&'a Field> {
        let found = self.by_offset.binary_search_by_key(&offset, |field| field.offset);
        found.ok().map(|index| self.by_offset[index])
    }

    /// The first field that overlaps the bytes from `start` to `stop`.
    fn overlapping(&self, start: usize, stop: usize) -> Option<&'a Field> {
        let first = self.by_offset.partition_point(|field| end(field) <= start);
        self.by_offset.get(first).copied().filter(|field| field.offset < stop)
    }

    /// Number of reserved bytes from `start` to `stop`.
    fn reserved_bytes(&self, start: usize, stop: usize) -> usize {
        let first = self.reserved.partition_point(|(_, end)| *end <= start);
        let within = self.reserved[first..].iter().take_while(|(from, _)| *from < stop);
        within.map(|(from, to)| (*to).min(stop).saturating_sub((*from).max(start))).sum()
    }
}

#[derive(Default)]
struct Comparison {
    notes: Vec<TypeChange>,
}

impl Comparison {
    fn note(&mut self, rule: Rule, path: &str, publisher: String, subscriber: String) {
        let (rule, breaking) = (rule.id(), rule.is_breaking());
        self.notes.push(TypeChange {
            rule,
            breaking,
            path: path.to_owned(),
            publisher,
            subscriber,
        });
    }

    /// Compares the fields of two structs. The caller compares their names and sizes.
    fn compare_structs(
        &mut self,
        position: &FieldPosition,
        p: &PlainType,
        s: &PlainType,
        outermost: bool,
    ) {
        let (p_layout, s_layout) = (Layout::of(p), Layout::of(s));
        let mut found = Vec::new();
        for pf in p.fields.iter().filter(|field| !field.is_padding()) {
            let at = join(&position.path, &pf.name);
            let p_shown = describe_field(position.p_base, pf);
            let same_place = || {
                let there = s_layout.at(pf.offset);
                there.filter(|sf| !p_layout.by_name.contains_key(sf.name.as_str()))
            };
            let named = s_layout.by_name.get(pf.name.as_str()).copied();
            let Some(sf) = named.or_else(same_place) else {
                if s_layout.overlapping(pf.offset, end(pf)).is_none() {
                    let appended = outermost && end(pf) > s.size;
                    let rule = if appended { Rule::AppendedByPublisher } else { Rule::PassedOver };
                    self.note(rule, &at, p_shown, "no such field".to_owned());
                }
                // Otherwise the loop over the subscriber's fields reports the field at this position.
                continue;
            };
            found.push(sf.name.as_str());
            let mut s_shown = describe_field(position.s_base, sf);
            if named.is_none() {
                s_shown = format!("`{}`, {s_shown}", sf.name);
            }
            self.compare_fields(position, at, (pf, p_shown), (sf, s_shown));
        }
        found.sort_unstable();
        let lacks = |field: &&Field| found.binary_search(&field.name.as_str()).is_err();
        for sf in s.fields.iter().filter(|field| !field.is_padding()).filter(lacks) {
            self.compare_missing(position, &p_layout, sf, outermost);
        }
    }

    /// Compares two fields with the same name or position.
    fn compare_fields(
        &mut self,
        position: &FieldPosition,
        at: String,
        (pf, p_shown): (&Field, String),
        (sf, s_shown): (&Field, String),
    ) {
        let within = FieldPosition {
            path: at.clone(),
            p_base: position.p_base.saturating_add(pf.offset),
            s_base: position.s_base.saturating_add(sf.offset),
        };
        let before = self.notes.len();
        // Reports inner differences first: "`pose.x`: f64, f32" is more precise than "`pose`: 24 bytes, 20
        // bytes".
        self.compare_types(&within, &pf.ty, &sf.ty, (&p_shown, &s_shown));
        if pf.offset != sf.offset {
            self.note(Rule::Moved, &at, p_shown, s_shown);
        } else if pf.name != sf.name && !self.notes[before..].iter().any(|note| note.breaking) {
            self.note(Rule::Renamed, &at, p_shown, s_shown);
        }
    }

    /// Handles a subscriber field that the publisher lacks, by the bytes at its position.
    fn compare_missing(
        &mut self,
        position: &FieldPosition,
        p: &Layout<'_>,
        sf: &Field,
        outermost: bool,
    ) {
        let (start, stop) = (sf.offset, end(sf));
        let (at, s_shown) = (join(&position.path, &sf.name), describe_field(position.s_base, sf));
        if let Some(pf) = p.overlapping(start, stop) {
            let publisher = format!("`{}`, {}", pf.name, describe_field(position.p_base, pf));
            return self.note(Rule::Overlap, &at, publisher, s_shown);
        }
        let beyond = if outermost { stop.saturating_sub(start.max(p.size)) } else { 0 };
        let reserved = p.reserved_bytes(start, stop);
        let (rule, publisher) = if beyond.saturating_add(reserved) < stop - start {
            (Rule::PaddingFilled, "padding there that may not be zero")
        } else if reserved > 0 {
            (Rule::ReservedUsed, "zeros there")
        } else {
            (Rule::AppendedBySubscriber, "no such field")
        };
        self.note(rule, &at, publisher.to_owned(), s_shown);
    }

    fn compare_types(
        &mut self,
        position: &FieldPosition,
        p: &FieldType,
        s: &FieldType,
        (p_shown, s_shown): (&str, &str),
    ) {
        let mut differ =
            |rule| self.note(rule, &position.path, p_shown.to_owned(), s_shown.to_owned());
        match (p, s) {
            (FieldType::Prim(p), FieldType::Prim(s)) if p == s => {}
            (FieldType::Array { len: p_len, .. }, FieldType::Array { len: s_len, .. })
                if p_len != s_len =>
            {
                differ(Rule::ArrayLen);
            }
            (FieldType::Array { of: p, .. }, FieldType::Array { of: s, .. }) => {
                let mut elements = position.clone();
                if matches!(**p, FieldType::Struct(_)) {
                    elements.path.push_str("[]");
                }
                self.compare_types(&elements, p, s, (p_shown, s_shown));
            }
            (FieldType::Struct(p), FieldType::Struct(s)) if p.name != s.name => {
                differ(Rule::StructName);
            }
            (FieldType::Struct(p), FieldType::Struct(s)) => {
                if p.size == s.size {
                    return self.compare_structs(position, p, s, false);
                }
                // A difference in the additional part is only the reason, not a separate difference.
                let mut inside = Comparison::default();
                inside.compare_structs(position, p, s, false);
                let ignored = [Rule::PassedOver.id(), Rule::PaddingFilled.id()];
                inside.notes.retain(|note| !ignored.contains(&note.rule));
                self.notes.append(&mut inside.notes);
                self.note(Rule::StructSize, &position.path, p_shown.to_owned(), s_shown.to_owned());
            }
            _ => differ(Rule::FieldType),
        }
    }
}

/// `f64 at 8`.
fn describe_field(base: usize, field: &Field) -> String {
    format!("{} at {}", field.ty, base.saturating_add(field.offset))
}
