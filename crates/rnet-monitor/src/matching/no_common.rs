//! Explains why two nodes have no common topic.

use std::collections::BTreeSet;

use rnet::inspect::Snapshot;

use crate::findings::Findings;
use rnet_format::suggestions::similarity_reason;

/// Why `a` receives nothing from `b`, according to their topic names.
pub(super) fn explain_no_common_topic(
    findings: &mut Findings,
    snapshot: &Snapshot,
    a: &str,
    b: &str,
    topic: Option<&str>,
) {
    let wants: BTreeSet<&str> =
        snapshot.subscriptions.iter().filter(|s| s.node == a).map(|s| s.topic.as_str()).collect();
    let offers: BTreeSet<&str> =
        snapshot.publishers.iter().filter(|p| p.node == b).map(|p| p.topic.as_str()).collect();
    if let Some(topic) = topic {
        if !wants.contains(topic) {
            let what = format!("{a} does not subscribe to {topic}");
            findings.problem("topic_name", what, list_of("it subscribes to", &wants));
        }
        if !offers.contains(topic) {
            let what = format!("{b} does not publish {topic}");
            findings.problem("topic_name", what, list_of("it publishes", &offers));
        }
        return;
    }
    let mut near = false;
    for (want, offer) in wants.iter().flat_map(|w| offers.iter().map(move |o| (w, o))) {
        if let Some(why) = similarity_reason(want, offer) {
            near = true;
            findings.problem(
                "topic_name",
                format!("{a} subscribes to {want} and {b} publishes {offer}: {why}"),
                "use one name on both sides",
            );
        }
    }
    if !near {
        let advice = format!(
            "{}; {}",
            list_of(&format!("{a} subscribes to"), &wants),
            list_of(&format!("{b} publishes"), &offers)
        );
        let what = format!("{b} publishes nothing that {a} subscribes to");
        findings.problem("topic_name", what, advice);
    }
    let reverse = snapshot
        .pairs()
        .any(|pair| pair.subscription.node == b && pair.publisher.node == a && pair.is_matched());
    if reverse {
        findings.note("match", format!("the other direction works: {b} receives from {a}"));
    }
}

fn list_of(what: &str, topics: &BTreeSet<&str>) -> String {
    if topics.is_empty() {
        return format!("{what} nothing");
    }
    format!("{what} {}", topics.iter().copied().collect::<Vec<_>>().join(", "))
}
