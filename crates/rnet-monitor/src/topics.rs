//! Topics and their types.

use rnet::TypeDesc;
use rnet::inspect::Snapshot;

/// Display name of a type: `raw`, or its name.
pub fn type_name(desc: &TypeDesc) -> &str {
    desc.name().unwrap_or("raw")
}

/// The types of a topic's endpoints; more than one if they differ.
pub fn type_names<'a>(snapshot: &'a Snapshot, topic: &str) -> Vec<&'a str> {
    let publishers = snapshot.publishers.iter().filter(|p| p.topic == topic);
    let mut names: Vec<&str> = publishers.map(|p| type_name(&p.type_desc)).collect();
    let subscribers = snapshot.subscriptions.iter().filter(|s| s.topic == topic);
    // A raw subscriber accepts any type, so it does not determine the topic's type.
    let typed = subscribers.filter(|s| names.is_empty() || s.type_desc.name().is_some());
    names.extend(typed.map(|s| type_name(&s.type_desc)).collect::<Vec<_>>());
    if names.iter().any(|n| *n != "raw") && snapshot.publishers.iter().all(|p| p.topic != topic) {
        names.retain(|n| *n != "raw");
    }
    names.sort_unstable();
    names.dedup();
    names
}
