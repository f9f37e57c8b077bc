//! Follows publishers as an observer.

use std::collections::{BTreeMap, BTreeSet};

use rnet::Durability;
use rnet::inspect::{Observation, Observer, PublisherInfo};

/// Maximum number of messages of a publisher before the next one is polled.
const MAX_MESSAGES_PER_TURN: usize = 64;
/// Minimum length of a large message, whose memory is soon reused.
const LARGE_LEN_BYTES: usize = 4096;

#[derive(Default)]
pub struct Follower {
    observers: BTreeMap<u64, Observer>,
    /// Topics followed before: a publisher that is new on one of them did not exist then.
    topics: BTreeSet<String>,
    /// Publishers of the last update.
    known_publishers: BTreeSet<u64>,
    /// Missed messages of publishers that are gone, and the reported number of all missed messages.
    missed_by_closed: u64,
    missed_reported: u64,
}

/// Result of a round of polling.
#[derive(Debug, Default)]
pub struct PollResult {
    pub has_messages: bool,
    pub has_large: bool,
    /// Messages that were overwritten before they could be read, since the last report.
    pub newly_missed: Option<u64>,
}

impl Follower {
    pub fn is_empty(&self) -> bool {
        self.observers.is_empty()
    }

    /// Follows exactly these publishers.
    pub fn set(&mut self, wanted: &[&PublisherInfo]) {
        let ids: BTreeSet<u64> = wanted.iter().map(|publisher| publisher.id).collect();
        let missed = &mut self.missed_by_closed;
        self.observers.retain(|id, observer| {
            let stays = ids.contains(id);
            if !stays {
                *missed += observer.missed().total();
            }
            stays
        });
        for publisher in wanted {
            if self.observers.contains_key(&publisher.id) {
                continue;
            }
            // A publisher that is new on a followed topic is read from its oldest message.
            let is_new = self.topics.contains(&publisher.topic)
                && !self.known_publishers.contains(&publisher.id);
            let kept = match publisher.qos.durability {
                Durability::TransientLocal { depth } => u64::from(depth),
                _ => 0,
            };
            let from_oldest = is_new || kept > 0;
            // It may have closed in the meantime; if it still exists, the next refresh finds it again.
            let opened = Observer::open(publisher.path.clone(), publisher.id, from_oldest);
            let Ok(mut observer) = opened else { continue };
            if from_oldest {
                observer.expect_from(if is_new { 0 } else { publisher.sent.saturating_sub(kept) });
            }
            self.observers.insert(publisher.id, observer);
        }
        self.topics = wanted.iter().map(|publisher| publisher.topic.clone()).collect();
        self.known_publishers = ids;
    }

    /// Polls each publisher. `take` gets the publisher, the send time in ns since 1970, and the bytes.
    pub fn poll(
        &mut self,
        bytes: &mut Vec<u8>,
        mut take: impl FnMut(u64, u64, &[u8]),
    ) -> PollResult {
        let mut polled = PollResult::default();
        if self.observers.is_empty() {
            return polled;
        }
        let offset_ns = rnet::wall_offset().offset_ns;
        for (id, observer) in &mut self.observers {
            for _ in 0..MAX_MESSAGES_PER_TURN {
                match observer.poll(bytes) {
                    Observation::Message(stamp) => {
                        polled.has_messages = true;
                        polled.has_large |= bytes.len() > LARGE_LEN_BYTES;
                        take(*id, stamp.sent_ns.saturating_add_signed(offset_ns), bytes);
                    }
                    Observation::Missed(_) => {}
                    _ => break,
                }
            }
        }
        let missed = self.observers.values().map(|observer| observer.missed().total());
        let missed = self.missed_by_closed + missed.sum::<u64>();
        polled.newly_missed = Some(missed - self.missed_reported).filter(|count| *count > 0);
        self.missed_reported = missed;
        polled
    }
}
