//! Requests to the home of a key, and the error when it is away.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rnet_core::{Error, Result};
use rnet_node::sync::lock;

use super::wire;
use crate::msgs::{StateAsk, StateReply};
use rnet_call::{CallOptions, Client, ClientBuilder, ServerFilter};
use rnet_node::NodeHandle;

/// How long a request waits for a missing home: discovery takes a few milliseconds, and a handover of the
/// link less than this.
const FIND_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval between two checks whether the home exists and whether to continue.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The same for a home that was not found before.
const MISSING_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// One of the two services of a home.
pub struct StateEndpoint {
    host: String,
    /// One for the name that this host shows for the other host. If that may be a numbered name, also one for
    /// the host's own name, which its services use.
    clients: Vec<Client<StateAsk, StateReply>>,
    /// Since when the home is missing.
    missing: Mutex<Option<Instant>>,
}

impl StateEndpoint {
    /// `service` builds the name of a host's service.
    pub fn open(
        node: &NodeHandle,
        service: fn(&str) -> String,
        host: &str,
    ) -> Result<StateEndpoint> {
        let open =
            |name: &str, servers| ClientBuilder::new(node, &service(name)).servers(servers).open();
        let mut clients = vec![open(host, ServerFilter::HostAndLocal(host.to_owned()))?];
        if let Some(said) = unnumbered_host(host) {
            clients.push(open(said, ServerFilter::Host(host.to_owned()))?);
        }
        let missing = Mutex::new(Some(Instant::now()));
        Ok(StateEndpoint { host: host.to_owned(), clients, missing })
    }

    /// The client whose server exists, otherwise the first.
    fn client(&self) -> &Client<StateAsk, StateReply> {
        self.clients.iter().find(|client| client.has_server()).unwrap_or(&self.clients[0])
    }

    fn set_missing(&self, missing: bool) -> Duration {
        let mut since = lock(&self.missing);
        match missing {
            true => since.get_or_insert_with(Instant::now).elapsed(),
            false => {
                *since = None;
                Duration::ZERO
            }
        }
    }

    fn home_away(&self, key: &str, why: &str, may_hold: bool) -> Error {
        let (key, host) = (key.to_owned(), self.host.clone());
        Error::HomeAway { key, host, why: why.to_owned(), may_hold }
    }

    /// Sends one request; it is never repeated automatically, so that nothing is written twice. `stop` ends
    /// the wait with `Interrupted`.
    ///
    /// # Errors
    /// `HomeAway`; the error that the home returned.
    pub fn request(
        &self,
        ask: &StateAsk,
        limit: Duration,
        stop: impl Fn() -> bool,
    ) -> Result<StateReply> {
        let (key, writes) = (&*ask.key, ask.entry.is_some() || ask.action == DELETE);
        let begun = Instant::now();
        let options = || CallOptions::new().timeout(limit.saturating_sub(begun.elapsed()));
        let mut client = self.client();
        let mut pending = client.start(ask, options())?;
        loop {
            let sent = pending.is_sent();
            if !sent && !std::ptr::eq(self.client(), client) {
                // A request that was sent meanwhile is not repeated with the other client.
                if pending.abandon() {
                    return Err(self.home_away(key, "it was lost before it answered", writes));
                }
                client = self.client();
                pending = client.start(ask, options())?;
                continue;
            }
            let missing = self.set_missing(!sent);
            let look =
                if missing >= FIND_TIMEOUT { MISSING_CHECK_INTERVAL } else { CHECK_INTERVAL };
            let error = match pending.next_within(look) {
                Ok(Some(reply)) => {
                    self.set_missing(false);
                    let reply = reply.into_message();
                    return match &reply.refusal {
                        Some(refusal) => {
                            Err(wire::decode_error(client.name(), &self.host, refusal))
                        }
                        None => Ok(reply),
                    };
                }
                Err(Error::Interrupted) if begun.elapsed() >= limit => None,
                Err(Error::Interrupted) if !stop() => {
                    if pending.is_sent() || missing < FIND_TIMEOUT {
                        continue;
                    }
                    None
                }
                Ok(None) => None,
                Err(error) => Some(error),
            };
            // From here on it is not sent any more.
            let sent = pending.abandon();
            let unheard = format!(
                "no answer on {} for {:.1} s; the host is off, its link is down, or a rule in its robot.toml or this host's forbids it",
                client.name(),
                begun.elapsed().max(missing).as_secs_f64()
            );
            return Err(match error {
                None => self.home_away(key, &unheard, sent && writes),
                Some(Error::Timeout { .. }) => self.home_away(key, &unheard, sent && writes),
                Some(Error::ServerLost { .. }) => {
                    self.home_away(key, "it was lost before it answered", writes)
                }
                Some(error) => error,
            });
        }
    }
}

/// The host's own name, for a host shown under a numbered name because another host has the same name.
fn unnumbered_host(host: &str) -> Option<&str> {
    let (said, number) = host.rsplit_once('-')?;
    number.parse::<u32>().ok().filter(|number| *number > 1 && !said.is_empty()).map(|_| said)
}

const DELETE: i32 = crate::msgs::state_ask::Action::Delete as i32;
