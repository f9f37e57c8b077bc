//! The state of the control thread, apart from the hosts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use rnet::schema::Schema;
use rnet::{Endpoint, EndpointQos, Error, TypeDesc, limits};
use rnet_keys::HostCertificate;

use crate::config::Direction;

use super::LinkContext;
use super::announcements::EndpointDescription;
use super::lost_host_proxies::Orphans;
use super::problems::Problems;
use super::resume_points::ResumePoints;
use super::rights::{Holder, MissingRight, Side};

/// Limit of the descriptor sets that are kept for later endpoints of the same types.
const MAX_TYPES_LEN_BYTES: usize = 64 << 20;

/// A publisher of this host that has ended.
pub struct EndedPublisher {
    pub endpoint: Arc<Endpoint>,
    /// Whether its process has died.
    pub died: bool,
}

impl EndedPublisher {
    /// Describes the publisher to a host that still has messages of it to receive.
    pub fn describe(&self) -> EndpointDescription {
        EndpointDescription {
            ended: true,
            died: self.died,
            ..EndpointDescription::of(&self.endpoint)
        }
    }
}

/// The state of the control thread, apart from the hosts.
pub struct ControlState {
    pub shared: Arc<LinkContext>,
    /// Endpoints of this host, except those of the link.
    pub local: BTreeMap<u64, Arc<Endpoint>>,
    /// Ended publishers of this host whose messages other hosts have not all received.
    pub ended: BTreeMap<u64, EndedPublisher>,
    /// Names of the nodes of this host, except that of the link.
    pub nodes: BTreeSet<String>,
    /// Types by their hash.
    pub types: HashMap<String, Schema>,
    /// Size of `types`.
    pub types_len_bytes: usize,
    /// Descriptor sets of this host's types, as sent to other hosts. Building one costs more than a lookup.
    pub sets: HashMap<u128, Vec<u8>>,
    /// Resume points of the publishers of lost hosts.
    pub resume_points: ResumePoints,
    /// Proxies of lost hosts.
    pub orphans: Orphans,
    /// The latest problems.
    pub problems: Problems,
    /// The certificate of this host, if keys secure the network.
    pub certificate: Option<Arc<HostCertificate>>,
}

/// The direction in which messages of an endpoint of this host cross.
pub fn direction(endpoint: &Endpoint) -> Direction {
    match &endpoint.qos {
        EndpointQos::Publisher(_) => Direction::Out,
        EndpointQos::Subscriber(_) => Direction::In,
    }
}

impl ControlState {
    /// Checks that this host may have an endpoint that other hosts see.
    ///
    /// # Errors
    /// The missing right.
    pub fn check_own(&self, topic: &str, side: Side) -> Result<(), MissingRight> {
        self.certificate.as_ref().map_or(Ok(()), |certificate| {
            Holder { certificate, shown_name: None }.check(topic, side)
        })
    }

    /// Reports a host, or an endpoint of one, that is refused: in the status, and once in the log.
    pub fn report_refusal(&mut self, text: String) {
        if self.problems.add_text(text.clone(), Instant::now()) {
            self.shared.node.log().warning(text);
        }
    }

    /// Counts the topics of this host that a rule of the configuration withholds from the hosts that claim
    /// this name.
    pub fn withheld(&self, host: &str) -> u64 {
        // Endpoints that never leave their host do not count as withheld.
        let is_kept = |endpoint: &&Arc<Endpoint>| {
            let direction = direction(endpoint);
            let allowed = self.shared.config.allows(&endpoint.topic, direction, host);
            allowed.is_err_and(|rule| rule.place.is_some())
        };
        let kept = self.local.values().filter(is_kept).map(|endpoint| &*endpoint.topic);
        kept.collect::<BTreeSet<_>>().len() as u64
    }

    /// Records a problem for the status.
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

    /// Keeps a type. An endpoint of this type keeps it as well.
    pub fn keep_type(&mut self, hash: String, schema: Schema, len_bytes: usize) {
        if self.types_len_bytes + len_bytes > MAX_TYPES_LEN_BYTES {
            self.types.clear();
            self.types_len_bytes = 0;
        }
        self.types_len_bytes += len_bytes;
        self.types.insert(hash, schema);
    }
}
