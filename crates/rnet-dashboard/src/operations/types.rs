//! Types of topics and services, for forms.

use rnet::inspect::{CallType, Snapshot};
use rnet::{MessageType, TypeDesc};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::operator_node::OperatorNode;
use crate::form;
use crate::wire::{Answer, Refusal, fields_of};

#[derive(Deserialize)]
struct FormRequest {
    topic: Option<String>,
    service: Option<String>,
    #[serde(default = "request")]
    part: String,
}

fn request() -> String {
    "request".to_owned()
}

/// `type`.
pub fn form_of(operator: &OperatorNode, fields: Json) -> Answer {
    let asked: FormRequest = fields_of(fields)?;
    let snapshot = operator.app.snapshot()?;
    let found = match (&asked.topic, &asked.service) {
        (Some(topic), None) => of_topic(&snapshot, topic)?,
        (None, Some(service)) => of_service(&snapshot, service, &asked.part)?,
        _ => return Err(Refusal::bad("type: specify a topic or a service")),
    };
    Ok(json!({"form": form::of(&found)}))
}

/// The message type of a topic, from its first endpoint with a type.
pub fn of_topic(snapshot: &Snapshot, topic: &str) -> Result<MessageType, Refusal> {
    let publishers = snapshot.publishers.iter().filter(|p| p.topic == topic);
    let publishers = publishers.map(|p| (&p.type_desc, &p.schema));
    let subscriptions = snapshot.subscriptions.iter().filter(|s| s.topic == topic);
    let mut ends = publishers.chain(subscriptions.map(|s| (&s.type_desc, &s.schema))).peekable();
    if ends.peek().is_none() {
        return Err(Refusal::not_found(format!("topic {topic} does not exist")));
    }
    let typed = ends.find(|(desc, _)| !matches!(desc, TypeDesc::Raw));
    let Some((desc, schema)) = typed else { return Ok(MessageType::Raw) };
    let unread = || Refusal::failed(format!("the type of {topic} cannot be read"));
    CallType { desc, schema: schema.as_ref() }.message_type().ok_or_else(unread)
}

fn of_service(snapshot: &Snapshot, service: &str, part: &str) -> Result<MessageType, Refusal> {
    let servers = snapshot.servers();
    let server = servers.iter().find(|server| server.service == service);
    let server = server.ok_or_else(|| Refusal::not_found(format!("{service} has no server")))?;
    let found = match part {
        "request" => Some(server.request_type()),
        "reply" => server.reply_type(),
        "feedback" => server.feedback_type(),
        _ => return Err(Refusal::bad("part must be request, reply or feedback")),
    };
    found.and_then(|of| of.message_type()).ok_or_else(|| {
        Refusal::failed(format!("the {part} type of {service} in {} cannot be read", server.node()))
    })
}
