//! The hosts that another host reports as heard. Links do not relay data: if only a third host hears both
//! of two hosts, each must learn why it hears nothing from the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::super::announcements::Nodes;
use super::name::sanitize_name;
use super::{Host, MAX_REPORTED_HOSTS};
use crate::transport::HostId;

/// Time in which two hosts find each other through the network of a third one, and in which the third one
/// reports a lost host.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(3);

/// Reported hosts by id, with their declared names and the time since when each is reported but not heard
/// here.
#[derive(Default)]
pub struct ReportedHosts(BTreeMap<HostId, (String, Instant)>);

impl ReportedHosts {
    fn replace(&mut self, hosts: BTreeMap<u64, String>) {
        let mut before = std::mem::take(&mut self.0);
        let mut since =
            |id: &HostId| before.remove(id).map_or_else(Instant::now, |(_, since)| since);
        let named =
            hosts.into_iter().filter_map(|(id, name)| Some((HostId(id), sanitize_name(&name)?)));
        self.0 =
            named.take(MAX_REPORTED_HOSTS).map(|(id, name)| (id, (name, since(&id)))).collect();
    }
}

impl Host {
    /// Applies the list of hosts that its link hears.
    pub(super) fn apply_reported_hosts(&mut self, report: &mut Nodes) {
        if let Some(hosts) = report.hosts.take() {
            self.reported_hosts.replace(hosts);
        }
    }

    /// Records which hosts are heard here.
    pub fn note_heard(&mut self, heard: &BTreeSet<HostId>) {
        let others = self.reported_hosts.0.iter_mut().filter(|(id, _)| heard.contains(id));
        others.for_each(|(_, (_, since))| *since = Instant::now());
    }

    /// The remark on hosts that it has reported for a while and that are not heard here.
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
