//! Topics and their types.

use rnet::inspect::Snapshot;
use rnet::{MessageType, TypeDesc};

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

/// The type of a topic's messages: that of its first typed publisher, else of its first typed subscriber.
///
/// # Errors
/// In words, why the type cannot be read.
pub fn message_type(topic: &str, snapshot: &Snapshot) -> Result<Option<MessageType>, String> {
    let publishers = snapshot.publishers.iter().filter(|p| p.topic == topic);
    let publishers = publishers.map(|p| (&p.type_desc, &p.schema, &p.node));
    let subscribers = snapshot.subscriptions.iter().filter(|s| s.topic == topic);
    let ends = publishers.chain(subscribers.map(|s| (&s.type_desc, &s.schema, &s.node)));
    for (desc, schema, node) in ends {
        match (desc, schema) {
            (TypeDesc::Raw, _) => {}
            (TypeDesc::Plain(plain), _) => return Ok(Some(plain.clone().into())),
            (TypeDesc::Protobuf(_), Some(schema)) => return Ok(Some(schema.clone().into())),
            (TypeDesc::Unknown, _) => {
                return Err(format!(
                    "{node} declares messages on {topic} as {desc}, which this version of rnet does not know; \
                     update rnet"
                ));
            }
            (TypeDesc::Protobuf(named), None) => {
                return Err(format!(
                    "{node} declares messages on {topic} as {}, but the type cannot be read: {}",
                    named.name,
                    match snapshot.problems.iter().chain(&snapshot.unread).next() {
                        Some(problem) => problem,
                        None => "the node has just left",
                    }
                ));
            }
        }
    }
    Ok(None)
}
