//! Inspecting a domain without joining it: for the command line and for dashboards.
//!
//! Everything here is read from the outside. Nodes, publishers and subscribers do not see it and are not
//! slowed by it.

#![forbid(unsafe_code)]

mod endpoint_files;
mod endpoint_pair;
mod follow;
mod give_way;
mod location;
mod node_changes;
mod node_watcher;
mod remote;
mod services;
mod snapshot;
mod types;

use std::mem::offset_of;
use std::path::{Path, PathBuf};

use rnet_core::{
    Backlog, Error, LossCounts, PublisherQos, Result, SubscriberQos, TopicName, TypeDesc,
    limits::MAX_CHUNKS_PER_CHANNEL,
};
pub use rnet_shm::channel::observe::{
    MissedCause, MissedCounts, MissedMessages, Observation, Observer,
};
use rnet_shm::channel::publisher::{CONTROL_AT, PeerPublisher};
pub use rnet_shm::channel::received::Stamp;
use rnet_shm::channel::subscription::{LinkRole, PeerSubscription};
use rnet_shm::domain::death_notes;
pub use rnet_shm::domain::directory::{DEFAULT_BASE, default_base};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
#[doc(hidden)]
pub use rnet_shm::domain::node::StopRequest;
use rnet_shm::domain::node::{EndpointKind, Entry};
pub use rnet_shm::domain::node::{NodeMeta, pid_namespace};
use rnet_shm::domain::registry::{Changes, Registry};
pub use rnet_shm::os::barrier::is_supported as membarrier_is_offered;
use rnet_shm::ring::layout::{BindLine, CountLine, CursorLine, READERS_IN_CONTROL, ReaderSlot};
use rnet_shm::ring::layout::{LATENCY_BUCKETS, PINS_PER_READER, SLOT_BOUND, SLOT_TOTALS, TailLine};
use serde::{Serialize, Serializer};

use endpoint_files::{publisher_info, subscription_info};
pub use endpoint_pair::EndpointPair;
pub use follow::{FollowEvent, Follower, Observed, ObservedMessage, UnreadCause, UnreadPublisher};
pub use give_way::{NormalPriority, PriorityChange, lower_priority};
pub use location::Location;
pub use node_watcher::NodeWatcher;
pub use rnet_core::is_internal;
use rnet_node::{matching::visible_node, types::SchemaCache};
use rnet_schema::Schema;
use rnet_state::{StateDirChoice, StateFolder};
pub use services::{CallType, ServerInfo, service_of};
pub use snapshot::RemoteNode;
pub use types::{TypeChange, TypeComparison, compare_types};

/// The self-descriptions of the observers in this domain directory, as set by [`Follower::set_status`]. They
/// come from other processes: do not trust them.
pub fn observer_statuses(domain: &Path) -> Vec<String> {
    rnet_shm::domain::observers::read_statuses(domain).into_iter().map(|(_, text)| text).collect()
}

/// A domain, inspected from outside.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("domain{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// use rnet::inspect::{Domain, Observer, Observation};
///
/// let mut angles = node.publisher::<[u8]>("/angles").open()?;
/// # let (dir, id) = (std::env::temp_dir(), node.domain().to_owned());
/// // Domain::open(None, None, None)? opens the domain of the environment.
/// let mut domain = Domain::open(Some(&id), Some(dir), None)?;
/// let snapshot = domain.snapshot()?;
/// let found = &snapshot.publishers[0];
/// assert_eq!((&*found.topic, &*found.node), ("/angles", "/arm"));
///
/// // Reads its messages from now on, without being seen.
/// let mut observer = Observer::open(found.path.clone(), found.id, false)?;
/// angles.send(b"0.25")?;
/// let mut bytes = Vec::new();
/// assert!(matches!(observer.poll(&mut bytes), Observation::Message(_)));
/// assert_eq!(bytes, b"0.25");
/// # drop(angles);
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Domain {
    config: DomainConfig,
    /// `None` until a node has joined the domain.
    registry: Option<Registry>,
    path: PathBuf,
    schemas: SchemaCache,
    remote: remote::RemoteNodeTracker,
}

/// Identifiers are strings in JSON, because JavaScript, jq and others keep only 53 bits of a number. Counts
/// and measurements are numbers.
fn as_text<S: Serializer>(id: &u64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

fn as_text_if_any<S: Serializer>(
    id: &Option<u64>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    as_text(&id.unwrap_or_default(), serializer)
}

/// A node of the domain.
#[derive(Clone, Debug, Serialize)]
pub struct NodeInfo {
    /// Description of the node.
    #[serde(flatten)]
    pub meta: NodeMeta,
    /// Its incarnation, the prefix of its endpoints' ids.
    #[serde(serialize_with = "as_text")]
    pub incarnation: u64,
    /// Exceptions and panics of its callbacks, timers and handlers so far, as the node counts them.
    pub callback_errors: u64,
    /// Callbacks and timers that panicked and are not called again.
    pub dropped_callbacks: u64,
    /// Topics that it publishes.
    pub publishes: Vec<String>,
    /// Topics that it subscribes to.
    pub subscribes: Vec<String>,
}

/// A publisher and its counters.
#[derive(Clone, Debug, Serialize)]
pub struct PublisherInfo {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    pub id: u64,
    /// Its topic.
    pub topic: String,
    /// Name of its node; for a proxy `@host/node`, the node that it represents.
    pub node: String,
    /// The node that it is in, if it is a proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// For a proxy: the id of the publisher on the other host that it represents.
    #[serde(skip)]
    pub stands_for: Option<u64>,
    /// The type of its messages.
    #[serde(rename = "type")]
    pub type_desc: TypeDesc,
    /// The protobuf type that it names, if that could be read.
    #[serde(skip)]
    pub schema: Option<Schema>,
    /// Why its type cannot be read; `None` if the type was read or not inspected.
    #[serde(skip)]
    pub type_error: Option<String>,
    /// The quality of service that it offers.
    pub qos: PublisherQos,
    /// Messages sent.
    pub sent: u64,
    /// Payload bytes sent.
    pub bytes: u64,
    /// Subscribers that are served now.
    pub readers: u64,
    /// The served subscriptions, each with its first message.
    pub admitted: Vec<AdmittedSubscription>,
    /// Times a reliable send found the log full.
    pub full: u64,
    /// Sends that failed because a reader was full.
    pub refused: u64,
    /// Readers evicted because they made no progress.
    pub detached: u64,
    /// Messages that it knows to be missing from its stream, by cause, such as messages lost by a link.
    pub known_lost: LossCounts,
    /// Periods of its deadline in which it sent nothing.
    pub deadline_missed: u64,
    /// If the publisher asserts its liveliness by topic: time since the last assertion, in ns. If it exceeds
    /// the lease, the publisher is not alive.
    pub silent_ns: Option<u64>,
    /// Length of its last will in bytes, if it has one now.
    pub last_will_len: Option<u64>,
    /// Bytes of shared memory: the log and the pool of large messages.
    pub memory_bytes: u64,
    /// Its file, for [`Observer::open`].
    #[serde(skip)]
    pub path: PathBuf,
}

/// A subscription as its publisher sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AdmittedSubscription {
    /// The subscription.
    #[serde(serialize_with = "as_text")]
    pub subscription: u64,
    /// Sequence number of the first message that it gets. Each later message is received, lost, skipped or
    /// not read yet, so the counters add up.
    pub start_seq: u64,
}

/// A subscription and its counters.
#[derive(Clone, Debug, Serialize)]
pub struct SubscriptionInfo {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    pub id: u64,
    /// Its topic.
    pub topic: String,
    /// Name of its node; for a proxy `@host/node`, the node that it represents.
    pub node: String,
    /// The node that it is in, if it is a proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Number of subscriptions that it represents: 1 if it is not a proxy.
    pub endpoint_count: u32,
    /// The publisher whose messages it forwards to another host, if it belongs to the link.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text_if_any")]
    pub forwards: Option<u64>,
    /// The type that it expects.
    #[serde(rename = "type")]
    pub type_desc: TypeDesc,
    /// The protobuf type that it names, if that could be read.
    #[serde(skip)]
    pub schema: Option<Schema>,
    /// Why its type cannot be read; `None` if the type was read or not inspected.
    #[serde(skip)]
    pub type_error: Option<String>,
    /// The quality of service that it requests.
    pub qos: SubscriberQos,
    /// Its channel from each publisher.
    pub channels: Vec<ChannelInfo>,
    /// Sum of its channels from former publishers.
    pub past: Option<ChannelInfo>,
}

/// A subscription's counters for one publisher.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelInfo {
    /// The publisher.
    #[serde(serialize_with = "as_text")]
    pub publisher: u64,
    /// Messages received.
    pub received: u64,
    /// Payload bytes received.
    pub bytes: u64,
    /// Messages lost, by cause.
    pub lost: LossCounts,
    /// Messages that could not be decoded; they are among those received.
    pub malformed: u64,
    /// Messages passed over by the subscriber's choice: `keep_last` or `latest`.
    pub skipped: u64,
    /// Messages not delivered because they were older than the publisher's lifespan.
    pub expired: u64,
    /// Periods of the subscriber's deadline in which the publisher sent nothing.
    pub deadline_missed: u64,
    /// Messages sent and not yet taken, and the age of the oldest.
    pub behind: Backlog,
    /// Samples held without a copy.
    pub pinned: u64,
    /// Whether the reader sleeps now.
    pub asleep: bool,
    /// Longest latency, in ns.
    pub max_latency_ns: u64,
    /// Mean latency, in ns.
    pub mean_latency_ns: u64,
    /// Wake-ups caused by a time limit instead of the bell.
    pub late_wakes: u64,
    /// Latency histogram: counts by bucket, with the bounds [`rnet_core::bucket_low`] and
    /// [`rnet_core::bucket_high`].
    #[serde(skip)]
    pub latency: Vec<u64>,
    /// The position in the log that the reader has shown to its publisher.
    #[serde(skip)]
    pub cursor: u64,
    /// Sequence number of the next expected message; 0 before the first read.
    #[serde(skip)]
    pub next_seq: u64,
}

impl PublisherInfo {
    /// Whether it has kept its liveliness lease. Without a lease, the kernel detects exits.
    pub fn is_alive(&self) -> bool {
        let lease = self.qos.liveliness.lease().map(rnet_core::ns_saturating);
        self.silent_ns.zip(lease).is_none_or(|(silent_ns, lease_ns)| silent_ns < lease_ns)
    }
}

impl ChannelInfo {
    /// The latency that a share `q` (0 to 1) of the messages did not exceed, in ns.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let bound = rnet_core::quantile(&self.latency, q)?;
        Some(bound.min(self.max_latency_ns))
    }
}

/// The nodes and endpoints of a domain at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    /// The nodes, by name.
    pub nodes: Vec<NodeInfo>,
    /// Nodes of other hosts whose endpoints have proxies here, by name.
    pub remote: Vec<RemoteNode>,
    /// The publishers, by topic and node.
    pub publishers: Vec<PublisherInfo>,
    /// The subscriptions, by topic and node.
    pub subscriptions: Vec<SubscriptionInfo>,
    /// Subscriptions that forward messages to other hosts; they do not count as subscribers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forwarders: Vec<SubscriptionInfo>,
    /// Nodes of this host that have died within ten minutes and have not been restarted; excludes tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub died: Vec<String>,
    /// The parts that could not be read, as text.
    pub problems: Vec<String>,
    /// Types that were not read, with the reason; they are not known to be invalid.
    pub unread: Vec<String>,
}

impl Domain {
    /// The domain of the arguments, or else of the environment. It need not exist yet.
    ///
    /// # Errors
    /// `BadName`, `NoPermission`, `LayoutVersion`.
    pub fn open(
        domain: Option<&str>,
        dir: Option<PathBuf>,
        group: Option<String>,
    ) -> Result<Domain> {
        Location::new(domain, dir, group)?.domain()
    }

    fn of_config(config: DomainConfig) -> Result<Domain> {
        let path = DomainDir::path_of(&config)?;
        let registry = DomainDir::open(&config)?.map(|dir| Registry::new(dir, None));
        let (schemas, remote) = Default::default();
        Ok(Domain { config, registry, path, schemas, remote })
    }

    /// The domain's id.
    pub fn id(&self) -> &str {
        self.config.id.as_str()
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether any node has joined the domain since boot, as of the last inspection.
    pub fn exists(&self) -> bool {
        self.registry.is_some()
    }

    /// Whether the domain has state, in memory or on disk. Only checks for files, and creates none.
    ///
    /// # Errors
    /// `Io` or `Storage` if the files cannot be checked.
    pub fn has_state(&self) -> Result<bool> {
        let exists = |path: &Path| {
            path.try_exists().map_err(|e| Error::io("cannot inspect", path.to_owned(), &e))
        };
        if exists(&self.path.join("state"))? {
            return Ok(true);
        }
        match StateFolder::of_config(&self.config, &StateDirChoice::from_env(None)) {
            Ok(folder) => folder.has_store(),
            // Without a directory for durable state, the domain has none.
            Err(_) => Ok(false),
        }
    }

    /// Reads the nodes again; opens a domain that was created since.
    fn refresh(&mut self) -> Result<Changes> {
        if self.registry.is_none() {
            self.registry = DomainDir::open(&self.config)?.map(|dir| Registry::new(dir, None));
        }
        let Some(registry) = &mut self.registry else { return Ok(Changes::default()) };
        let done = registry.refresh();
        registry.take_dead_folders().sweep();
        match done {
            Err(Error::Io {
                source: rnet_core::OsError { kind: std::io::ErrorKind::NotFound, .. },
                ..
            }) => {
                // The directory was removed: as if no node had ever joined.
                self.registry = None;
                Ok(Changes::default())
            }
            done => done,
        }
    }

    /// Inspects the whole domain.
    ///
    /// # Errors
    /// `NoPermission`, `LayoutVersion`, `Io` for the domain's directory; problems of single nodes are in
    /// [`Snapshot::problems`].
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        self.collect(|_| true)
    }

    /// Inspects one topic: all nodes, but only the endpoints of this topic. Cheap in a domain with many
    /// topics.
    ///
    /// # Errors
    /// As [`Domain::snapshot`], and `BadName`.
    pub fn topic_snapshot(&mut self, topic: &str) -> Result<Snapshot> {
        let topic = TopicName::new(topic)?;
        let mut snapshot = self.collect(|entry| entry.topic_hash == topic.hash())?;
        // Two names may have the same hash.
        snapshot.publishers.retain(|p| p.topic == topic.as_str());
        snapshot.subscriptions.retain(|s| s.topic == topic.as_str());
        snapshot.forwarders.retain(|s| s.topic == topic.as_str());
        for node in &mut snapshot.nodes {
            node.publishes.retain(|t| t == topic.as_str());
            node.subscribes.retain(|t| t == topic.as_str());
        }
        snapshot.find_remote();
        Ok(snapshot)
    }

    fn collect(&mut self, wanted: impl Fn(&Entry) -> bool) -> Result<Snapshot> {
        self.refresh()?;
        let mut snapshot = Snapshot::default();
        let Some(registry) = &self.registry else { return Ok(snapshot) };
        snapshot.died =
            death_notes::known(registry.domain()).into_iter().map(String::from).collect();
        let mut seen = types::TypeReads::default();
        for (incarnation, peer) in registry.peers() {
            let name = peer.node.meta().name.clone();
            let mut node = NodeInfo {
                meta: peer.node.meta().clone(),
                incarnation: *incarnation,
                callback_errors: peer.node.callback_errors(),
                dropped_callbacks: peer.node.dropped_callbacks(),
                publishes: Vec::new(),
                subscribes: Vec::new(),
            };
            for entry in peer.node.entries().iter().filter(|entry| wanted(entry)) {
                let folder = peer.node.folder();
                let path = entry.path(folder);
                let schemas = &mut self.schemas;
                let mut schema = |desc: &TypeDesc| {
                    let found = seen.read(schemas, registry.domain(), folder, desc);
                    found.report(&name, &mut snapshot.problems, &mut snapshot.unread)
                };
                let read = match entry.kind {
                    EndpointKind::Publisher => publisher_info(entry, &path, &name).map(|mut p| {
                        (p.schema, p.type_error) = schema(&p.type_desc);
                        if p.via.is_none() {
                            node.publishes.push(p.topic.clone());
                        }
                        snapshot.publishers.push(p);
                    }),
                    EndpointKind::Subscription => {
                        subscription_info(entry, &path, &name).map(|mut s| {
                            (s.schema, s.type_error) = schema(&s.type_desc);
                            if s.forwards.is_some() {
                                return snapshot.forwarders.push(s);
                            }
                            if s.via.is_none() {
                                node.subscribes.push(s.topic.clone());
                            }
                            snapshot.subscriptions.push(s);
                        })
                    }
                };
                match read {
                    // It closed during the inspection.
                    Err(Error::Io {
                        source: rnet_core::OsError { kind: std::io::ErrorKind::NotFound, .. },
                        ..
                    })
                    | Ok(()) => {}
                    Err(error) => snapshot.problems.push(format!("{name}: {error}")),
                }
            }
            snapshot.nodes.push(node);
        }
        snapshot.sort();
        snapshot.find_remote();
        snapshot.leave_out_forwarders();
        snapshot.fill_behind();
        Ok(snapshot)
    }
}
