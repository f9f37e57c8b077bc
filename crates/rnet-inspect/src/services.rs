//! The services of a domain, derived from their topics.

use serde::Serialize;

use super::{PublisherInfo, Snapshot, SubscriptionInfo};
use rnet_call::CallTopics;
use rnet_core::TypeDesc;
use rnet_node::MessageType;
use rnet_schema::Schema;

/// A server of a service.
#[derive(Clone, Copy, Debug)]
pub struct ServerInfo<'a> {
    /// Name of the service.
    pub service: &'a str,
    /// The subscription that receives its requests.
    pub requests: &'a SubscriptionInfo,
    /// The publisher that declares the type of its replies; `None` for a server that is just opening or
    /// closing.
    pub replies: Option<&'a PublisherInfo>,
    /// The publisher that declares the type of its feedback; `None` for a server that is not an action.
    pub feedback: Option<&'a PublisherInfo>,
    /// Number of clients.
    pub clients: usize,
}

/// The type of requests, replies or feedback.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CallType<'a> {
    /// The type.
    #[serde(rename = "type")]
    pub desc: &'a TypeDesc,
    /// The protobuf type that it declares, if that could be read.
    #[serde(skip)]
    pub schema: Option<&'a Schema>,
}

impl CallType<'_> {
    /// The type for opening an endpoint; `None` if it could not be read.
    pub fn message_type(&self) -> Option<MessageType> {
        match self.schema {
            Some(schema) => Some(schema.clone().into()),
            None => MessageType::try_from(self.desc.clone()).ok(),
        }
    }
}

impl<'a> ServerInfo<'a> {
    /// Name of its node; on another host `@host/node`.
    pub fn node(&self) -> &'a str {
        &self.requests.node
    }

    /// The type of requests.
    pub fn request_type(&self) -> CallType<'a> {
        let SubscriptionInfo { type_desc, schema, .. } = self.requests;
        CallType { desc: type_desc, schema: schema.as_ref() }
    }

    /// The type of replies.
    pub fn reply_type(&self) -> Option<CallType<'a>> {
        self.replies.map(announced)
    }

    /// The type of feedback; `None` for a server that is not an action.
    pub fn feedback_type(&self) -> Option<CallType<'a>> {
        self.feedback.map(announced)
    }
}

fn announced(by: &PublisherInfo) -> CallType<'_> {
    CallType { desc: &by.type_desc, schema: by.schema.as_ref() }
}

/// The service whose requests arrive on this internal topic.
pub fn service_of(topic: &str) -> Option<&str> {
    CallTopics::parse_request_topic(topic).map(|(service, _)| service)
}

impl Snapshot {
    /// The servers of all services, by service and node.
    pub fn servers(&self) -> Vec<ServerInfo<'_>> {
        let found = self.subscriptions.iter().filter_map(|requests| {
            let (service, topics) = CallTopics::parse_request_topic(&requests.topic)?;
            let says = |topic: String| self.publishers.iter().find(|p| p.topic == topic);
            let (replies, feedback) = (says(topics.reply_type()), says(topics.feedback()));
            let clients = self.publishers.iter().filter(|p| p.topic == requests.topic).count();
            Some(ServerInfo { service, requests, replies, feedback, clients })
        });
        let mut servers: Vec<_> = found.collect();
        servers.sort_by_key(|server| (server.service, server.node()));
        servers
    }
}
