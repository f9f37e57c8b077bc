//! How far the publishers of other hosts have come, in a file of the domain: what the next holder of the role
//! goes on from.
//!
//! Slots of three words, little-endian: host, endpoint, and one above the number of the next message, or 0 if
//! nobody reads it. A host of 0 is no slot. The last word is written with one store as soon as subscribers can see what
//! has come, and after each gap: a holder that is killed leaves what it had come to.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rnet::Result;
use rnet::role::{Checkpoint, WordFile};

use crate::transport::HostId;

const FILE: &str = "link-places";
const WORDS_PER_SLOT: usize = 3;
/// More publishers of other hosts have no place, and begin anew with the next holder.
const MAX_SLOTS: usize = 1 << 16;

pub struct PositionTable {
    words: Arc<WordFile>,
    slots: Mutex<PositionSlots>,
}

#[derive(Default)]
struct PositionSlots {
    /// Those of the holder before and of hosts that are lost, not claimed yet: number and last word.
    unclaimed: HashMap<(u64, u64), (usize, u64)>,
    free: Vec<usize>,
    count: usize,
}

/// The slot of a publisher.
#[derive(Clone)]
pub struct PositionSlot {
    words: Arc<WordFile>,
    number: usize,
}

impl PositionSlot {
    /// Where it says to which message the publisher has come; to none if nobody reads it.
    pub fn mark(&self) -> Checkpoint {
        Checkpoint::new(self.words.clone(), self.number * WORDS_PER_SLOT + 2)
    }

    fn write(&self, words: [u64; WORDS_PER_SLOT]) {
        for (at, word) in words.into_iter().enumerate() {
            self.words.set(self.number * WORDS_PER_SLOT + at, word);
        }
    }
}

/// What [`PositionTable::claim`] has for a publisher.
pub struct ClaimedSlot {
    /// Its slot; `None` if there is no room for it.
    pub slot: Option<PositionSlot>,
    /// Where it had come to with the holder before.
    pub next_seq: Option<u64>,
}

impl PositionTable {
    /// Reads what the holder before has left.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened.
    pub fn open(domain: &Path) -> Result<PositionTable> {
        let (words, before) = WordFile::open(&domain.join(FILE), MAX_SLOTS * WORDS_PER_SLOT)?;
        let mut slots = PositionSlots::default();
        let (used, _) = before.as_chunks::<WORDS_PER_SLOT>();
        slots.count = used.iter().rposition(|slot| slot[0] != 0).map_or(0, |last| last + 1);
        for (number, [host, endpoint, next]) in used[..slots.count].iter().enumerate() {
            match host {
                0 => slots.free.push(number),
                _ => drop(slots.unclaimed.insert((*host, *endpoint), (number, *next))),
            }
        }
        Ok(PositionTable { words: Arc::new(words), slots: Mutex::new(slots) })
    }

    fn slots(&self) -> MutexGuard<'_, PositionSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a publisher, which is its own from now on.
    pub fn claim(&self, host: HostId, endpoint: u64) -> ClaimedSlot {
        let mut slots = self.slots();
        let slot = |number| PositionSlot { words: self.words.clone(), number };
        if let Some((number, word)) = slots.unclaimed.remove(&(host.0, endpoint)) {
            return ClaimedSlot {
                slot: self.allocate(slot(number)),
                next_seq: word.checked_sub(1),
            };
        }
        let mut number = slots.free.pop();
        if number.is_none() && slots.count < MAX_SLOTS {
            number = Some(slots.count);
            slots.count += 1;
        }
        if number.is_none() {
            // One whose host may never come back.
            let any = slots.unclaimed.keys().next().copied();
            number = any.and_then(|any| slots.unclaimed.remove(&any)).map(|(number, _)| number);
        }
        drop(slots);
        let slot = number.and_then(|number| self.allocate(slot(number)));
        if let Some(slot) = &slot {
            slot.write([host.0, endpoint, 0]);
        }
        ClaimedSlot { slot, next_seq: None }
    }

    /// The slot, if there is memory for it: a place that cannot be written is one that the next holder does not
    /// find.
    fn allocate(&self, slot: PositionSlot) -> Option<PositionSlot> {
        if self.words.back(slot.number * WORDS_PER_SLOT, WORDS_PER_SLOT) {
            return Some(slot);
        }
        self.slots().free.push(slot.number);
        None
    }

    /// Its host is lost: the place is kept, for the publisher or for the next holder of the role.
    pub fn retain(
        &self,
        slot: Option<PositionSlot>,
        (host, endpoint): (HostId, u64),
        next_seq: u64,
    ) {
        if let Some(slot) = slot {
            slot.mark().set(Some(next_seq));
            let word = next_seq.saturating_add(1);
            self.slots().unclaimed.insert((host.0, endpoint), (slot.number, word));
        }
    }

    /// It is nobody's any more.
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
        let ClaimedSlot { slot, next_seq } = positions.claim(HostId(host), endpoint);
        (slot.map(|slot| slot.number), next_seq)
    }

    #[test]
    fn the_next_holder_goes_on_from_there() {
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
        assert_eq!(claimed(&next, 8, 3), (Some(3), None), "it is of another host");
        assert_eq!(claimed(&next, 7, 3), (Some(2), Some(0)));
        next.retain(Some(a), (host, 1), 50);
        let after = PositionTable::open(&dir).unwrap();
        assert_eq!(claimed(&after, 7, 1), (Some(0), Some(50)), "left, too");
        assert_eq!(claimed(&next, 7, 1), (Some(0), Some(50)));
        // Whatever the file says, there is a place.
        std::fs::write(dir.join(FILE), [0xff; 100]).unwrap();
        assert!(PositionTable::open(&dir).unwrap().claim(host, 1).slot.is_some());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
