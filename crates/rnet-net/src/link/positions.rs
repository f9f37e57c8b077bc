//! The positions of other hosts' publishers, in a file of the domain: the next holder of the role resumes
//! from them.
//!
//! A slot has four little-endian words: host, endpoint, one above the number of the next message, or 0 if the
//! publisher has no reader, and 1 if its subscribers had its loss reported, or 0. A slot with host 0
//! is unused. The third word is written with one store as soon as subscribers can see the messages, and after
//! each gap, so that a killed holder leaves its position.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rnet::Result;
use rnet::bridge::{Checkpoint, WordFile};

use crate::transport::HostId;

const FILE: &str = "link-positions";
const WORDS_PER_SLOT: usize = 4;
/// Publishers beyond this limit have no slot and start over with the next holder.
const MAX_SLOTS: usize = 1 << 16;

pub struct PositionTable {
    words: Arc<WordFile>,
    slots: Mutex<PositionSlots>,
}

#[derive(Default)]
struct PositionSlots {
    /// Unclaimed slots of the previous holder and of lost hosts.
    unclaimed: HashMap<(u64, u64), UnclaimedSlot>,
    free: Vec<usize>,
    count: usize,
}

struct UnclaimedSlot {
    number: usize,
    /// The third word.
    next: u64,
    is_lost: bool,
}

/// The slot of a publisher.
#[derive(Clone)]
pub struct PositionSlot {
    words: Arc<WordFile>,
    number: usize,
    is_lost: bool,
}

impl PositionSlot {
    /// The checkpoint in the slot; it holds no position if the publisher has no reader.
    pub fn mark(&self) -> Checkpoint {
        Checkpoint::new(self.words.clone(), self.number * WORDS_PER_SLOT + 2)
    }

    /// Stores whether its loss, with its host, was reported to its subscribers.
    pub fn set_lost(&mut self, is_lost: bool) {
        if self.is_lost != is_lost {
            self.is_lost = is_lost;
            self.words.set(self.number * WORDS_PER_SLOT + 3, u64::from(is_lost));
        }
    }

    fn write(&self, words: [u64; WORDS_PER_SLOT]) {
        for (at, word) in words.into_iter().enumerate() {
            self.words.set(self.number * WORDS_PER_SLOT + at, word);
        }
    }
}

/// The result of [`PositionTable::claim`] for a publisher.
pub struct ClaimedSlot {
    /// Its slot; `None` if the table is full.
    pub slot: Option<PositionSlot>,
    /// Its position with the previous holder.
    pub next_seq: Option<u64>,
    /// Whether it was lost then.
    pub was_lost: bool,
}

impl PositionTable {
    /// Reads what the previous holder has left.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened.
    pub fn open(domain: &Path) -> Result<PositionTable> {
        let (words, before) = WordFile::open(&domain.join(FILE), MAX_SLOTS * WORDS_PER_SLOT)?;
        let mut slots = PositionSlots::default();
        let (used, _) = before.as_chunks::<WORDS_PER_SLOT>();
        slots.count = used.iter().rposition(|slot| slot[0] != 0).map_or(0, |last| last + 1);
        for (number, [host, endpoint, next, lost]) in used[..slots.count].iter().enumerate() {
            let slot = UnclaimedSlot { number, next: *next, is_lost: *lost != 0 };
            match host {
                0 => slots.free.push(number),
                _ => drop(slots.unclaimed.insert((*host, *endpoint), slot)),
            }
        }
        Ok(PositionTable { words: Arc::new(words), slots: Mutex::new(slots) })
    }

    fn slots(&self) -> MutexGuard<'_, PositionSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims the slot of a publisher for it.
    pub fn claim(&self, host: HostId, endpoint: u64) -> ClaimedSlot {
        let mut slots = self.slots();
        let slot = |number, is_lost| PositionSlot { words: self.words.clone(), number, is_lost };
        if let Some(before) = slots.unclaimed.remove(&(host.0, endpoint)) {
            drop(slots);
            return ClaimedSlot {
                slot: self.allocate(slot(before.number, before.is_lost)),
                next_seq: before.next.checked_sub(1),
                was_lost: before.is_lost,
            };
        }
        let mut number = slots.free.pop();
        if number.is_none() && slots.count < MAX_SLOTS {
            number = Some(slots.count);
            slots.count += 1;
        }
        if number.is_none() {
            // Reuses a slot whose host may never return.
            let any = slots.unclaimed.keys().next().copied();
            number = any.and_then(|any| slots.unclaimed.remove(&any)).map(|slot| slot.number);
        }
        drop(slots);
        let slot = number.and_then(|number| self.allocate(slot(number, false)));
        if let Some(slot) = &slot {
            slot.write([host.0, endpoint, 0, 0]);
        }
        ClaimedSlot { slot, next_seq: None, was_lost: false }
    }

    /// The slot, if its memory can be allocated: the next holder does not find a slot that cannot be
    /// written.
    fn allocate(&self, slot: PositionSlot) -> Option<PositionSlot> {
        if self.words.back(slot.number * WORDS_PER_SLOT, WORDS_PER_SLOT) {
            return Some(slot);
        }
        self.slots().free.push(slot.number);
        None
    }

    /// Keeps the slot of a lost host, for the publisher or for the next holder of the role; `is_lost` if the
    /// publisher is lost with the host.
    pub fn retain(
        &self,
        slot: Option<PositionSlot>,
        (host, endpoint): (HostId, u64),
        next_seq: u64,
        is_lost: bool,
    ) {
        if let Some(mut slot) = slot {
            slot.mark().set(Some(next_seq));
            slot.set_lost(slot.is_lost || is_lost);
            let PositionSlot { number, is_lost, .. } = slot;
            let slot = UnclaimedSlot { number, next: next_seq.saturating_add(1), is_lost };
            self.slots().unclaimed.insert((host.0, endpoint), slot);
        }
    }

    /// Frees the slot.
    pub fn release(&self, slot: Option<PositionSlot>) {
        if let Some(slot) = slot {
            slot.write([0; WORDS_PER_SLOT]);
            self.slots().free.push(slot.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(
        positions: &PositionTable,
        host: u64,
        endpoint: u64,
    ) -> (Option<usize>, Option<u64>) {
        let ClaimedSlot { slot, next_seq, .. } = positions.claim(HostId(host), endpoint);
        (slot.map(|slot| slot.number), next_seq)
    }

    #[test]
    fn next_holder_resumes_from_stored_positions() {
        let dir = std::env::temp_dir().join(format!("rnet-places-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let host = HostId(7);
        let first = PositionTable::open(&dir).unwrap();
        let [a, b, c] = [1, 2, 3].map(|endpoint| first.claim(host, endpoint).slot.unwrap());
        assert_eq!([&a, &b, &c].map(|slot| slot.number), [0, 1, 2]);
        a.mark().set(Some(41));
        c.mark().set(Some(0));
        first.release(Some(b));
        let next = PositionTable::open(&dir).unwrap();
        assert_eq!(claimed(&next, 7, 1), (Some(0), Some(41)));
        assert_eq!(claimed(&next, 7, 4), (Some(1), None));
        assert_eq!(claimed(&next, 8, 3), (Some(3), None), "the slot is of another host");
        assert_eq!(claimed(&next, 7, 3), (Some(2), Some(0)));
        next.retain(Some(a), (host, 1), 50, true);
        let after = PositionTable::open(&dir).unwrap();
        let again = after.claim(host, 1);
        assert_eq!((again.next_seq, again.was_lost), (Some(50), true), "left, too");
        again.slot.unwrap().set_lost(false);
        assert!(!PositionTable::open(&dir).unwrap().claim(host, 1).was_lost);
        assert_eq!(claimed(&next, 7, 1), (Some(0), Some(50)));
        // A slot is available whatever the file contains.
        std::fs::write(dir.join(FILE), [0xff; 100]).unwrap();
        assert!(PositionTable::open(&dir).unwrap().claim(host, 1).slot.is_some());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
