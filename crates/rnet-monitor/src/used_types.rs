//! The types that the topics of a domain have.

use std::collections::BTreeSet;

use crate::link::host_of;
use rnet::inspect::Snapshot;
use rnet::schema::Schema;
use rnet::{PlainType, TypeDesc};

/// One type, and where it is used.
pub struct UsedType<'a> {
    /// The type.
    pub desc: &'a TypeDesc,
    /// `None` for plain types and for unreadable protobuf types.
    pub schema: Option<&'a Schema>,
    /// Topics with this type.
    pub topics: Vec<&'a str>,
    /// Nodes that publish or subscribe to it.
    pub nodes: Vec<&'a str>,
}

impl<'a> UsedType<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        self.desc.name().unwrap_or("raw")
    }

    /// The hosts whose nodes have it; `own` is the name of this one.
    pub fn hosts(&self, own: &'a str) -> BTreeSet<&'a str> {
        self.nodes.iter().map(|node| host_of(node).0.unwrap_or(own)).collect()
    }

    /// The plain type, if it is one.
    pub fn plain(&self) -> Option<&'a PlainType> {
        self.desc.as_plain()
    }
}

/// All described types of a domain or of one topic, sorted by name. Each version of a type has its own entry; those of
/// publishers come first.
#[must_use]
pub fn types<'a>(snapshot: &'a Snapshot, topic: Option<&str>) -> Vec<UsedType<'a>> {
    let publishers = snapshot.publishers.iter();
    let publishers = publishers.map(|p| (&p.type_desc, p.schema.as_ref(), &p.topic, &p.node));
    let subscribers = snapshot.subscriptions.iter();
    let subscribers = subscribers.map(|s| (&s.type_desc, s.schema.as_ref(), &s.topic, &s.node));
    let mut all: Vec<UsedType<'a>> = Vec::new();
    for (desc, schema, at, node) in publishers.chain(subscribers) {
        if *desc == TypeDesc::Raw || topic.is_some_and(|topic| topic != at) {
            continue;
        }
        let found = all.iter().position(|used| used.desc == desc && used.schema == schema);
        let found = found.unwrap_or_else(|| {
            all.push(UsedType { desc, schema, topics: Vec::new(), nodes: Vec::new() });
            all.len() - 1
        });
        all[found].topics.push(at);
        all[found].nodes.push(node);
    }
    for used in &mut all {
        for list in [&mut used.topics, &mut used.nodes] {
            list.sort_unstable();
            list.dedup();
        }
    }
    // A stable sort keeps the order of the versions of a type.
    all.sort_by_key(UsedType::name);
    all
}
