//! Endpoints of another host that may not cross: because of a rule of this host, or of its rights.

use std::sync::Arc;

use rnet_keys::HostCertificate;

use crate::config::Direction;

use super::super::announcements::{EndpointDescription, Hello, Qos};
use super::super::control_state::ControlState;
use super::super::rights::{Holder, MissingRight, Side};
use super::traffic::HoldReason;
use super::{Host, MAX_ENDPOINTS, sanitize_name};

/// The most refused endpoints of one session that are reported one by one; all are counted.
const MAX_REPORTED: u64 = 16;

/// An endpoint that may not cross.
pub struct DeniedEndpoint {
    pub topic: String,
    pub is_publisher: bool,
    pub reason: HoldReason,
}

impl Host {
    /// Sets the certificate of its present session.
    pub fn set_certificate(&mut self, certificate: Option<Arc<HostCertificate>>) {
        self.certificate = certificate;
    }

    /// Checks that the name in its greeting is that of its certificate; `is_secured` if this host has a
    /// certificate.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn check_identity(&self, hello: &Hello, is_secured: bool) -> Result<(), String> {
        let said = sanitize_name(&hello.host).unwrap_or_default();
        match &self.certificate {
            Some(certificate) if certificate.name != said => Err(format!(
                "it says that it is host {said}, but its certificate is that of host {}: there, set host = \"{}\" \
                 under [network] in robot.toml, or copy the keys file of host {said} to it (rnet keys add-host {said})",
                certificate.name, certificate.name
            )),
            None if is_secured => {
                Err("it has no certificate: copy a keys file to it (rnet keys add-host NAME)"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The certificate of its session.
    pub fn certificate(&self) -> Option<&Arc<HostCertificate>> {
        self.certificate.as_ref()
    }

    /// Checks that it may have such an endpoint.
    ///
    /// # Errors
    /// The missing right.
    pub fn check_rights(&self, topic: &str, side: Side) -> Result<(), MissingRight> {
        self.certificate.as_ref().map_or(Ok(()), |certificate| {
            Holder { certificate, shown_name: Some(&self.name) }.check(topic, side)
        })
    }

    /// Why an announced endpoint may not cross; `None` if it may.
    pub(super) fn check_denied(
        &self,
        control: &ControlState,
        described: &EndpointDescription,
    ) -> Option<DeniedEndpoint> {
        let topic = &described.topic;
        // Messages of a publisher are inbound, those for a subscription outbound.
        let (side, direction) = match described.qos {
            Qos::Publisher(_) => (Side::Publisher, Direction::In),
            Qos::Subscriber(_) => (Side::Subscriber, Direction::Out),
        };
        let is_publisher = side == Side::Publisher;
        let of = |reason| Some(DeniedEndpoint { topic: topic.clone(), is_publisher, reason });
        if let Err(rule) = control.shared.config.allows(topic, direction, &self.declared_name) {
            return of(HoldReason::Rule(rule.to_string()));
        }
        if let Err(missing) = self.check_rights(topic, side) {
            return of(HoldReason::PeerRights(missing.to_string()));
        }
        // A subscription stays visible if this host may not publish there: it shows what is missing.
        let own = if is_publisher { control.check_own(topic, Side::Subscriber) } else { Ok(()) };
        of(HoldReason::OwnRights(own.err()?.to_string()))
    }

    /// Keeps a denied endpoint for the status. What its rights do not allow is reported.
    pub(super) fn deny(&mut self, control: &mut ControlState, id: u64, denied: DeniedEndpoint) {
        if let HoldReason::PeerRights(text) = &denied.reason {
            self.refused_endpoints += 1;
            if self.refused_endpoints <= MAX_REPORTED {
                control.report_refusal(text.clone());
            }
        }
        if self.denied.len() < MAX_ENDPOINTS {
            self.denied.insert(id, denied);
        }
    }
}
