//! The certificates of the hosts: what a session may do is decided by the one with which it began.

use std::sync::Arc;

use rnet_keys::HostCertificate;

use crate::transport::HostId;

use super::super::announcements::Hello;
use super::super::host::{Host, sanitize_name};
use super::Control;

impl Control {
    /// Notes the certificate of a host whose session begins.
    pub(super) fn identify(&mut self, id: HostId) {
        let network = self.state.shared.transport();
        if let Some(host) = self.hosts.get_mut(&id) {
            host.set_certificate(network.and_then(|network| network.identity(id)));
        }
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

    /// Restarts sessions for which this host or the other has a certificate with other rights now.
    pub(super) fn restart_hosts_with_other_rights(&mut self) {
        let Some(network) = self.state.shared.transport() else { return };
        let own = self.state.shared.own_certificate();
        let others =
            own.iter().filter(|now| has_other_rights(self.state.certificate.as_ref(), now));
        let is_own_other = others.count() > 0;
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
