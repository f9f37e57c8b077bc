//! Whether the publishers of a topic agree on what they send.

use rnet::inspect::{PublisherInfo, Snapshot};

use super::Findings;

/// Names the publishers of a topic whose types do not go together. A subscriber hears those that fit its own, and one
/// that takes raw bytes hears all of them: nobody is told of it when they meet.
pub fn types(findings: &mut Findings, snapshot: &Snapshot, topic: &str) {
    let mut publishers = snapshot.publishers.iter().filter(|p| p.topic == topic);
    let Some(first) = publishers.next() else { return };
    let Some((other, detail)) = publishers.find_map(|p| Some((p, first.differs_from(p)?))) else {
        return;
    };
    let named = |p: &PublisherInfo| format!("{} in {}", p.type_desc, p.node);
    findings.problem(
        "type",
        format!(
            "the publishers of {topic} send different types: {}, {}: {detail}",
            named(first),
            named(other)
        ),
        "use one type per topic: a subscriber hears the publishers that fit its own type, and refuses the others",
    );
}
