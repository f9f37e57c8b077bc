//! What the control thread knows beside the hosts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rnet::schema::Schema;
use rnet::{Endpoint, Error};

use crate::config::Direction;
use crate::transport::HostId;

use super::Shared;

/// Places of what other hosts had, kept for when they come back.
const MAX_PLACES: usize = 1 << 16;

/// How far the proxy of a publisher had come, and who read it.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub next_seq: Option<u64>,
    pub readers: BTreeSet<u64>,
    /// What its publisher knew to be missing there, by cause.
    pub known_lost: Option<[u64; 4]>,
}

/// What the control thread knows beside the hosts.
pub struct Known {
    pub shared: Arc<Shared>,
    /// Endpoints of this host, those of the link apart.
    pub local: BTreeMap<u64, Arc<Endpoint>>,
    /// Names of the nodes of this host, that of the link apart.
    pub nodes: BTreeSet<String>,
    /// Types by their hash.
    pub types: HashMap<String, Schema>,
    /// Where the publishers of other hosts had come to, by host and endpoint.
    pub places: HashMap<(HostId, u64), Place>,
    /// What went wrong last, in words.
    pub faults: Vec<String>,
}

impl Known {
    /// Whether the endpoint is shown to that host.
    pub fn crosses(&self, endpoint: &Endpoint, host: &str) -> bool {
        self.shared.config.allows(&endpoint.topic, Direction::Out, host).is_ok()
    }

    /// Keeps what went wrong, for the status.
    pub fn fault(&mut self, error: &Error) {
        if self.faults.len() == 32 {
            self.faults.remove(0);
        }
        self.faults.push(error.to_string());
    }

    /// Keeps how far a publisher of another host had come.
    pub fn keep_place(&mut self, of: (HostId, u64), place: Place) {
        if self.places.len() >= MAX_PLACES {
            self.places.clear();
        }
        self.places.insert(of, place);
    }
}
