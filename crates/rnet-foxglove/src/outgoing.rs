//! Frames for clients: JSON in text frames, and binary frames that begin with an operation code.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::incoming::Parameter;

/// Severity of a status message.
#[derive(Clone, Copy, Debug)]
pub enum Level {
    Info = 0,
    Warning = 1,
    Error = 2,
}

/// State of the playback of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaybackState {
    pub status: PlaybackStatus,
    /// Time of the recording, in ns since 1970.
    pub now_ns: u64,
    pub rate: f32,
    pub did_seek: bool,
    /// The request that this answers.
    pub request: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaybackStatus {
    Playing = 0,
    Paused = 1,
    Ended = 3,
}

/// Names of publishers and subscribers by topic, and of servers by service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionGraph {
    pub published: std::collections::BTreeMap<String, Vec<String>>,
    pub subscribed: std::collections::BTreeMap<String, Vec<String>>,
    pub services: std::collections::BTreeMap<String, Vec<String>>,
}

pub fn text(value: &Value) -> Message {
    Message::text(value.to_string())
}

pub fn status(level: Level, message: &str) -> Message {
    text(&json!({"op": "status", "level": level as u8, "message": message}))
}

pub fn advertise(channels: &[Value]) -> Message {
    text(&json!({"op": "advertise", "channels": channels}))
}

pub fn unadvertise(ids: &[u32]) -> Message {
    text(&json!({"op": "unadvertise", "channelIds": ids}))
}

pub fn advertise_services(services: &[Value]) -> Message {
    text(&json!({"op": "advertiseServices", "services": services}))
}

pub fn unadvertise_services(ids: &[u32]) -> Message {
    text(&json!({"op": "unadvertiseServices", "serviceIds": ids}))
}

pub fn parameter_values(parameters: &[Parameter], id: Option<&str>) -> Message {
    let mut value = json!({"op": "parameterValues", "parameters": parameters});
    if let Some(id) = id {
        value["id"] = id.into();
    }
    text(&value)
}

pub fn call_failure(service: u32, call: u32, why: &str) -> Message {
    let value = json!({
        "op": "serviceCallFailure", "serviceId": service, "callId": call, "message": why,
    });
    text(&value)
}

impl ConnectionGraph {
    /// The changes since `before`.
    pub fn update_since(&self, before: &ConnectionGraph) -> Option<Message> {
        use std::collections::BTreeMap;
        type Names = BTreeMap<String, Vec<String>>;
        let changed = |now: &Names, then: &Names, what: &str| -> Vec<Value> {
            let new = now.iter().filter(|(name, ids)| then.get(*name) != Some(ids));
            new.map(|(name, ids)| json!({"name": name, what: ids})).collect()
        };
        let is_topic = |graph: &ConnectionGraph, name: &str| {
            [&graph.published, &graph.subscribed].iter().any(|n| n.contains_key(name))
        };
        let then = before.published.keys().chain(before.subscribed.keys());
        let mut removed: Vec<&String> = then.filter(|name| !is_topic(self, name)).collect();
        removed.sort_unstable();
        removed.dedup();
        let services = before.services.keys().filter(|name| !self.services.contains_key(*name));
        let mut published = changed(&self.published, &before.published, "publisherIds");
        let mut subscribed = changed(&self.subscribed, &before.subscribed, "subscriberIds");
        // A topic that has lost its last publisher, but still has subscribers, is sent without publishers.
        let lost = |now: &Names, then: &Names, what: &str| -> Vec<Value> {
            let gone = then.keys().filter(|name| !now.contains_key(*name) && is_topic(self, name));
            gone.map(|name| json!({"name": name, what: []})).collect()
        };
        published.extend(lost(&self.published, &before.published, "publisherIds"));
        subscribed.extend(lost(&self.subscribed, &before.subscribed, "subscriberIds"));
        (self != before).then(|| {
            text(&json!({
                "op": "connectionGraphUpdate",
                "publishedTopics": published,
                "subscribedTopics": subscribed,
                "advertisedServices": changed(&self.services, &before.services, "providerIds"),
                "removedTopics": removed,
                "removedServices": services.collect::<Vec<_>>(),
            }))
        })
    }
}

/// A message of a channel for one subscription.
pub fn message(subscription: u32, time_ns: u64, payload: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(13 + payload.len());
    frame.push(1);
    frame.extend_from_slice(&subscription.to_le_bytes());
    frame.extend_from_slice(&time_ns.to_le_bytes());
    frame.extend_from_slice(payload);
    frame.into()
}

const TIME: u8 = 2;

/// The time of the robot.
pub fn time(time_ns: u64) -> Message {
    let mut frame = vec![TIME];
    frame.extend_from_slice(&time_ns.to_le_bytes());
    Message::binary(frame)
}

/// Whether a frame contains the time.
pub fn is_time(message: &Message) -> bool {
    matches!(message, Message::Binary(frame) if frame.first() == Some(&TIME))
}

pub fn call_response(service: u32, call: u32, encoding: &str, payload: &[u8]) -> Message {
    let mut frame = vec![3];
    frame.extend_from_slice(&service.to_le_bytes());
    frame.extend_from_slice(&call.to_le_bytes());
    frame.extend_from_slice(&(encoding.len() as u32).to_le_bytes());
    frame.extend_from_slice(encoding.as_bytes());
    frame.extend_from_slice(payload);
    Message::binary(frame)
}

/// The server has no assets.
pub fn fetch_asset_error(request: u32, why: &str) -> Message {
    let mut frame = vec![4];
    frame.extend_from_slice(&request.to_le_bytes());
    frame.push(1);
    frame.extend_from_slice(&(why.len() as u32).to_le_bytes());
    frame.extend_from_slice(why.as_bytes());
    Message::binary(frame)
}

pub fn playback(state: &PlaybackState) -> Message {
    let request = state.request.as_deref().unwrap_or_default();
    let mut frame = vec![5, state.status as u8];
    frame.extend_from_slice(&state.now_ns.to_le_bytes());
    frame.extend_from_slice(&state.rate.to_le_bytes());
    frame.push(state.did_seek.into());
    frame.extend_from_slice(&(request.len() as u32).to_le_bytes());
    frame.extend_from_slice(request.as_bytes());
    Message::binary(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(published: &[(&str, &[&str])], subscribed: &[(&str, &[&str])]) -> ConnectionGraph {
        let named = |of: &[(&str, &[&str])]| {
            of.iter()
                .map(|(name, ids)| {
                    ((*name).to_owned(), ids.iter().map(|id| (*id).to_owned()).collect())
                })
                .collect()
        };
        ConnectionGraph {
            published: named(published),
            subscribed: named(subscribed),
            ..ConnectionGraph::default()
        }
    }

    #[test]
    fn graph_update_contains_changes() {
        let none = ConnectionGraph::default();
        let one = graph(&[("/a", &["/n"]), ("/b", &["/n"])], &[("/a", &["/m"])]);
        let read = |message: Message| -> Value {
            serde_json::from_str(message.to_text().unwrap()).unwrap()
        };
        let value = read(one.update_since(&none).unwrap());
        assert_eq!(value["publishedTopics"].as_array().unwrap().len(), 2, "{value}");
        assert_eq!(value["removedTopics"], json!([]));
        assert!(one.update_since(&one).is_none());
        let two = graph(&[], &[("/a", &["/m"])]);
        let value = read(two.update_since(&one).unwrap());
        assert_eq!(value["removedTopics"], json!(["/b"]), "{value}");
        assert_eq!(value["publishedTopics"], json!([{"name": "/a", "publisherIds": []}]));
        assert_eq!(value["subscribedTopics"], json!([]));
    }
}
