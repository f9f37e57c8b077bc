//! Endpoints of another host for which there was no room here: they are tried again until there is, or they are gone.

use std::collections::BTreeMap;
use std::time::Instant;

use rnet::Error;

use super::super::directory::Described;
use super::super::known::Known;
use super::{Host, MAX_ENDPOINTS};

/// Of one round of tries: where so many have no room, there is none.
const MAX_FAILED: usize = 64;

/// What waits for room.
#[derive(Default)]
pub struct Later {
    waiting: BTreeMap<u64, Described>,
    /// The first of the next round.
    from: u64,
}

impl Later {
    fn add(&mut self, described: Described) {
        if self.waiting.len() < MAX_ENDPOINTS {
            self.waiting.insert(described.id, described);
        }
    }

    pub fn remove(&mut self, id: u64) {
        self.waiting.remove(&id);
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The round ends with this one.
    fn stopped_at(&mut self, id: u64) {
        self.from = id.saturating_add(1);
    }

    /// All of them, those first that were not reached in the round before.
    fn in_turn(&self) -> Vec<Described> {
        let (before, from) = (self.waiting.range(..self.from), self.waiting.range(self.from..));
        from.chain(before).map(|(_, described)| described.clone()).collect()
    }
}

/// Whether it may be otherwise in a while: a name or a type that is wrong stays so.
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::LimitReached { .. } | Error::OutOfMemory { .. } | Error::Io { .. })
}

impl Host {
    /// An endpoint there was opened. What goes wrong is told once.
    pub(super) fn open(&mut self, known: &mut Known, described: Described) {
        let (id, topic) = (described.id, described.topic.clone());
        if let Err(error) = self.opened(known, described.clone()) {
            if may_pass(&error) {
                self.later.add(described);
            }
            known.fault(&error.with_topic(&topic));
        } else {
            // An older description of it would undo this one.
            self.later.remove(id);
        }
        self.asked(known, id);
    }

    /// Tries those again for which there was no room.
    pub(super) fn open_again(&mut self, known: &mut Known) {
        let mut failed = 0;
        for described in self.later.in_turn() {
            let (id, topic) = (described.id, described.topic.clone());
            let error = self.opened(known, described).err().filter(may_pass);
            if let Some(error) = error {
                // It was told, and is so for as long as it waits.
                known.faults.renew(&error.with_topic(&topic), Instant::now());
                // One for which there is no room says little of others, many say that there is none.
                failed += 1;
                if failed == MAX_FAILED {
                    // The others come first in the next round: they may have what these lack, and are told for as long.
                    self.later.stopped_at(id);
                    return;
                }
                continue;
            }
            self.later.remove(id);
            self.asked(known, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::directory::Qos;

    #[test]
    fn those_that_a_round_did_not_reach_are_the_first_of_the_next() {
        let mut later = Later::default();
        for id in [2, 4, 6, 8] {
            later.add(Described {
                id,
                node: "/camera".to_owned(),
                topic: "/image".to_owned(),
                type_desc: serde_json::Value::Null,
                qos: Qos::Subscriber(rnet::SubscriberQos::default()),
                will: false,
                ended: false,
                died: false,
            });
        }
        let in_turn = |later: &Later| later.in_turn().iter().map(|of| of.id).collect::<Vec<_>>();
        assert_eq!(in_turn(&later), [2, 4, 6, 8]);
        later.stopped_at(4);
        assert_eq!(in_turn(&later), [6, 8, 2, 4]);
        later.remove(6);
        assert_eq!(in_turn(&later), [8, 2, 4]);
        later.stopped_at(8);
        assert_eq!(in_turn(&later), [2, 4, 8]);
    }
}
