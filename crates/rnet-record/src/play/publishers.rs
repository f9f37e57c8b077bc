//! Publishers for the channels that are played.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use rnet::inspect::Snapshot;
use rnet::{Error, Lane, Node, OnFull, Publisher, PublisherQos, Reliability, TopicName};

use super::clock::CLOCK_TOPIC;
use super::{ClockPublisher, PlayOptions};
use crate::read::{Channel, Recording, TypeError};
use crate::{Source, SourceError};

/// How long a reliable subscriber may make no progress before the player detaches it.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between two checks whether a subscriber is connected.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Why a recording cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// Another node publishes the topic.
    #[error(
        "{topic} is already published by {node}; remap it to another name, exclude it (for /clock: omit \
         --clock), or force it"
    )]
    AlreadyPublished {
        /// The topic.
        topic: String,
        /// Name of the other node.
        node: String,
    },
    /// The type of a channel cannot be read.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The file's metadata about a publisher is invalid.
    #[error("{topic}: {error}")]
    Source {
        /// Topic of the channel.
        topic: String,
        /// The error.
        error: SourceError,
    },
    /// Two topics with different lanes are mapped to the same name.
    #[error("{topic} would be both urgent and bulk; remap one of the topics to another name")]
    LaneConflict {
        /// The topic.
        topic: String,
    },
    /// The thread cannot be started.
    #[error("cannot start the thread that reads ahead: {0}")]
    Thread(std::io::Error),
    /// A publisher cannot be created.
    #[error(transparent)]
    Rnet(#[from] Error),
}

/// The endpoints that existed before playback.
#[derive(Default)]
pub struct ExistingEndpoints {
    /// The node that publishes a topic.
    publishers: BTreeMap<String, String>,
    /// Number of subscribers of a topic.
    subscribers: BTreeMap<String, usize>,
}

impl ExistingEndpoints {
    /// Collects the endpoints of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut existing = Self::default();
        for publisher in &snapshot.publishers {
            existing.publishers.insert(publisher.topic.clone(), publisher.node.clone());
        }
        for subscriber in &snapshot.subscriptions {
            *existing.subscribers.entry(subscriber.topic.clone()).or_default() += 1;
        }
        existing
    }
}

/// The publishers by channel id.
pub struct Publishers {
    of: HashMap<u16, Publisher<[u8]>>,
    /// Skipped topics, whose types cannot be read or whose names are invalid, each with the reason.
    pub skipped: Vec<String>,
}

/// Prefix of the library's own topics: requests, replies, logs. Played again they would have effects, so they
/// are played only if they are named.
pub const INTERNAL_TOPICS: &str = "/_rnet/";

impl Publishers {
    pub fn open(
        recording: &Recording,
        node: &Node,
        existing: &ExistingEndpoints,
        options: &PlayOptions,
    ) -> Result<Self, PlayError> {
        let mut lanes: HashMap<String, Lane> = HashMap::new();
        let (mut of, mut skipped) = (HashMap::new(), Vec::new());
        let published = |topic: &str| match existing.publishers.get(topic) {
            Some(node) if !options.force => {
                let (topic, node) = (topic.to_owned(), node.clone());
                Err(PlayError::AlreadyPublished { topic, node })
            }
            _ => Ok(()),
        };
        if options.clock_hz.is_some() {
            published(CLOCK_TOPIC)?;
        }
        for channel in recording.channels() {
            let is_own = channel.topic.starts_with(INTERNAL_TOPICS);
            let is_named = options.select.topics.contains(&channel.topic);
            let is_clock = options.clock_hz.is_some() && channel.topic == CLOCK_TOPIC;
            let is_taken = options.select.includes(channel) && !channel.is_reserved();
            if !is_taken || is_clock || is_own && !is_named {
                continue;
            }
            let remapped = options.remap.iter().find(|(from, _)| *from == channel.topic);
            let topic = remapped.map_or(&channel.topic, |(_, to)| to);
            if let Err(error) = TopicName::new(topic) {
                skipped.push(format!("{error} by a remapping"));
                continue;
            }
            published(topic)?;
            let ty = match channel.message_type() {
                Err(error) if !is_named => {
                    skipped.push(error.to_string());
                    continue;
                }
                ty => ty?,
            };
            let mut source = source(channel)?;
            for (_, of) in options.qos.iter().filter(|(topic, _)| *topic == channel.topic) {
                source.reliability = of.reliability.unwrap_or(source.reliability);
                source.durability = of.durability.unwrap_or(source.durability);
            }
            if *lanes.entry(topic.clone()).or_insert(source.lane) != source.lane {
                return Err(PlayError::LaneConflict { topic: topic.clone() });
            }
            let publisher = node.publisher::<[u8]>(topic).message_type(ty);
            let publisher = publisher.qos(publisher_qos(&source, options.rate));
            of.insert(channel.id, publisher.open()?);
        }
        Ok(Self { of, skipped })
    }

    pub fn of(&mut self, channel: u16) -> Option<&mut Publisher<[u8]>> {
        self.of.get_mut(&channel)
    }

    /// Why a subscriber is incompatible with a publisher, if one is.
    pub fn incompatibility(&self, publisher: u64) -> Option<String> {
        let one = self.of.values().find(|one| one.id() == publisher)?;
        one.incompatible().first().map(ToString::to_string)
    }

    /// Topic and id of each publisher.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.of.values().map(|publisher| (publisher.topic(), publisher.id()))
    }

    /// Waits until the subscribers that existed before are connected, including those of the clock.
    /// Incompatible ones never connect. Returns the topics with unconnected subscribers after the timeout.
    pub fn wait<'a>(
        &'a self,
        clock: Option<&'a ClockPublisher>,
        existing: &ExistingEndpoints,
        limit: Duration,
    ) -> Vec<&'a str> {
        let clock = clock.map(ClockPublisher::publisher);
        let lacking = || {
            let own = self.of.values().map(|p| (p.topic(), p.subscriber_count(), p.incompatible()));
            let clock = clock.map(|p| (p.topic(), p.subscriber_count(), p.incompatible()));
            let lacks = |(topic, connected, unfit): (&'a str, usize, Vec<_>)| {
                let wanted = existing.subscribers.get(topic).copied().unwrap_or(0);
                (connected + unfit.len() < wanted).then_some(topic)
            };
            own.chain(clock).filter_map(lacks).collect::<Vec<_>>()
        };
        let end = Instant::now() + limit;
        while Instant::now() < end && !lacking().is_empty() {
            std::thread::sleep(POLL_INTERVAL);
        }
        lacking()
    }
}

fn source(channel: &Channel) -> Result<Source, PlayError> {
    channel.source().map_err(|error| PlayError::Source { topic: channel.topic.clone(), error })
}

fn publisher_qos(source: &Source, rate: Option<f64>) -> PublisherQos {
    let mut qos = PublisherQos {
        lane: source.lane,
        durability: source.durability,
        ..PublisherQos::default()
    };
    // At the highest rate, each reliable subscriber has to be waited for.
    if source.reliability == Reliability::Reliable || rate.is_none() {
        qos.reliability = Reliability::Reliable;
        qos.on_full = OnFull::Detach { stall: STALL_TIMEOUT };
    }
    qos
}
