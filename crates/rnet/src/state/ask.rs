//! Asking the home of a key, and what is said when it is away.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rnet_core::{Error, Result};

use super::wire;
use crate::msgs::{StateAsk, StateReply};
use crate::{CallOptions, Client, Node};

/// For how long a home that is not there is waited for: one that is found takes a few milliseconds, and a link that
/// changes hands less than this.
const FIND: Duration = Duration::from_secs(1);
/// Between two looks at whether the home is there, and whether to go on.
const LOOK: Duration = Duration::from_millis(50);
/// The same for a home that was looked for in vain before.
const GLANCE: Duration = Duration::from_millis(2);

/// One of the two services of a home.
pub struct Door {
    service: String,
    host: String,
    client: Client<StateAsk, StateReply>,
    /// Since when the home is not there.
    missing: Mutex<Option<Instant>>,
}

impl Door {
    pub fn open(node: &Node, service: String, host: &str) -> Result<Door> {
        let only = Some(host.to_owned());
        let client = Client::open_to(node, &service, (None, None), None, only)?;
        let missing = Mutex::new(Some(Instant::now()));
        Ok(Door { service, host: host.to_owned(), client, missing })
    }

    fn set_missing(&self, missing: bool) -> Duration {
        let mut since = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        match missing {
            true => since.get_or_insert_with(Instant::now).elapsed(),
            false => {
                *since = None;
                Duration::ZERO
            }
        }
    }

    fn away(&self, key: &str, why: &str, may_hold: bool) -> Error {
        let (key, host) = (key.to_owned(), self.host.clone());
        Error::HomeAway { key, host, why: why.to_owned(), may_hold }
    }

    /// Asks once; it is never asked again by itself, so that nothing is written twice. `stop` ends the wait with
    /// `Interrupted`.
    ///
    /// # Errors
    /// `HomeAway`; what the home said.
    pub fn ask(
        &self,
        ask: &StateAsk,
        limit: Duration,
        stop: impl Fn() -> bool,
    ) -> Result<StateReply> {
        let (key, writes) = (&*ask.key, ask.entry.is_some() || ask.action == DELETE);
        let pending = self.client.start(ask, CallOptions::new().timeout(limit))?;
        let begun = Instant::now();
        loop {
            let sent = pending.is_sent();
            let missing = self.set_missing(!sent);
            let look = if missing >= FIND { GLANCE } else { LOOK };
            let error = match pending.next_within(look) {
                Ok(Some(reply)) => {
                    self.set_missing(false);
                    let reply = reply.into_message();
                    return match &reply.refusal {
                        Some(refusal) => Err(wire::refused(&self.service, &self.host, refusal)),
                        None => Ok(reply),
                    };
                }
                Err(Error::Interrupted) if begun.elapsed() >= limit => None,
                Err(Error::Interrupted) if !stop() => {
                    if pending.is_sent() || missing < FIND {
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
                "it has not answered on {} for {:.1} s; it is off, its link is down, or a rule of its robot.toml or of this host's forbids it",
                self.service,
                begun.elapsed().max(missing).as_secs_f64()
            );
            return Err(match error {
                None => self.away(key, &unheard, sent && writes),
                Some(Error::Timeout { .. }) => self.away(key, &unheard, sent && writes),
                Some(Error::ServerLost { .. }) => {
                    self.away(key, "it was lost before it answered", writes)
                }
                Some(error) => error,
            });
        }
    }
}

const DELETE: i32 = crate::msgs::state_ask::Action::Delete as i32;
