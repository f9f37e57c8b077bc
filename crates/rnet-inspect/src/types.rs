//! How the types of a topic's publishers and subscribers differ.

use std::collections::HashSet;
use std::path::Path;

pub use rnet_core::TypeChange;
use rnet_core::{Error, TypeDesc, TypeMismatch, types_compare};
use rnet_schema::{Schema, Severity};
use rnet_shm::domain::directory::DomainDir;
use rnet_shm::domain::types::is_lost;
use rnet_shm::os::shortage::is_transient;
use serde::Serialize;

use super::{EndpointPair, PublisherInfo, Snapshot, SubscriptionInfo};
use rnet_node::MessageType;
use rnet_node::compatibility::{PeerType, check_types};
use rnet_node::types::{MAX_CACHED_LEN_BYTES, SchemaCache};

/// The comparison of the types of a publisher and a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypeComparison {
    /// The publisher.
    #[serde(serialize_with = "super::as_text")]
    pub publisher: u64,
    /// Name of its node.
    pub publisher_node: String,
    /// The subscription.
    #[serde(serialize_with = "super::as_text")]
    pub subscription: u64,
    /// Name of its node.
    pub subscriber_node: String,
    /// Whether the subscriber understands the publisher, as far as is known.
    pub compatible: bool,
    /// Whether both types were read. If not, the pair is undecided, and [`Snapshot::unread`] lists the
    /// reason.
    pub compared: bool,
    /// The differences, incompatible ones first.
    pub changes: Vec<TypeChange>,
}

/// The length that an unreadable type counts for.
const REFUSED_LEN_BYTES: usize = 64 << 10;

/// The types that one inspection has read. Hostile nodes may declare thousands, each of which takes tens of
/// milliseconds to build and many times its length in memory. Beyond a total length, further types are not
/// read.
#[derive(Default)]
pub(super) struct TypeReads {
    hashes: HashSet<String>,
    len_bytes: usize,
}

impl TypeReads {
    pub(super) fn read(
        &mut self,
        schemas: &mut SchemaCache,
        dir: &DomainDir,
        folder: &Path,
        desc: &TypeDesc,
    ) -> ReadType {
        let Some(named) = desc.as_protobuf() else { return ReadType::Type(None) };
        if self.len_bytes > MAX_CACHED_LEN_BYTES && !self.hashes.contains(&named.schema) {
            return ReadType::Unread(Error::limit_reached(
                format!("bytes of types in one inspection; {} was not read", named.name),
                MAX_CACHED_LEN_BYTES,
                "inspect one topic",
            ));
        }
        let read = schemas.read(folder, named);
        if self.hashes.insert(named.schema.clone()) {
            let len = read.as_ref().map(|schema| schema.descriptor_set().len());
            self.len_bytes += len.unwrap_or(REFUSED_LEN_BYTES);
        }
        match read {
            Ok(schema) => ReadType::Type(Some(schema)),
            Err(error) if may_be_readable_later(&error, dir, folder) => ReadType::Unread(error),
            Err(error) => ReadType::Unreadable(error),
        }
    }
}

/// The type that an endpoint declares, as one inspection found it.
pub(super) enum ReadType {
    /// The type, if it is a protobuf message.
    Type(Option<Schema>),
    /// It cannot be read.
    Unreadable(Error),
    /// It was not read this time; it may be valid.
    Unread(Error),
}

impl ReadType {
    /// The type, or why it cannot be read; both `None` if it was not read. Adds the error to `problems` or
    /// `unread`.
    pub(super) fn report(
        self,
        node: &str,
        problems: &mut Vec<String>,
        unread: &mut Vec<String>,
    ) -> (Option<Schema>, Option<String>) {
        match self {
            ReadType::Type(schema) => (schema, None),
            ReadType::Unreadable(error) => {
                problems.push(format!("{node}: {error}"));
                let why = match error {
                    Error::Corrupt { what, .. } => what,
                    other => other.to_string(),
                };
                (None, Some(why))
            }
            ReadType::Unread(error) => {
                unread.push(match error {
                    Error::Io { .. } => {
                        format!("{node}: it is shutting down, and its types are gone")
                    }
                    other => format!("{node}: {other}"),
                });
                (None, None)
            }
        }
    }
}

/// Whether a type that could not be read may be read by others, or at the next inspection: its node is
/// leaving, or this process has run out of a resource.
pub(super) fn may_be_readable_later(error: &Error, dir: &DomainDir, folder: &Path) -> bool {
    match error {
        Error::Io {
            source: rnet_core::OsError { kind: std::io::ErrorKind::NotFound, .. }, ..
        } => !is_lost(dir, folder),
        error => is_transient(error),
    }
}

impl Snapshot {
    /// Compares every publisher of a topic with every subscription, as they do when they match. Leaves out
    /// pairs whose subscriber takes raw bytes: it accepts every type.
    pub fn compare_types(&self, topic: &str) -> Vec<TypeComparison> {
        let typed = |pair: &EndpointPair<'_>| {
            pair.publisher.topic == topic && !matches!(pair.subscription.type_desc, TypeDesc::Raw)
        };
        self.pairs().filter(typed).map(compare).collect()
    }
}

/// The differences between the types of a publisher and a subscriber, incompatible ones first, by the rules
/// that they use when they match. Empty if the subscriber takes raw bytes: it accepts every type.
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
    let told = |of: &MessageType| PeerType::Type(of.schema().cloned());
    let (writes, reads) = (told(publisher), told(subscriber));
    differences((&p, publisher.schema()), (&s, subscriber.schema()))
        .unwrap_or_else(|| of_others(check_types((&p, &writes), (&s, &reads)).err()))
}

impl PublisherInfo {
    /// How the types of two publishers differ so that a reader of one does not understand the other, in
    /// either direction, in words. `None` if this is unknown. Compatible versions of one type do not differ.
    pub fn differs_from(&self, other: &PublisherInfo) -> Option<String> {
        let (a, b) = (self, other);
        let told = |p: &PublisherInfo| peer_type(&p.schema, &p.type_error);
        let both = is_protobuf(&a.type_desc) && is_protobuf(&b.type_desc);
        if a.type_desc == b.type_desc || (both && (a.schema.is_none() || b.schema.is_none())) {
            return None;
        }
        let (of_a, of_b) = ((&a.type_desc, &told(a)), (&b.type_desc, &told(b)));
        let field =
            |path: &str| if path.is_empty() { String::new() } else { format!("field `{path}`: ") };
        let words = |path: &str, of_a: &str, of_b: &str| {
            format!("{}{} has {of_a}, {} has {of_b}", field(path), a.node, b.node)
        };
        check_types(of_a, of_b)
            .map_err(|m| words(&m.field_path, &m.publisher, &m.subscriber))
            .and_then(|()| {
                check_types(of_b, of_a)
                    .map_err(|m| words(&m.field_path, &m.subscriber, &m.publisher))
            })
            .err()
    }
}

fn compare(EndpointPair { publisher: p, subscription: s }: EndpointPair<'_>) -> TypeComparison {
    let changes = differences((&p.type_desc, p.schema.as_ref()), (&s.type_desc, s.schema.as_ref()))
        .unwrap_or_else(|| of_others(mismatch(p, s)));
    TypeComparison {
        compared: are_types_known(p, s),
        publisher: p.id,
        publisher_node: p.node.clone(),
        subscription: s.id,
        subscriber_node: s.node.clone(),
        compatible: !changes.iter().any(|change| change.breaking),
        changes,
    }
}

/// The differences, incompatible ones first. `None` for a protobuf message compared with another kind, or if
/// a type cannot be read.
fn differences(
    (p, writer): (&TypeDesc, Option<&Schema>),
    (s, reader): (&TypeDesc, Option<&Schema>),
) -> Option<Vec<TypeChange>> {
    let mut changes: Vec<TypeChange> = match (writer, reader) {
        (Some(writer), Some(reader)) => {
            rnet_schema::check(writer, reader).changes.into_iter().map(of_protobuf).collect()
        }
        (None, None) if !is_protobuf(p) && !is_protobuf(s) => types_compare(p, s),
        _ => return None,
    };
    changes.sort_by_key(|change| !change.breaking);
    Some(changes)
}

fn of_protobuf(change: rnet_schema::Change) -> TypeChange {
    TypeChange {
        rule: change.rule.id(),
        breaking: change.severity == Severity::Breaking,
        path: change.path,
        publisher: change.writer,
        subscriber: change.reader,
    }
}

fn is_protobuf(desc: &TypeDesc) -> bool {
    desc.as_protobuf().is_some()
}

fn of_others(mismatch: Option<TypeMismatch>) -> Vec<TypeChange> {
    let change = |mismatch: TypeMismatch| TypeChange {
        rule: "type",
        breaking: true,
        path: mismatch.field_path,
        publisher: mismatch.publisher,
        subscriber: mismatch.subscriber,
    };
    mismatch.map(change).into_iter().collect()
}

/// The type mismatch, if a subscription is known not to understand a publisher.
pub(super) fn mismatch(p: &PublisherInfo, s: &SubscriptionInfo) -> Option<TypeMismatch> {
    let (writes, reads) =
        (peer_type(&p.schema, &p.type_error), peer_type(&s.schema, &s.type_error));
    let differs = || check_types((&p.type_desc, &writes), (&s.type_desc, &reads)).err();
    are_types_known(p, s).then(differs).flatten()
}

/// Whether the types of the pair were read as far as the compatibility result depends on them.
pub(super) fn are_types_known(p: &PublisherInfo, s: &SubscriptionInfo) -> bool {
    // For kinds other than protobuf messages, the description is sufficient.
    let both = is_protobuf(&p.type_desc) && is_protobuf(&s.type_desc);
    let refused = p.type_error.is_some() || s.type_error.is_some();
    !both || refused || (p.schema.is_some() && s.schema.is_some())
}

fn peer_type(schema: &Option<Schema>, error: &Option<String>) -> PeerType {
    error.clone().map_or_else(|| PeerType::Type(schema.clone()), PeerType::Unreadable)
}
