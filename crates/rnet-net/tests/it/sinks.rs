//! Shared by the tests of networks: a sink that records its events.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rnet::{DomainId, Lane};
use rnet_net::{HostId, Presence, Sink};

/// Generous: a loaded machine may take seconds for anything.
pub const LIMIT: Duration = Duration::from_secs(30);

#[derive(Default)]
pub struct RecordedEvents {
    pub frames: Vec<(Lane, HostId, Vec<u8>)>,
    /// Presences, with whether they came or went, and when.
    pub presences: Vec<(Presence, bool, Instant)>,
    /// Domains and versions of the incompatible links that are present.
    pub incompatible: Vec<(String, u32)>,
}

impl RecordedEvents {
    /// The frames of one lane from one host, as numbers.
    pub fn numbers(&self, lane: Lane, from: HostId) -> Vec<u64> {
        let ours = self.frames.iter().filter(|(of, host, _)| (*of, *host) == (lane, from));
        ours.map(|(.., frame)| u64::from_le_bytes(frame[..8].try_into().unwrap())).collect()
    }

    /// Whether this presence was last reported as up; `None` if it was never reported.
    pub fn is_up(&self, presence: Presence) -> Option<bool> {
        self.presences.iter().rev().find(|(of, ..)| *of == presence).map(|(_, up, _)| *up)
    }

    /// When this presence was last reported as up or down.
    pub fn told_at(&self, presence: Presence, up: bool) -> Option<Instant> {
        self.presences
            .iter()
            .rev()
            .find(|seen| (seen.0, seen.1) == (presence, up))
            .map(|seen| seen.2)
    }
}

/// Records the events of a network, for a test that waits for them.
#[derive(Default)]
pub struct Recorder {
    events: Mutex<RecordedEvents>,
    changed: Condvar,
}

impl Recorder {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Waits until `found` returns a value.
    ///
    /// # Panics
    /// If it does not within [`LIMIT`].
    pub fn wait<T>(&self, what: &str, found: impl Fn(&RecordedEvents) -> Option<T>) -> T {
        let end = Instant::now() + LIMIT;
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = found(&events) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "after {LIMIT:?} not {what}: {:?}, {} frames",
                events.presences,
                events.frames.len()
            );
            events =
                self.changed.wait_timeout(events, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until a presence is up (`up`) or down.
    pub fn wait_presence(&self, presence: Presence, up: bool) -> Instant {
        self.wait(&format!("{presence:?} up={up}"), |events| {
            events
                .is_up(presence)
                .filter(|&is| is == up)
                .and_then(|up| events.told_at(presence, up))
        })
    }

    /// Waits until a frame of this number has come, and returns all numbers from that host in order of
    /// arrival.
    pub fn wait_number(&self, lane: Lane, from: HostId, number: u64) -> Vec<u64> {
        self.wait(&format!("{lane:?} frame {number} from {from}"), |events| {
            Some(events.numbers(lane, from)).filter(|numbers| numbers.contains(&number))
        })
    }
}

impl Sink for Recorder {
    fn on_frame(&self, lane: Lane, from: HostId, frame: &[u8]) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).frames.push((
            lane,
            from,
            frame.to_vec(),
        ));
        self.changed.notify_all();
    }

    fn on_up(&self, presence: Presence) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.presences.push((presence, true, Instant::now()));
        self.changed.notify_all();
    }

    fn on_incompatible(&self, domain: &DomainId, version: u32, is_there: bool) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = (domain.to_string(), version);
        match is_there {
            true => events.incompatible.push(kind),
            false => events.incompatible.retain(|other| *other != kind),
        }
        self.changed.notify_all();
    }

    fn on_down(&self, presence: Presence) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.presences.push((presence, false, Instant::now()));
        self.changed.notify_all();
    }
}

/// A frame of 64 bytes that begins with its number.
pub fn numbered(number: u64) -> Vec<u8> {
    let mut frame = vec![0; 64];
    frame[..8].copy_from_slice(&number.to_le_bytes());
    frame
}

pub fn presence(host: u64, term: u64) -> Presence {
    Presence { host: HostId(host), term }
}
