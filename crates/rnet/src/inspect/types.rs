//! How the types of a topic's publishers and subscribers differ.

use rnet_core::{TypeDesc, TypeMismatch, TypeNote, types_compare};
use rnet_schema::{Schema, Severity};
use serde::Serialize;

use super::{PublisherInfo, Snapshot, SubscriptionInfo};
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

fn compare(p: &PublisherInfo, s: &SubscriptionInfo) -> TypeComparison {
    let mut changes: Vec<TypeChange> = match (&p.schema, &s.schema) {
        (Some(writer), Some(reader)) => {
            let verdict = rnet_schema::check(writer, reader);
            verdict.changes.into_iter().map(of_protobuf).collect()
        }
        (None, None) if !is_protobuf(&p.type_desc) && !is_protobuf(&s.type_desc) => {
            types_compare(&p.type_desc, &s.type_desc).into_iter().map(of_plain).collect()
        }
        _ => of_others(p, s),
    };
    changes.sort_by_key(|change| !change.breaking);
    TypeComparison {
        publisher: p.id,
        publisher_node: p.node.clone(),
        subscription: s.id,
        subscriber_node: s.node.clone(),
        compatible: !changes.iter().any(|change| change.breaking),
        changes,
    }
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

/// A protobuf message against something else, or one whose type cannot be read.
fn of_others(p: &PublisherInfo, s: &SubscriptionInfo) -> Vec<TypeChange> {
    let change = |mismatch: TypeMismatch| TypeChange {
        rule: "type".to_owned(),
        breaking: true,
        path: mismatch.field_path,
        publisher: mismatch.publisher,
        subscriber: mismatch.subscriber,
    };
    mismatch(p, s).map(change).into_iter().collect()
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
