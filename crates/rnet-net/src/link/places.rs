//! How far the publishers of other hosts have come, in a file of the domain: what the next holder of the role
//! goes on from.
//!
//! Slots of three words, little-endian: host, endpoint, and one above the number of the next message, or 0 if
//! nobody reads it. A host of 0 is no slot. They are written after the messages that they count. A holder that
//! was killed in between has its successor ask for a few messages again, which subscribers know by their origin.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

use rnet::{Error, Result};

use crate::transport::HostId;

use super::lane::lock;

const FILE: &str = "link-places";
const SLOT_LEN: u64 = 24;
/// More publishers of other hosts have no place, and begin anew with the next holder.
const MAX_SLOTS: u64 = 1 << 16;

pub struct Places {
    file: File,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    /// Those of the holder before and of hosts that are lost, not claimed yet: number and last word.
    left: HashMap<(u64, u64), (u64, u64)>,
    free: Vec<u64>,
    count: u64,
}

/// The place of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its number; `None` if there is no room for it.
    pub number: Option<u64>,
    /// Where it had come to with the holder before.
    pub next_seq: Option<u64>,
}

impl Places {
    /// Reads what the holder before has left.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened.
    pub fn open(domain: &Path) -> Result<Places> {
        let path = domain.join(FILE);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| Error::io("cannot open", &path, &error))?;
        let mut slots = Slots::default();
        let mut bytes = [0; SLOT_LEN as usize];
        while slots.count < MAX_SLOTS
            && file.read_exact_at(&mut bytes, slots.count * SLOT_LEN).is_ok()
        {
            let word =
                |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
            let (host, endpoint, next) = (word(0), word(8), word(16));
            match host {
                0 => slots.free.push(slots.count),
                _ => drop(slots.left.insert((host, endpoint), (slots.count, next))),
            }
            slots.count += 1;
        }
        Ok(Places { file, slots: Mutex::new(slots) })
    }

    /// The place of a publisher, which is its own from now on.
    pub fn claim(&self, host: HostId, endpoint: u64) -> Slot {
        let mut slots = lock(&self.slots);
        if let Some((number, word)) = slots.left.remove(&(host.0, endpoint)) {
            return Slot { number: Some(number), next_seq: word.checked_sub(1) };
        }
        let mut number = slots.free.pop();
        if number.is_none() && slots.count < MAX_SLOTS {
            number = Some(slots.count);
            slots.count += 1;
        }
        if number.is_none() {
            // One whose host may never come back.
            let any = slots.left.keys().next().copied();
            number = any.and_then(|any| slots.left.remove(&any)).map(|(number, _)| number);
        }
        drop(slots);
        if let Some(number) = number {
            self.write(number, &[host.0, endpoint, 0]);
        }
        Slot { number, next_seq: None }
    }

    /// It has come to message `next_seq`; `None` if nobody reads it.
    pub fn set(&self, slot: Option<u64>, next_seq: Option<u64>) {
        if let Some(number) = slot {
            let _ = self.file.write_all_at(&word(next_seq).to_le_bytes(), number * SLOT_LEN + 16);
        }
    }

    /// Its host is lost: the place is kept, for the publisher or for the next holder of the role.
    pub fn leave(&self, slot: Option<u64>, (host, endpoint): (HostId, u64), next_seq: u64) {
        self.set(slot, Some(next_seq));
        if let Some(number) = slot {
            let word = word(Some(next_seq));
            lock(&self.slots).left.insert((host.0, endpoint), (number, word));
        }
    }

    /// It is nobody's any more.
    pub fn release(&self, slot: Option<u64>) {
        if let Some(number) = slot {
            self.write(number, &[0; 3]);
            lock(&self.slots).free.push(number);
        }
    }

    /// A place that cannot be written, as the disk is full, is one that the next holder does not find.
    fn write(&self, number: u64, words: &[u64; 3]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let _ = self.file.write_all_at(&bytes, number * SLOT_LEN);
    }
}

/// The last word of a slot.
fn word(next_seq: Option<u64>) -> u64 {
    next_seq.map_or(0, |next_seq| next_seq.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_holder_goes_on_from_there() {
        let dir = std::env::temp_dir().join(format!("rnet-places-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let host = HostId(7);
        let first = Places::open(&dir).unwrap();
        let [a, b, c] = [1, 2, 3].map(|endpoint| first.claim(host, endpoint));
        assert_eq!((a.number, b.number, a.next_seq), (Some(0), Some(1), None));
        first.set(a.number, Some(41));
        first.set(c.number, Some(0));
        first.release(b.number);
        let next = Places::open(&dir).unwrap();
        assert_eq!(next.claim(host, 1), Slot { number: Some(0), next_seq: Some(41) });
        assert_eq!(next.claim(host, 4), Slot { number: Some(1), next_seq: None });
        assert_eq!(next.claim(HostId(8), 3).next_seq, None, "it is of another host");
        assert_eq!(next.claim(host, 3).next_seq, Some(0));
        next.leave(Some(0), (host, 1), 50);
        assert_eq!(Places::open(&dir).unwrap().claim(host, 1).next_seq, Some(50), "left, too");
        assert_eq!(next.claim(host, 1), Slot { number: Some(0), next_seq: Some(50) });
        // Whatever the file says, there is a place.
        std::fs::write(dir.join(FILE), [0xff; 100]).unwrap();
        assert!(Places::open(&dir).unwrap().claim(host, 1).number.is_some());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
