//! Checks that the publishers of a topic have compatible types, and meet their deadlines and leases.

use rnet::inspect::{PublisherInfo, Snapshot};

use crate::findings::Findings;

/// Reports publishers of a topic that were silent for longer than their lease, and those that missed their
/// deadline.
pub fn check_deadline_and_liveliness(findings: &mut Findings, snapshot: &Snapshot, topic: &str) {
    for p in snapshot.publishers.iter().filter(|p| p.topic == topic) {
        if let (Some(silent_ns), false) = (p.silent_ns, p.is_alive()) {
            let lease = p.qos.liveliness.lease().unwrap_or_default();
            findings.problem(
                "liveliness",
                format!(
                    "the publisher of {topic} in {} is not alive: its last liveliness assertion is {} ms \
                     old, its lease is {lease:?}",
                    p.node,
                    silent_ns / 1_000_000
                ),
                "its process runs, so its loop is stuck, stopped or slower than the lease: check what it \
                 does, or set a longer lease",
            );
        }
        if p.deadline_missed > 0 {
            findings.note(
                "deadline",
                format!(
                    "the publisher of {topic} in {} has missed its deadline of {:?} {} times",
                    p.node,
                    p.qos.deadline.unwrap_or_default(),
                    p.deadline_missed
                ),
            );
        }
    }
}

/// Reports publishers of a topic whose types are incompatible. Nothing else reports it: a subscriber receives
/// from the compatible ones, and a raw subscriber from all of them.
pub fn check_types(findings: &mut Findings, snapshot: &Snapshot, topic: &str) {
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
        "use one type per topic: a subscriber receives from publishers whose type is compatible with its \
         own, and refuses the others",
    );
}
