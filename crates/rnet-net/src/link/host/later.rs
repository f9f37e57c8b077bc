//! Endpoints of another host for which there was no room here: they are tried again until there is, or they are gone.

use std::collections::BTreeMap;
use std::time::Instant;

use rnet::Error;

use super::super::directory::Described;
use super::super::known::Known;
use super::{Host, MAX_ENDPOINTS};

/// Of one round of tries: where so many have no room, there is none.
const MAX_FAILED: usize = 64;

/// What waits for room, by id.
pub type Later = BTreeMap<u64, Described>;

/// Whether it may be otherwise in a while: a name or a type that is wrong stays so.
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::LimitReached { .. } | Error::OutOfMemory { .. } | Error::Io { .. })
}

impl Host {
    /// An endpoint there was opened. What goes wrong is told once.
    pub(super) fn open(&mut self, known: &mut Known, described: Described) {
        let (id, topic) = (described.id, described.topic.clone());
        if let Err(error) = self.opened(known, described.clone()) {
            if may_pass(&error) && self.later.len() < MAX_ENDPOINTS {
                self.later.insert(id, described);
            }
            known.fault(&error.with_topic(&topic));
        }
        self.asked(known, id);
    }

    /// Tries those again for which there was no room.
    pub(super) fn open_again(&mut self, known: &mut Known) {
        let waiting: Vec<Described> = self.later.values().cloned().collect();
        let mut failed = 0;
        for described in waiting {
            let (id, topic) = (described.id, described.topic.clone());
            let error = self.opened(known, described).err().filter(may_pass);
            if let Some(error) = error {
                // It was told, and is so for as long as it waits.
                known.faults.renew(&error.with_topic(&topic), Instant::now());
                // One for which there is no room says little of others, many say that there is none.
                failed += 1;
                if failed == MAX_FAILED {
                    return;
                }
                continue;
            }
            self.later.remove(&id);
            self.asked(known, id);
        }
    }
}
