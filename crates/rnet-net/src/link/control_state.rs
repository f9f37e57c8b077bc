//! What the control thread knows beside the hosts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use rnet::schema::Schema;
use rnet::{Endpoint, EndpointQos, Error, TypeDesc, limits};

use crate::config::Direction;

use super::LinkContext;
use super::directory::EndpointDescription;
use super::orphans::Orphans;
use super::problems::Problems;
use super::resume_points::ResumePoints;

/// Types that are kept, in bytes of their descriptor sets, for who comes with one of them.
const MAX_TYPES_LEN_BYTES: usize = 64 << 20;

/// A publisher of this host that has ended.
pub struct EndedPublisher {
    pub endpoint: Arc<Endpoint>,
    /// Whether its process has died.
    pub died: bool,
}

impl EndedPublisher {
    /// What is told of it to a host for which something of it waits.
    pub fn describe(&self) -> EndpointDescription {
        EndpointDescription {
            ended: true,
            died: self.died,
            ..EndpointDescription::of(&self.endpoint)
        }
    }
}

/// What the control thread knows beside the hosts.
pub struct ControlState {
    pub shared: Arc<LinkContext>,
    /// Endpoints of this host, those of the link apart.
    pub local: BTreeMap<u64, Arc<Endpoint>>,
    /// Publishers of this host that have ended, and of which other hosts have not had all.
    pub ended: BTreeMap<u64, EndedPublisher>,
    /// Names of the nodes of this host, that of the link apart.
    pub nodes: BTreeSet<String>,
    /// Types by their hash.
    pub types: HashMap<String, Schema>,
    /// Bytes of these.
    pub types_len_bytes: usize,
    /// Types of this host, as they are told to others: to make this takes longer than to ask for it.
    pub sets: HashMap<u128, Vec<u8>>,
    /// Where the publishers of hosts that are lost had come to.
    pub resume_points: ResumePoints,
    /// Proxies of hosts that are lost.
    pub orphans: Orphans,
    /// What went wrong last.
    pub problems: Problems,
}

/// Which way messages of this host's endpoint cross.
fn direction(endpoint: &Endpoint) -> Direction {
    match &endpoint.qos {
        EndpointQos::Publisher(_) => Direction::Out,
        EndpointQos::Subscriber(_) => Direction::In,
    }
}

impl ControlState {
    /// Whether the endpoint is shown to the hosts that say this name: whether what it sends may go there, or what it
    /// wants come from there.
    pub fn crosses(&self, endpoint: &Endpoint, host: &str) -> bool {
        self.shared.config.allows(&endpoint.topic, direction(endpoint), host).is_ok()
    }

    /// How many topics that are published or subscribed to here a rule of the configuration keeps from the hosts that say
    /// this name.
    pub fn withheld(&self, host: &str) -> u64 {
        // What never leaves its host is not kept back.
        let is_kept = |endpoint: &&Arc<Endpoint>| {
            let direction = direction(endpoint);
            let allowed = self.shared.config.allows(&endpoint.topic, direction, host);
            allowed.is_err_and(|rule| rule.place.is_some())
        };
        let kept = self.local.values().filter(is_kept).map(|endpoint| &*endpoint.topic);
        kept.collect::<BTreeSet<_>>().len() as u64
    }

    /// Keeps what went wrong, for the status.
    pub fn report(&mut self, error: &Error) {
        self.problems.add(error, Instant::now());
    }

    /// The descriptor set of a type of this host.
    pub fn type_set(&mut self, hash: u128) -> Option<Vec<u8>> {
        if let Some(set) = self.sets.get(&hash) {
            return Some(set.clone());
        }
        let wanted = format!("{hash:032x}");
        let ended = self.ended.values().map(|ended| &ended.endpoint);
        let endpoint = self.local.values().chain(ended).find(
            |endpoint| matches!(&endpoint.type_desc, TypeDesc::Protobuf(named) if named.schema == wanted),
        )?;
        let set = endpoint.schema().ok()??.descriptor_set_with_docs();
        if self.sets.len() >= limits::MAX_TYPES_PER_NODE {
            self.sets.clear();
        }
        self.sets.insert(hash, set.clone());
        Some(set)
    }

    /// Keeps a type. Who has an endpoint of it has it as well.
    pub fn keep_type(&mut self, hash: String, schema: Schema, len_bytes: usize) {
        if self.types_len_bytes + len_bytes > MAX_TYPES_LEN_BYTES {
            self.types.clear();
            self.types_len_bytes = 0;
        }
        self.types_len_bytes += len_bytes;
        self.types.insert(hash, schema);
    }
}
