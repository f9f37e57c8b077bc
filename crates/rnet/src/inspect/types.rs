//! How the types of a topic's publishers and subscribers differ.

use rnet_core::{TypeDesc, TypeMismatch, TypeNote, types_compare};
use rnet_schema::{Schema, Severity};
use serde::Serialize;

use super::{PublisherInfo, Snapshot, SubscriptionInfo};
use crate::MessageType;
use crate::fit::{Told, types_fit};

/// The types of a publisher and a subscription, held against each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypeComparison {
    /// The publisher.
    pub publisher: u64,
    /// Name of its node.
    pub publisher_node: String,
    /// The subscription.
    pub subscription: u64,
    /// Name of its node.
    pub subscriber_node: String,
    /// Whether the subscriber understands the publisher.
    pub compatible: bool,
    /// The differences, those that break it first.
    pub changes: Vec<TypeChange>,
}

/// One difference between two types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypeChange {
    /// The rule of docs/design/types.md that covers it.
    pub rule: String,
    /// Whether it makes the types incompatible.
    pub breaking: bool,
    /// The field, from the outside in: `pose.x`; empty when the types as a whole are meant.
    pub path: String,
    /// What the publisher has there; empty for nothing.
    pub publisher: String,
    /// What the subscriber has there; empty for nothing.
    pub subscriber: String,
}

impl std::fmt::Display for TypeChange {
    /// ``field.renamed `pose.x`: publisher has double x = 1, subscriber has double px = 1``.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.rule)?;
        if !self.path.is_empty() {
            write!(f, " `{}`", self.path)?;
        }
        let shown = |text: &'_ str| if text.is_empty() { "nothing" } else { text }.to_owned();
        let (publisher, subscriber) = (shown(&self.publisher), shown(&self.subscriber));
        write!(f, ": publisher has {publisher}, subscriber has {subscriber}")
    }
}

impl Snapshot {
    /// Every publisher of a topic against every subscription to it, as they do when they meet. Pairs
    /// of which the subscriber takes raw bytes are left out: it takes everything.
    pub fn compare_types(&self, topic: &str) -> Vec<TypeComparison> {
        let publishers = self.publishers.iter().filter(|p| p.topic == topic);
        let typed =
            |s: &&SubscriptionInfo| s.topic == topic && !matches!(s.type_desc, TypeDesc::Raw);
        let pairs = publishers
            .flat_map(|p| self.subscriptions.iter().filter(typed).map(move |s| compare(p, s)));
        pairs.collect()
    }
}

/// What differs between the types of a publisher and a subscriber, what breaks it first: by the rules by which they compare
/// theirs when they meet. Nothing, if the subscriber takes raw bytes: it takes everything.
///
/// ```
/// use rnet::schema::compile_text;
/// let pose = |field: &str| {
///     let text = format!("syntax = \"proto3\"; message Pose {{ {field} }}");
///     compile_text("pose.proto", &text)?.schema("Pose").map(rnet::MessageType::from)
/// };
/// let changes = rnet::inspect::compare_types(&pose("double x = 1;")?, &pose("float x = 1;")?);
/// assert!(changes[0].breaking);
/// assert_eq!(changes[0].to_string(), "field.type `x`: publisher has double x = 1, subscriber has float x = 1");
/// # Ok::<(), rnet::schema::SchemaError>(())
/// ```
pub fn compare_types(publisher: &MessageType, subscriber: &MessageType) -> Vec<TypeChange> {
    let (p, s) = (publisher.desc(), subscriber.desc());
    if matches!(s, TypeDesc::Raw) {
        return Vec::new();
    }
    let told = |of: &MessageType| Told::Type(of.schema().cloned());
    let (writes, reads) = (told(publisher), told(subscriber));
    differences((&p, publisher.schema()), (&s, subscriber.schema()))
        .unwrap_or_else(|| of_others(types_fit((&p, &writes), (&s, &reads)).err()))
}

fn compare(p: &PublisherInfo, s: &SubscriptionInfo) -> TypeComparison {
    let changes = differences((&p.type_desc, p.schema.as_ref()), (&s.type_desc, s.schema.as_ref()))
        .unwrap_or_else(|| of_others(mismatch(p, s)));
    TypeComparison {
        publisher: p.id,
        publisher_node: p.node.clone(),
        subscription: s.id,
        subscriber_node: s.node.clone(),
        compatible: !changes.iter().any(|change| change.breaking),
        changes,
    }
}

/// The differences, what breaks first. `None` of a protobuf message against something else, or one whose type cannot be read.
fn differences(
    (p, writer): (&TypeDesc, Option<&Schema>),
    (s, reader): (&TypeDesc, Option<&Schema>),
) -> Option<Vec<TypeChange>> {
    let mut changes: Vec<TypeChange> = match (writer, reader) {
        (Some(writer), Some(reader)) => {
            rnet_schema::check(writer, reader).changes.into_iter().map(of_protobuf).collect()
        }
        (None, None) if !is_protobuf(p) && !is_protobuf(s) => {
            types_compare(p, s).into_iter().map(of_plain).collect()
        }
        _ => return None,
    };
    changes.sort_by_key(|change| !change.breaking);
    Some(changes)
}

fn of_protobuf(change: rnet_schema::Change) -> TypeChange {
    TypeChange {
        rule: change.rule.to_string(),
        breaking: change.severity == Severity::Breaking,
        path: change.path,
        publisher: change.writer,
        subscriber: change.reader,
    }
}

fn is_protobuf(desc: &TypeDesc) -> bool {
    desc.as_protobuf().is_some()
}

fn of_plain(note: TypeNote) -> TypeChange {
    TypeChange {
        rule: note.rule.to_owned(),
        breaking: note.breaking,
        path: note.field_path,
        publisher: note.publisher,
        subscriber: note.subscriber,
    }
}

fn of_others(mismatch: Option<TypeMismatch>) -> Vec<TypeChange> {
    let change = |mismatch: TypeMismatch| TypeChange {
        rule: "type".to_owned(),
        breaking: true,
        path: mismatch.field_path,
        publisher: mismatch.publisher,
        subscriber: mismatch.subscriber,
    };
    mismatch.map(change).into_iter().collect()
}

/// Where a subscription does not understand a publisher; `None` if it does.
pub(super) fn mismatch(p: &PublisherInfo, s: &SubscriptionInfo) -> Option<TypeMismatch> {
    let told = |desc: &TypeDesc, schema: &Option<Schema>| match (desc, schema) {
        (TypeDesc::Protobuf(_), None) => Told::Unreadable("see the problems".to_owned()),
        (_, schema) => Told::Type(schema.clone()),
    };
    let (writes, reads) = (told(&p.type_desc, &p.schema), told(&s.type_desc, &s.schema));
    types_fit((&p.type_desc, &writes), (&s.type_desc, &reads)).err()
}
