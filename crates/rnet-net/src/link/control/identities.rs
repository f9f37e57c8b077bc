//! The names and certificates of the hosts. What a session may do is decided by the certificate with which it
//! began.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet_keys::HostCertificate;

use crate::transport::HostId;

use super::super::announcements::Hello;
use super::super::host::{Host, sanitize_name};
use super::{Control, PausedHost};

/// Period of retries with a host that claims the name of another host whose liveness is still unknown.
const NAME_RECHECK_INTERVAL: Duration = Duration::from_millis(200);

impl Control {
    /// Notes the certificate of a host whose session begins. Returns whether its session has to restart, because
    /// what was decided about it was decided by another certificate.
    pub(super) fn identify(&mut self, id: HostId) -> bool {
        let network = self.state.shared.transport();
        let now = network.and_then(|network| network.identity(id));
        let Some(host) = self.hosts.get_mut(&id) else { return false };
        let is_other = match (host.certificate(), &now) {
            (Some(known), Some(now)) => known.rights != now.rights || known.name != now.name,
            (None, None) => false,
            _ => true,
        };
        let must_restart = is_other && host.is_greeted();
        host.set_certificate(now);
        must_restart
    }

    /// Returns whether a host may have the name in its greeting. Disconnects it if not.
    pub(super) fn check_identity(&mut self, id: HostId, hello: &Hello) -> bool {
        let Some(host) = self.hosts.get(&id) else { return true };
        let Err(why) = host.check_identity(hello, self.state.certificate.is_some()) else {
            return true;
        };
        let said = sanitize_name(&hello.host).unwrap_or_else(|| id.to_string());
        self.state.report_refusal(format!("host {said} is refused: {why}"));
        self.expel(id, why);
        false
    }

    /// Returns whether a greeted host may use its name now. It may not while another host has the name and
    /// its liveness is unknown. A host that restarts as a container does has a new id, and may return
    /// before its predecessor is detected as lost.
    pub(super) fn claim_name(&mut self, id: HostId, hello: &Hello) -> bool {
        let is_greeted = self.hosts.get(&id).is_none_or(Host::is_greeted);
        let Some(name) = sanitize_name(&hello.host).filter(|_| !is_greeted) else { return true };
        let since_ns = *self.name_conflicts.entry(id).or_insert_with(rnet::now_ns);
        let others = self.hosts.iter().filter(|(other, _)| **other != id);
        let before = others.filter(|(_, host)| host.may_be_replaced(&name, since_ns));
        let before = before.map(|(other, host)| (*other, host.is_replaced_by(hello))).next();
        if let Some((before, is_over)) = before {
            if !is_over {
                if let Some(host) = self.hosts.remove(&id) {
                    host.lose(&mut self.state);
                }
                let until = Instant::now() + NAME_RECHECK_INTERVAL;
                self.paused.insert(id, PausedHost { until, why: None });
                return false;
            }
            self.restart_host(before);
        }
        self.name_conflicts.remove(&id);
        let before = self.status.inherit(id, &name, |other| self.hosts.contains_key(other));
        if let Some(before) = before {
            // The previous host does not return.
            self.state.shared.offline.drop_all(|(host, _)| *host == before);
        }
        true
    }

    /// Restarts sessions for which this host or the other has a certificate with other rights now.
    pub(super) fn restart_hosts_with_other_rights(&mut self) {
        let Some(network) = self.state.shared.transport() else { return };
        let own = self.state.shared.own_certificate();
        let known = self.state.certificate.as_ref();
        let is_own_other = own.as_ref().is_some_and(|now| has_other_rights(known, now));
        self.state.certificate = own;
        let is_other = |(id, host): &(&HostId, &Host)| {
            let now = network.identity(**id);
            is_own_other || now.is_some_and(|now| has_other_rights(host.certificate(), &now))
        };
        for id in self.hosts.iter().filter(is_other).map(|(id, _)| *id).collect::<Vec<_>>() {
            self.restart_host(id);
        }
    }
}

fn has_other_rights(known: Option<&Arc<HostCertificate>>, now: &HostCertificate) -> bool {
    known.is_some_and(|known| known.rights != now.rights || known.name != now.name)
}
