//! What links tell each other of their hosts: JSON, in the types that stand in shared memory too.
//!
//! Fields that are not known are passed over, and those that are missing have defaults, so that older and newer
//! links read each other.

use std::collections::BTreeMap;

use rnet::{
    Endpoint, EndpointQos, Error, Lane, MessageType, Proxy, PublisherQos, Reliability, Result,
    SubscriberQos, TopicName, TypeDesc, limits, schema::Schema,
};
use serde::{Deserialize, Serialize};

/// The first that a link says in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// Release of robot-net.
    pub release: String,
    /// Name of the host, as people see it.
    pub host: String,
    /// The domain.
    pub domain: String,
    /// How far the wall clock is ahead of CLOCK_MONOTONIC, in ns.
    pub wall_offset_ns: i64,
    /// By how much that may be wrong, in ns.
    pub wall_uncertainty_ns: u64,
    /// How often it sends something at least, in ms; 0 for one that may be silent.
    pub pulse_ms: u64,
    /// The addresses of the host.
    pub addresses: Vec<String>,
    /// Where its link listens, as it is configured.
    pub listen: Vec<String>,
    /// Which boot of which machine it runs in; 0 if that is unknown. Containers of one machine have the same.
    pub boot: u64,
}

/// Why a link did not go on with another, for the status of that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// In words.
    pub text: String,
}

/// Nodes that have joined and gone, with endpoints or without.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nodes {
    /// Whether `joined` are all that there are.
    pub all: bool,
    /// Nodes that are there.
    pub joined: Vec<JoinedNode>,
    /// Names of those that have left.
    pub left: Vec<String>,
    /// Names of those whose process has died.
    pub died: Vec<String>,
    /// The hosts that the link hears, by their numbers, with the names that they say; `None` if they are those of before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<BTreeMap<u64, String>>,
}

/// A node of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedNode {
    /// Its name.
    pub name: String,
}

/// Endpoints that have come and gone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Announcement {
    /// Whether `opened` are all that there are.
    pub all: bool,
    /// With `all`, and in what follows it: the next document of endpoints goes on with what this one has begun.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Endpoints that are there.
    pub opened: Vec<EndpointDescription>,
    /// Those that were closed.
    pub closed: Vec<u64>,
    /// Those whose process has died.
    pub lost: Vec<u64>,
    /// How many topics that are published or subscribed to here the rules of this host keep from the other, if that is
    /// said. Their names are not: they do not cross either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<u64>,
}

/// Bytes of endpoints in one document: half of what its receiver takes. A link of an earlier release takes the first
/// of several for all, and those that follow for endpoints that were opened since.
const MAX_PART_LEN_BYTES: usize = 8 << 20;

impl Announcement {
    /// All that there are, in as many documents as it takes.
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
    /// Its id there.
    pub id: u64,
    /// Its node.
    pub node: String,
    /// Its topic.
    pub topic: String,
    /// Its type, in the form of [`TypeDesc::from_json`].
    #[serde(rename = "type")]
    pub type_desc: serde_json::Value,
    /// What it offers or asks for.
    pub qos: Qos,
    /// Whether it is a publisher that was opened with a last will.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub will: bool,
    /// Whether it is a publisher that has ended, and of which something waits for the host that hears this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Whether it has ended because its process has died.
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
    /// What is told of an endpoint of this host.
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
    /// What it offers or asks for.
    pub qos: Qos,
    /// What stands for it here.
    pub proxy: Proxy,
    /// Whether it is a publisher that was opened with a last will.
    pub will: bool,
}

impl RemoteEndpoint {
    /// Checks what the link of `host` says of an endpoint there.
    ///
    /// # Errors
    /// What is wrong with it, naming the node or topic.
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

    /// Whether it is a publisher that waits for its readers.
    pub fn offers_reliable(&self) -> bool {
        matches!(&self.qos, Qos::Publisher(qos) if qos.reliability == Reliability::Reliable)
    }

    /// Messages that it keeps for who comes later.
    pub fn history(&self) -> u64 {
        match &self.qos {
            Qos::Publisher(qos) => qos.history(),
            Qos::Subscriber(_) => 0,
        }
    }

    /// What was told of it.
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

    /// The name under which its type has to be asked for, if only that is known.
    pub fn hash(&self) -> Option<&str> {
        match &self.type_desc {
            TypeDesc::Protobuf(named) => Some(&named.schema),
            TypeDesc::Raw | TypeDesc::Plain(_) | TypeDesc::Unknown => None,
        }
    }

    /// The type of the endpoint that stands for it; `schema` is that of its hash.
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

/// The bytes of a message of this module.
pub fn to_json(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("names and numbers can be written")
}

/// Reads such a message.
///
/// # Errors
/// `BadValue` with what is wrong.
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
    fn what_is_too_long_for_a_document_is_told_in_several() {
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
        // One that is longer than a part has one of its own.
        let parts = Announcement::split((0..3).map(|id| described(id, 9 << 20)), None);
        assert_eq!(parts.iter().map(|part| part.opened.len()).collect::<Vec<_>>(), [1, 1, 1]);
        // Where one document is enough, it is as it was.
        let text = String::from_utf8(to_json(
            &Announcement::split([described(1, 3)].into_iter(), None)[0],
        ));
        assert!(!text.unwrap().contains("more"));
    }
}
