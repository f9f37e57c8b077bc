//! The announcements that links send each other about their hosts: JSON documents, with the types that shared
//! memory uses too.
//!
//! Unknown fields are ignored and missing ones have defaults, so that older and newer links can read each
//! other.

use std::collections::BTreeMap;

use rnet::{
    Endpoint, EndpointQos, Error, Lane, MessageType, Proxy, PublisherQos, Reliability, Result,
    SubscriberQos, TopicName, TypeDesc, limits, schema::Schema,
};
use serde::{Deserialize, Serialize};

/// The first document that a link sends in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// Release of robot-net.
    pub release: String,
    /// Display name of the host.
    pub host: String,
    /// The domain.
    pub domain: String,
    /// Offset of the wall clock from CLOCK_MONOTONIC, in ns.
    pub wall_offset_ns: i64,
    /// Uncertainty of that offset, in ns.
    pub wall_uncertainty_ns: u64,
    /// The longest interval between two sends, in ms; 0 if the link may be silent.
    pub pulse_ms: u64,
    /// The addresses of the host.
    pub addresses: Vec<String>,
    /// The configured listen endpoints of its link.
    pub listen: Vec<String>,
    /// Boot of the machine that it runs in; 0 if unknown. Containers of one machine have the same value.
    pub boot: u64,
}

/// Why a link disconnected another one; shown in the status of the other one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// The reason as text.
    pub text: String,
}

/// Nodes that joined and left, with or without endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nodes {
    /// Whether `joined` is the complete list.
    pub all: bool,
    /// Nodes that are present.
    pub joined: Vec<JoinedNode>,
    /// Names of the nodes that left.
    pub left: Vec<String>,
    /// Names of the nodes whose process died.
    pub died: Vec<String>,
    /// The hosts that the link is connected to: the names that they declare, by their numbers. `None` if
    /// unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<BTreeMap<u64, String>>,
}

/// A node of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedNode {
    /// Its name.
    pub name: String,
}

/// Endpoints that opened and closed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Announcement {
    /// Whether `opened` is the complete list.
    pub all: bool,
    /// With `all` and in its continuations: the next document of endpoints continues this one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Endpoints that are open.
    pub opened: Vec<EndpointDescription>,
    /// Endpoints that were closed.
    pub closed: Vec<u64>,
    /// Endpoints whose process has died.
    pub lost: Vec<u64>,
    /// Number of topics published or subscribed to on this host that its rules withhold from the other, if
    /// sent. The names of these topics do not cross.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<u64>,
}

/// Bytes of endpoints in one document: half of what its receiver accepts. A link of an earlier release
/// takes the first of several documents for the complete list, and the later ones for endpoints that opened
/// since.
const MAX_PART_LEN_BYTES: usize = 8 << 20;

impl Announcement {
    /// Splits the complete list into as many documents as it needs.
    pub fn split(
        opened: impl Iterator<Item = EndpointDescription>,
        withheld: Option<u64>,
    ) -> Vec<Announcement> {
        let first = Announcement { all: true, withheld, ..Announcement::default() };
        let (mut parts, mut len_bytes) = (vec![first], 0);
        for described in opened {
            let len = to_json(&described).len();
            let mut last = parts.len() - 1;
            if len_bytes + len > MAX_PART_LEN_BYTES && !parts[last].opened.is_empty() {
                parts[last].more = true;
                parts.push(Announcement::default());
                (last, len_bytes) = (last + 1, 0);
            }
            len_bytes += len;
            parts[last].opened.push(described);
        }
        parts
    }
}

/// An endpoint of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointDescription {
    /// Its id on that host.
    pub id: u64,
    /// Its node.
    pub node: String,
    /// Its topic.
    pub topic: String,
    /// Its type, in the form of [`TypeDesc::from_json`].
    #[serde(rename = "type")]
    pub type_desc: serde_json::Value,
    /// Its quality of service, offered or requested.
    pub qos: Qos,
    /// Whether it is a publisher that was opened with a last will.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub will: bool,
    /// Whether it is an ended publisher with messages that the receiving host has not had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Whether it ended because its process died.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub died: bool,
}

/// The quality of service of an endpoint, by its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Qos {
    /// Of a publisher.
    Publisher(PublisherQos),
    /// Of a subscription.
    Subscriber(SubscriberQos),
}

impl EndpointDescription {
    /// Describes an endpoint of this host.
    pub fn of(endpoint: &Endpoint) -> EndpointDescription {
        let qos = match &endpoint.qos {
            EndpointQos::Publisher(qos) => Qos::Publisher(qos.clone()),
            EndpointQos::Subscriber(qos) => Qos::Subscriber(qos.clone()),
        };
        EndpointDescription {
            id: endpoint.id,
            node: endpoint.node.clone(),
            topic: endpoint.topic.clone(),
            type_desc: serde_json::to_value(&endpoint.type_desc).unwrap_or_default(),
            qos,
            will: endpoint.last_will,
            ended: false,
            died: false,
        }
    }
}

/// An endpoint of another host whose description has passed all checks.
#[derive(Clone, Debug)]
pub struct RemoteEndpoint {
    /// Its topic.
    pub topic: String,
    /// Its type, which may be known by name only.
    pub type_desc: TypeDesc,
    /// Its quality of service, offered or requested.
    pub qos: Qos,
    /// The endpoint that represents it on this host.
    pub proxy: Proxy,
    /// Whether it is a publisher that was opened with a last will.
    pub will: bool,
}

impl RemoteEndpoint {
    /// Checks the description of an endpoint that the link of `host` has sent.
    ///
    /// # Errors
    /// The first invalid field, with the node or topic.
    pub fn check(host: &str, described: &EndpointDescription) -> Result<RemoteEndpoint> {
        let topic = TopicName::new(&described.topic)?.as_str().to_owned();
        let type_desc = TypeDesc::from_json(&described.type_desc.to_string())?;
        if let TypeDesc::Protobuf(named) = &type_desc
            && (named.name.len() > limits::MAX_TYPE_NAME_LEN_BYTES
                || named.schema.len() != 32
                || u128::from_str_radix(&named.schema, 16).is_err())
        {
            let why = "its name is too long, or its hash is invalid".to_owned();
            return Err(Error::BadValue { what: "type description".to_owned(), why });
        }
        match &described.qos {
            Qos::Publisher(qos) => qos.validate(),
            Qos::Subscriber(qos) => qos.validate(),
        }
        .map_err(|error| error.with_topic(&topic))?;
        let proxy = Proxy::new(host, &described.node, described.id)?;
        let (qos, will) = (described.qos.clone(), described.will);
        Ok(RemoteEndpoint { topic, type_desc, qos, proxy, will })
    }

    /// The lane on which its messages cross, if it is a publisher.
    pub fn lane(&self) -> Lane {
        match &self.qos {
            Qos::Publisher(qos) => qos.lane,
            Qos::Subscriber(_) => Lane::Bulk,
        }
    }

    /// Whether it is a reliable publisher.
    pub fn offers_reliable(&self) -> bool {
        matches!(&self.qos, Qos::Publisher(qos) if qos.reliability == Reliability::Reliable)
    }

    /// Number of messages that it keeps for late subscribers.
    pub fn history(&self) -> u64 {
        match &self.qos {
            Qos::Publisher(qos) => qos.history(),
            Qos::Subscriber(_) => 0,
        }
    }

    /// The description from which this was made.
    pub fn describe(&self, id: u64) -> EndpointDescription {
        EndpointDescription {
            id,
            node: self.proxy.node().to_owned(),
            topic: self.topic.clone(),
            type_desc: serde_json::to_value(&self.type_desc).unwrap_or_default(),
            qos: self.qos.clone(),
            will: self.will,
            ended: false,
            died: false,
        }
    }

    /// The name by which its type must be requested, if only the name is known.
    pub fn hash(&self) -> Option<&str> {
        match &self.type_desc {
            TypeDesc::Protobuf(named) => Some(&named.schema),
            TypeDesc::Raw | TypeDesc::Plain(_) | TypeDesc::Unknown => None,
        }
    }

    /// The type of the endpoint that represents it; `schema` is the schema of its hash.
    ///
    /// # Errors
    /// `BadValue` for a type of a kind that only a later release knows.
    pub fn message_type(&self, schema: Option<&Schema>) -> Result<MessageType> {
        match schema {
            Some(schema) => Ok(MessageType::Protobuf(schema.clone())),
            None => MessageType::try_from(self.type_desc.clone()),
        }
    }
}

/// Serializes a message of this module.
pub fn to_json(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("names and numbers serialize to JSON")
}

/// Deserializes a message of this module.
///
/// # Errors
/// `BadValue` with the cause.
pub fn from_json<'a, T: Deserialize<'a>>(what: &str, bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::BadValue { what: what.to_owned(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(id: u64, name_len: usize) -> EndpointDescription {
        EndpointDescription {
            id,
            node: "/n".to_owned(),
            topic: "/t".to_owned(),
            type_desc: serde_json::json!({"kind": "plain", "name": "n".repeat(name_len)}),
            qos: Qos::Publisher(PublisherQos::default()),
            will: false,
            ended: false,
            died: false,
        }
    }

    #[test]
    fn splits_long_announcement_into_several_documents() {
        let none = Announcement::split(std::iter::empty(), Some(3));
        let one = Announcement { all: true, withheld: Some(3), ..Announcement::default() };
        assert_eq!(none, [one]);
        let parts = Announcement::split((0..40).map(|id| described(id, 1 << 20)), None);
        assert!(parts.iter().all(|part| to_json(part).len() < 16 << 20));
        let says: Vec<(bool, bool)> = parts.iter().map(|part| (part.all, part.more)).collect();
        assert_eq!(says.first(), Some(&(true, true)));
        assert_eq!(says.last(), Some(&(false, false)));
        assert!(says.len() > 4 && says[1..says.len() - 1].iter().all(|say| *say == (false, true)));
        let ids = parts.iter().flat_map(|part| &part.opened).map(|one| one.id);
        assert!(ids.eq(0..40));
        // A description longer than a part has a part of its own.
        let parts = Announcement::split((0..3).map(|id| described(id, 9 << 20)), None);
        assert_eq!(parts.iter().map(|part| part.opened.len()).collect::<Vec<_>>(), [1, 1, 1]);
        // A list that fits into one document has the form of earlier releases.
        let text = String::from_utf8(to_json(
            &Announcement::split([described(1, 3)].into_iter(), None)[0],
        ));
        assert!(!text.unwrap().contains("more"));
    }
}
