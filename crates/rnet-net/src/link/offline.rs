//! Readers of reliable publishers whose other host is away: what they read waits for it to come back.
//!
//! A lane that loses the other host hands its reliable forwarders over. One thread then reads what their publishers
//! send, so that none of them waits for a host that is away, and keeps as much of it as the configuration allows. When
//! the host is back and wants the publisher, it gets what was kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rnet::{Error, Subscriber, WaitSet, WaitSetHandle, Waitable};

use super::Shared;
use super::event::{Event, OfflineKey};
use super::lock::lock;
use super::resend_buffer::ResendBuffer;

/// What is kept for all hosts and topics together, in bytes.
pub const MAX_OFFLINE_LEN_BYTES: u64 = 256 << 20;
/// By how much the longest buffer is cut, before another may be the longest.
const TRIM_LEN_BYTES: u64 = 1 << 20;
/// For how long it is kept for a host that does not come back.
const KEPT: Duration = Duration::from_secs(600);
/// Messages that are read of one publisher before the next one has its turn.
const TURN: usize = 64;
/// How often it is looked for hosts that do not come back.
const PERIOD: Duration = Duration::from_secs(10);

/// A reader whose other host is away.
pub struct OfflineReader {
    pub subscriber: Subscriber<[u8]>,
    pub buffer: ResendBuffer,
    since: Instant,
}

impl OfflineReader {
    pub fn new(subscriber: Subscriber<[u8]>, mut buffer: ResendBuffer) -> OfflineReader {
        buffer.copy_samples();
        OfflineReader { subscriber, buffer, since: Instant::now() }
    }

    /// Reads some of what there is; whether there may be more.
    fn read(&mut self) -> bool {
        for _ in 0..TURN {
            match self.subscriber.try_recv() {
                Ok(Some(sample)) => {
                    let meta = sample.has_meta().then(|| sample.meta());
                    // It is the last message of a publisher that is gone.
                    if meta.is_some_and(|meta| meta.last_will) {
                        continue;
                    }
                    let of = (sample.seq(), sample.sent_ns());
                    self.buffer.add_sent(of, meta.as_ref(), &sample, u64::MAX);
                }
                Ok(None) => return false,
                // It reads on, or its publisher is gone, which the control thread hears as well.
                Err(Error::Detached { .. } | Error::PeerLost { .. }) => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// What has become of the reader that a host wants again.
pub enum Found {
    /// There is none.
    Nothing,
    /// It is handed over: [`Event::Offline`] says when.
    Later,
    Reader(Box<OfflineReader>),
}

/// That a forwarder has the reader of a publisher. Dropped with it, or once it is handed over.
pub struct Claim {
    shared: Arc<Shared>,
    key: OfflineKey,
    number: u64,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.offline.0);
        if state.claims.get(&self.key) != Some(&self.number) {
            return;
        }
        state.claims.remove(&self.key);
        match state.arriving.contains_key(&self.key) || state.kept.contains(&self.key) {
            // It was handed over.
            true => state.wake(),
            false => drop(state.answer(&self.shared, self.key, None)),
        }
    }
}

#[derive(Default)]
struct State {
    /// The readers that forwarders have, by the number of the last one.
    claims: BTreeMap<OfflineKey, u64>,
    next_claim: u64,
    /// Those that come to the thread.
    arriving: BTreeMap<OfflineKey, Box<OfflineReader>>,
    /// Those that the thread has.
    kept: BTreeSet<OfflineKey>,
    /// Those that are wanted again, and those of them that can be had.
    wanted: BTreeSet<OfflineKey>,
    found: BTreeMap<OfflineKey, Box<OfflineReader>>,
    /// Those of the thread's that nobody will want any more.
    dropped: BTreeSet<OfflineKey>,
    thread: Option<WaitSetHandle>,
    closed: bool,
}

impl State {
    /// Gives a reader to whoever wants it, or says that there is none; returns it if nobody does.
    fn answer(
        &mut self,
        shared: &Shared,
        key: OfflineKey,
        reader: Option<Box<OfflineReader>>,
    ) -> Option<Box<OfflineReader>> {
        if !self.wanted.remove(&key) {
            return reader;
        }
        self.found.extend(reader.map(|reader| (key, reader)));
        let _ = shared.events.send(Event::Offline(key));
        None
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.interrupt();
        }
    }
}

/// The readers whose other hosts are away.
#[derive(Default)]
pub struct OfflineReaders(Mutex<State>);

impl OfflineReaders {
    /// Says that a forwarder has this reader.
    pub fn claim(shared: &Arc<Shared>, key: OfflineKey) -> Claim {
        let mut state = lock(&shared.offline.0);
        state.next_claim += 1;
        let number = state.next_claim;
        state.claims.insert(key, number);
        Claim { shared: shared.clone(), key, number }
    }

    /// A forwarder hands its reader over.
    pub fn hand_over((reader, claim): (OfflineReader, Claim)) {
        let shared = claim.shared.clone();
        Self::add(&shared, claim.key, Box::new(reader));
    }

    /// Has the thread go on with a reader, or whoever wants it.
    pub fn add(shared: &Arc<Shared>, key: OfflineKey, reader: Box<OfflineReader>) {
        let mut state = lock(&shared.offline.0);
        let Some(reader) = state.answer(shared, key, Some(reader)).filter(|_| !state.closed) else {
            return;
        };
        state.dropped.remove(&key);
        let before = state.arriving.insert(key, reader);
        match &state.thread {
            Some(thread) => thread.interrupt(),
            None => {
                let set = WaitSet::new(&shared.node);
                state.thread = Some(set.handle());
                let of = shared.clone();
                shared.spawn("rnet-link-away", move || run(&of, set));
            }
        }
        drop(state);
        drop(before);
    }

    /// The reader that a host wants again.
    pub fn take(&self, key: OfflineKey) -> Found {
        let mut state = lock(&self.0);
        // One that an earlier wish found is had before that is known.
        let state = &mut *state;
        if let Some(reader) = state.found.remove(&key).or_else(|| state.arriving.remove(&key)) {
            return Found::Reader(reader);
        }
        if !state.kept.contains(&key) && !state.claims.contains_key(&key) {
            return Found::Nothing;
        }
        state.wanted.insert(key);
        state.wake();
        Found::Later
    }

    /// The reader of which [`Event::Offline`] says that it can be had, if there is one.
    pub fn found(&self, key: OfflineKey) -> Option<Box<OfflineReader>> {
        lock(&self.0).found.remove(&key)
    }

    /// Nobody will want these any more.
    pub fn drop_all(&self, is_over: impl Fn(&OfflineKey) -> bool) {
        let mut state = lock(&self.0);
        let over: Vec<OfflineKey> = state.arriving.keys().copied().filter(&is_over).collect();
        let readers: Vec<_> = over.iter().filter_map(|key| state.arriving.remove(key)).collect();
        let kept: Vec<OfflineKey> = state.kept.iter().copied().filter(&is_over).collect();
        state.dropped.extend(kept);
        state.wake();
        drop(state);
        drop(readers);
    }

    /// The link ends.
    pub fn close(&self) {
        let mut state = lock(&self.0);
        state.closed = true;
        state.wake();
        let readers = (std::mem::take(&mut state.arriving), std::mem::take(&mut state.found));
        drop(state);
        drop(readers);
    }
}

fn run(shared: &Arc<Shared>, mut set: WaitSet) {
    let mut kept: BTreeMap<OfflineKey, Box<OfflineReader>> = BTreeMap::new();
    loop {
        let mut dropped: Vec<Option<Box<OfflineReader>>> = Vec::new();
        {
            let mut state = lock(&shared.offline.0);
            for key in std::mem::take(&mut state.dropped) {
                dropped.push(kept.remove(&key));
            }
            let over = kept.iter().filter(|(_, reader)| reader.since.elapsed() >= KEPT);
            for key in over.map(|(key, _)| *key).collect::<Vec<_>>() {
                dropped.push(kept.remove(&key));
            }
            for (key, reader) in std::mem::take(&mut state.arriving) {
                dropped.push(kept.insert(key, reader));
            }
            for key in state.wanted.clone() {
                // One that a forwarder has is not here yet, or an older one is.
                if !state.claims.contains_key(&key) {
                    let reader = kept.remove(&key);
                    state.answer(shared, key, reader);
                }
            }
            if state.closed || kept.is_empty() {
                (state.thread, state.kept) = (None, BTreeSet::new());
                return;
            }
            state.kept = kept.keys().copied().collect();
        }
        drop(dropped);
        let more = read_all(&mut kept);
        if !more {
            let mut named: Vec<&mut dyn Waitable> = kept
                .values_mut()
                .map(|reader| &mut reader.subscriber as &mut dyn Waitable)
                .collect();
            // Interrupted is what wakes it.
            let _ = set.wait(&mut named, Some(PERIOD));
        }
    }
}

/// Reads some of each; whether there may be more.
fn read_all(kept: &mut BTreeMap<OfflineKey, Box<OfflineReader>>) -> bool {
    let more = kept.values_mut().fold(false, |more, reader| reader.read() | more);
    let mut sum: u64 = kept.values().map(|reader| reader.buffer.len_bytes()).sum();
    // The longest buffers give way, so that topics of small messages keep theirs.
    while sum > MAX_OFFLINE_LEN_BYTES {
        let longest = kept.values_mut().max_by_key(|reader| reader.buffer.len_bytes());
        let Some(longest) = longest else { break };
        let before = longest.buffer.len_bytes();
        longest.buffer.trim(before.saturating_sub(TRIM_LEN_BYTES.min(sum - MAX_OFFLINE_LEN_BYTES)));
        sum -= before - longest.buffer.len_bytes();
    }
    more
}
