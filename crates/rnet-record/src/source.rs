//! Metadata of a channel about its publisher.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet::{Durability, Lane, PlainType, PublisherQos, Reliability, TypeDesc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use strum::{EnumString, IntoStaticStr};

use crate::names::{
    DEADLINE_KEY, DEPTH_KEY, DURABILITY_KEY, HOST_KEY, KIND_KEY, LANE_KEY, LAYOUT_KEY,
    LIFESPAN_KEY, NODE_KEY, PUBLISHER_KEY, RELIABILITY_KEY, TYPE_KEY,
};
use crate::ros2::qos::{OFFERED_QOS_KEY, parse_offered_qos};

/// The publisher of a channel, as stored in the channel's metadata.
///
/// ```
/// use rnet_record::Source;
///
/// let source = Source { node: "/camera".into(), host: "robot1".into(), publisher: 7, ..Source::default() };
/// let metadata = source.to_metadata();
/// assert_eq!(metadata["rnet.node"], "/camera");
/// assert_eq!(Source::from_metadata(&metadata)?, source);
/// # Ok::<(), rnet_record::SourceError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Name of its node.
    pub node: String,
    /// Host of its node.
    pub host: String,
    /// Id of the publisher, which the recorder's own messages refer to.
    pub publisher: u64,
    /// The kind of its messages' type: `bytes`, `plain` or `protobuf`.
    pub kind: TypeKind,
    /// Full name of the type of its messages; empty for bytes.
    pub type_name: String,
    /// Layout of its plain messages, if they were recorded as protobuf.
    pub layout: Option<PlainType>,
    /// Its lane.
    pub lane: Lane,
    /// Its reliability.
    pub reliability: Reliability,
    /// Its durability.
    pub durability: Durability,
    /// Maximum time between two of its messages.
    pub deadline: Option<Duration>,
    /// Maximum age of its messages.
    pub lifespan: Option<Duration>,
}

/// The kind of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum TypeKind {
    /// Bytes without a description, or of an unknown kind.
    #[default]
    Bytes,
    /// A struct of a fixed layout.
    Plain,
    /// A protobuf message.
    Protobuf,
}

impl TypeKind {
    /// Its name in a recording.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Invalid metadata of a channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata {key} of the channel is {value:?}, which is not {wanted}")]
pub struct SourceError {
    /// The key.
    pub key: &'static str,
    /// The value.
    pub value: String,
    /// The expected value.
    pub wanted: &'static str,
}

impl Source {
    /// Describes a publisher for a recording.
    pub fn new(
        node: &str,
        host: &str,
        publisher: u64,
        desc: &TypeDesc,
        qos: &PublisherQos,
    ) -> Self {
        let (kind, type_name) = match desc {
            TypeDesc::Plain(plain) => (TypeKind::Plain, plain.name.clone()),
            TypeDesc::Protobuf(protobuf) => (TypeKind::Protobuf, protobuf.name.clone()),
            _ => (TypeKind::Bytes, String::new()),
        };
        Self {
            node: node.to_owned(),
            host: host.to_owned(),
            publisher,
            kind,
            type_name,
            layout: None,
            lane: qos.lane,
            reliability: qos.reliability,
            durability: qos.durability,
            deadline: qos.deadline,
            lifespan: qos.lifespan,
        }
    }

    /// The metadata of a channel.
    pub fn to_metadata(&self) -> BTreeMap<String, String> {
        let (durability, depth) = match self.durability {
            Durability::Volatile => ("volatile", None),
            Durability::TransientLocal { depth } => ("transient_local", Some(depth)),
        };
        let ns = |time: Option<Duration>| time.map(|time| time.as_nanos().to_string());
        let layout = self.layout.clone().map(|layout| TypeDesc::Plain(layout).to_json());
        let pairs = [
            (NODE_KEY, Some(self.node.clone())),
            (HOST_KEY, Some(self.host.clone())),
            (PUBLISHER_KEY, Some(self.publisher.to_string())),
            (KIND_KEY, Some(self.kind.name().to_owned())),
            (TYPE_KEY, Some(self.type_name.clone())),
            (LAYOUT_KEY, layout),
            (LANE_KEY, qos_name(self.lane)),
            (RELIABILITY_KEY, qos_name(self.reliability)),
            (DURABILITY_KEY, Some(durability.to_owned())),
            (DEPTH_KEY, depth.map(|depth| depth.to_string())),
            (DEADLINE_KEY, ns(self.deadline)),
            (LIFESPAN_KEY, ns(self.lifespan)),
        ];
        let pairs = pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        pairs.collect()
    }

    /// Parses the metadata of a channel. Missing values are taken from the `offered_qos_profiles` of ROS 2,
    /// or else from [`Source::default`], so that files of other writers can be read.
    ///
    /// # Errors
    /// [`SourceError`] for an invalid value.
    pub fn from_metadata(metadata: &BTreeMap<String, String>) -> Result<Self, SourceError> {
        let text = |key| metadata.get(key).cloned().unwrap_or_default();
        let of = MetadataReader(metadata);
        let offered = metadata.get(OFFERED_QOS_KEY).and_then(|text| parse_offered_qos(text));
        let offered = offered.unwrap_or_default();
        let depth = u32::try_from(of.number(DEPTH_KEY)?.unwrap_or(1)).unwrap_or(u32::MAX);
        let kind = of.read(KIND_KEY, "`bytes`, `plain` or `protobuf`", |text| text.parse().ok());
        let durability =
            of.read(DURABILITY_KEY, "`volatile` or `transient_local`", |text| match text {
                "volatile" => Some(Durability::Volatile),
                "transient_local" => Some(Durability::TransientLocal { depth }),
                _ => None,
            });
        let layout = of.read(LAYOUT_KEY, "the layout of a plain type", |text| {
            TypeDesc::from_json(text).ok()?.as_plain().cloned()
        });
        let reliability = of.read(RELIABILITY_KEY, "`best_effort` or `reliable`", parse_qos_name);
        let time = |key| Ok(of.number(key)?.map(Duration::from_nanos));
        Ok(Self {
            node: text(NODE_KEY),
            host: text(HOST_KEY),
            publisher: of.number(PUBLISHER_KEY)?.unwrap_or(0),
            kind: kind?.unwrap_or_default(),
            type_name: text(TYPE_KEY),
            layout: layout?,
            lane: of.read(LANE_KEY, "`bulk` or `urgent`", parse_qos_name)?.unwrap_or_default(),
            reliability: reliability?.unwrap_or(offered.reliability),
            durability: durability?.unwrap_or(offered.durability),
            deadline: time(DEADLINE_KEY)?.or(offered.deadline),
            lifespan: time(LIFESPAN_KEY)?.or(offered.lifespan),
        })
    }
}

/// Metadata of a channel.
struct MetadataReader<'a>(&'a BTreeMap<String, String>);

impl MetadataReader<'_> {
    /// The value of a key, if it exists.
    fn read<T>(
        &self,
        key: &'static str,
        wanted: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, SourceError> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let wrong = || SourceError { key, value: value.clone(), wanted };
        read(value).map(Some).ok_or_else(wrong)
    }

    fn number(&self, key: &'static str) -> Result<Option<u64>, SourceError> {
        self.read(key, "a number", |text| text.parse().ok())
    }
}

/// The name of a quality-of-service value.
fn qos_name(value: impl Serialize) -> Option<String> {
    Some(serde_json::to_value(value).ok()?.as_str()?.to_owned())
}

fn parse_qos_name<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(text.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_round_trip() {
        let layout = r#"{"kind":"plain","name":"Pose","size":8,"align":8,"fields":[{"name":"x","offset":0,"type":"f64"}]}"#;
        let TypeDesc::Plain(layout) = TypeDesc::from_json(layout).unwrap() else { unreachable!() };
        let source = Source {
            node: "/arm".into(),
            host: "robot1".into(),
            publisher: u64::MAX,
            kind: TypeKind::Plain,
            type_name: "Pose".into(),
            layout: Some(layout),
            lane: Lane::Urgent,
            reliability: Reliability::Reliable,
            durability: Durability::TransientLocal { depth: 3 },
            deadline: Some(Duration::from_millis(10)),
            lifespan: Some(Duration::from_nanos(1)),
        };
        assert_eq!(Source::from_metadata(&source.to_metadata()), Ok(source));
        assert_eq!(Source::from_metadata(&BTreeMap::new()), Ok(Source::default()));
    }

    #[test]
    fn rejects_invalid_values() {
        for (key, value) in [
            (PUBLISHER_KEY, "-1"),
            (KIND_KEY, "ros"),
            (LAYOUT_KEY, "{}"),
            (LAYOUT_KEY, r#"{"kind":"raw"}"#),
            (LANE_KEY, ""),
            (RELIABILITY_KEY, "yes"),
            (DURABILITY_KEY, "depth"),
            (DEADLINE_KEY, "1.5"),
        ] {
            let metadata = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            let error = Source::from_metadata(&metadata).unwrap_err();
            assert_eq!((error.key, &*error.value), (key, value));
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}
