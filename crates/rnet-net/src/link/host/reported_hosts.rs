//! Which hosts another host hears. No link passes on what others say: of two hosts that only a third one hears, each is
//! to know why it hears nothing of the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::super::directory::Nodes;
use super::name::sanitize_name;
use super::{Host, MAX_REPORTED_HOSTS};
use crate::transport::HostId;

/// Two hosts that find each other through a third one's network do so within this time, and of one that is lost the third
/// one tells within it.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(3);

/// Hosts by id, with the name that each says, and since when it is known of and not heard.
#[derive(Default)]
pub struct ReportedHosts(BTreeMap<HostId, (String, Instant)>);

impl ReportedHosts {
    fn replace(&mut self, told: BTreeMap<u64, String>) {
        let mut before = std::mem::take(&mut self.0);
        let mut since =
            |id: &HostId| before.remove(id).map_or_else(Instant::now, |(_, since)| since);
        let named =
            told.into_iter().filter_map(|(id, name)| Some((HostId(id), sanitize_name(&name)?)));
        self.0 =
            named.take(MAX_REPORTED_HOSTS).map(|(id, name)| (id, (name, since(&id)))).collect();
    }
}

impl Host {
    /// Its link tells which hosts it hears.
    pub(super) fn apply_reported_hosts(&mut self, told: &mut Nodes) {
        if let Some(told) = told.hosts.take() {
            self.reported_hosts.replace(told);
        }
    }

    /// These are heard here.
    pub fn note_heard(&mut self, heard: &BTreeSet<HostId>) {
        let others = self.reported_hosts.0.iter_mut().filter(|(id, _)| heard.contains(id));
        others.for_each(|(_, (_, since))| *since = Instant::now());
    }

    /// What to say of the hosts that it hears for a while and of which this is not so here.
    pub fn unreachable_remark(&self) -> Option<String> {
        let late = self
            .reported_hosts
            .0
            .values()
            .filter(|(_, since)| since.elapsed() >= DISCOVERY_TIMEOUT);
        let names: Vec<&str> = late.map(|(name, _)| name.as_str()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "it reaches {}, which this host does not, and links do not relay data: add an address of each to \
                 network.connect here, or add an address of this host there",
                names.join(", ")
            )
        })
    }
}
