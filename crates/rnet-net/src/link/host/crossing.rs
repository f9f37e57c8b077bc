//! Which endpoints of this host another host may see.

use rnet::Endpoint;

use super::super::control_state::{ControlState, direction};
use super::super::rights::{MissingRight, Side};
use super::Host;

/// Why an endpoint of this host is not visible to another host.
pub enum Hidden {
    /// Its topic never leaves its host.
    LocalOnly,
    /// A rule of the configuration, as text.
    Rule(String),
    /// The rights of one of the hosts.
    Rights(MissingRight),
}

impl Host {
    /// Checks that an endpoint of this host may be visible to the other one: that its messages may go there,
    /// or that it may receive messages from there.
    ///
    /// # Errors
    /// Why not.
    pub fn check_crossing(
        &self,
        control: &ControlState,
        endpoint: &Endpoint,
    ) -> Result<(), Hidden> {
        let (topic, side) = (&endpoint.topic, Side::of(endpoint));
        let config = &control.shared.config;
        let allowed = config.allows(topic, direction(endpoint), self.declared_name());
        allowed.map_err(|rule| match rule.place {
            Some(_) => Hidden::Rule(rule.to_string()),
            None => Hidden::LocalOnly,
        })?;
        control.check_own(topic, side).map_err(Hidden::Rights)?;
        match side {
            Side::Publisher => self.check_rights(topic, Side::Subscriber).map_err(Hidden::Rights),
            // A host that may not publish there learns from the subscription what it lacks.
            Side::Subscriber => Ok(()),
        }
    }

    /// As [`Host::check_crossing`].
    pub fn may_see(&self, control: &ControlState, endpoint: &Endpoint) -> bool {
        self.check_crossing(control, endpoint).is_ok()
    }
}
