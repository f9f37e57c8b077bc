//! Readers of reliable publishers whose other host is away: the messages that they read wait for its
//! return.
//!
//! A lane that loses the other host hands its forwarders over. One thread then reads the reliable
//! publishers, so that none of them waits for an absent host, and keeps as many messages as the
//! configuration allows. When the host returns and requests the publisher, it receives the kept messages. A
//! reader of a best-effort publisher is kept unread: if the publisher ends meanwhile, the reader still has
//! the sent messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rnet::{Error, Subscriber, WaitSet, WaitSetHandle, Waitable};

use crate::config::OfflineLimits;

use super::LinkContext;
use super::event::{Event, OfflineKey};
use super::lock::lock;
use super::resend_buffer::ResendBuffer;

/// How far the longest buffer is cut before another may be the longest.
const TRIM_LEN_BYTES: u64 = 1 << 20;
/// Messages read from one publisher before the next one has its turn.
const MESSAGES_PER_TURN: usize = 64;

/// A reader whose other host is away.
pub struct OfflineReader {
    pub subscriber: Subscriber<[u8]>,
    /// The messages that it has read; `None` for a reader that does not read meanwhile, because its
    /// publisher does not wait for it.
    pub buffer: Option<ResendBuffer>,
    /// The last will of its publisher, as the other host received it or as the publisher left it.
    pub will: Option<Vec<u8>>,
    since: Instant,
}

impl OfflineReader {
    pub fn new(
        subscriber: Subscriber<[u8]>,
        mut buffer: Option<ResendBuffer>,
        will: Option<Vec<u8>>,
    ) -> OfflineReader {
        if let Some(buffer) = &mut buffer {
            buffer.copy_samples();
        }
        OfflineReader { subscriber, buffer, will, since: Instant::now() }
    }

    fn len_bytes(&self) -> u64 {
        self.buffer.as_ref().map_or(0, ResendBuffer::len_bytes)
    }

    /// Reads some messages; returns whether there may be more.
    fn read(&mut self) -> bool {
        let Some(buffer) = &mut self.buffer else { return false };
        for _ in 0..MESSAGES_PER_TURN {
            match self.subscriber.try_recv() {
                Ok(Some(sample)) => {
                    let meta = sample.has_meta().then(|| sample.meta());
                    // The will is the last message of a publisher that is gone.
                    if meta.is_some_and(|meta| meta.last_will) {
                        self.will = Some(sample.to_vec());
                        continue;
                    }
                    let of = (sample.seq(), sample.sent_ns());
                    buffer.add_sent(of, meta.as_ref(), &sample, u64::MAX);
                }
                Ok(None) => return false,
                // The reader continues, or its publisher is gone; the control thread learns of that too.
                Err(Error::Detached { .. } | Error::PeerLost { .. }) => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// The result of a lookup for the reader that a host wants again.
pub enum OfflineLookup {
    /// There is no such reader.
    NotFound,
    /// The reader is being handed over; [`Event::OfflineReader`] follows.
    Pending,
    Ready(Box<OfflineReader>),
}

/// Marks that a forwarder has the reader of a publisher. It ends when dropped, or once the reader is handed
/// over.
pub struct OfflineClaim {
    shared: Arc<LinkContext>,
    key: OfflineKey,
    number: u64,
}

impl Drop for OfflineClaim {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.offline.state);
        if state.end_claim(self.key, self.number) {
            drop(state.answer(&self.shared, self.key, None));
        }
    }
}

#[derive(Default)]
struct OfflineState {
    /// The readers that forwarders have, by the number of the latest claim.
    claims: BTreeMap<OfflineKey, u64>,
    next_claim: u64,
    /// Readers on their way to the thread.
    arriving: BTreeMap<OfflineKey, Box<OfflineReader>>,
    /// Readers that the thread has.
    kept: BTreeSet<OfflineKey>,
    /// Requested readers, and those of them that are available.
    wanted: BTreeSet<OfflineKey>,
    found: BTreeMap<OfflineKey, Box<OfflineReader>>,
    /// Readers of the thread that no host will request.
    dropped: BTreeSet<OfflineKey>,
    thread: Option<WaitSetHandle>,
    closed: bool,
}

impl OfflineState {
    /// Ends a claim; returns whether it was the latest of its key.
    fn end_claim(&mut self, key: OfflineKey, number: u64) -> bool {
        let is_last = self.claims.get(&key) == Some(&number);
        if is_last {
            self.claims.remove(&key);
        }
        is_last
    }

    /// The keys of all present or future readers.
    fn keys(&self) -> impl Iterator<Item = &OfflineKey> {
        let readers = self.arriving.keys().chain(self.found.keys());
        readers.chain(&self.kept).chain(self.claims.keys())
    }

    /// Gives a reader to the host that requested it, or reports that it does not exist; returns it if no
    /// host wants it.
    fn answer(
        &mut self,
        shared: &LinkContext,
        key: OfflineKey,
        reader: Option<Box<OfflineReader>>,
    ) -> Option<Box<OfflineReader>> {
        if !self.wanted.remove(&key) {
            return reader;
        }
        self.found.extend(reader.map(|reader| (key, reader)));
        let _ = shared.events.send(Event::OfflineReader(key));
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
pub struct OfflineReaders {
    limits: OfflineLimits,
    state: Mutex<OfflineState>,
}

impl OfflineReaders {
    pub fn new(limits: OfflineLimits) -> OfflineReaders {
        OfflineReaders { limits, state: Mutex::default() }
    }

    /// Records that a forwarder has this reader.
    pub fn claim(shared: &Arc<LinkContext>, key: OfflineKey) -> OfflineClaim {
        let mut state = lock(&shared.offline.state);
        state.next_claim += 1;
        let number = state.next_claim;
        state.claims.insert(key, number);
        OfflineClaim { shared: shared.clone(), key, number }
    }

    /// Hands over a forwarder's reader. If another forwarder has replaced it meanwhile, the reader is
    /// dropped: no session continues from it.
    pub fn hand_over((reader, claim): (OfflineReader, OfflineClaim)) {
        let mut state = lock(&claim.shared.offline.state);
        if state.end_claim(claim.key, claim.number) {
            Self::add_to(state, &claim.shared, claim.key, Box::new(reader));
        }
    }

    /// Gives a reader to the thread, or to the host that requested it.
    pub fn add(shared: &Arc<LinkContext>, key: OfflineKey, reader: Box<OfflineReader>) {
        Self::add_to(lock(&shared.offline.state), shared, key, reader);
    }

    fn add_to(
        mut state: MutexGuard<'_, OfflineState>,
        shared: &Arc<LinkContext>,
        key: OfflineKey,
        reader: Box<OfflineReader>,
    ) {
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
                shared.spawn("rnet-offline", move || run_offline_thread(&of, set));
            }
        }
        drop(state);
        drop(before);
    }

    /// Whether a reader of this publisher exists for this host, or a forwarder has one.
    pub fn has(&self, key: OfflineKey) -> bool {
        let state = lock(&self.state);
        let is_read = state.arriving.contains_key(&key) || state.found.contains_key(&key);
        is_read || state.kept.contains(&key) || state.claims.contains_key(&key)
    }

    /// Whether a reader of this publisher exists, or a forwarder has one.
    pub fn has_any(&self, publisher: u64) -> bool {
        lock(&self.state).keys().any(|(_, of)| *of == publisher)
    }

    /// Takes the reader that a host requests again.
    pub fn take(&self, key: OfflineKey) -> OfflineLookup {
        let mut state = lock(&self.state);
        // A reader that an earlier request found is available before the event is read.
        let state = &mut *state;
        if let Some(reader) = state.found.remove(&key).or_else(|| state.arriving.remove(&key)) {
            return OfflineLookup::Ready(reader);
        }
        if !state.kept.contains(&key) && !state.claims.contains_key(&key) {
            return OfflineLookup::NotFound;
        }
        state.wanted.insert(key);
        state.wake();
        OfflineLookup::Pending
    }

    /// The reader that [`Event::OfflineReader`] reported as available, if there is one.
    pub fn found(&self, key: OfflineKey) -> Option<Box<OfflineReader>> {
        lock(&self.state).found.remove(&key)
    }

    /// Drops readers that no host will request.
    pub fn drop_all(&self, is_over: impl Fn(&OfflineKey) -> bool) {
        let mut state = lock(&self.state);
        // A reader that a forwarder holds is dropped at its hand-over.
        state.claims.retain(|key, _| !is_over(key));
        state.wanted.retain(|key| !is_over(key));
        let over: Vec<OfflineKey> = state.keys().copied().filter(&is_over).collect();
        let mut take = |key| [state.arriving.remove(key), state.found.remove(key)];
        let readers: Vec<_> = over.iter().flat_map(&mut take).collect();
        let kept: Vec<OfflineKey> = state.kept.iter().copied().filter(&is_over).collect();
        state.dropped.extend(kept);
        state.wake();
        drop(state);
        drop(readers);
    }

    /// Closes with the link.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.wake();
        let readers = (std::mem::take(&mut state.arriving), std::mem::take(&mut state.found));
        drop(state);
        drop(readers);
    }
}

fn run_offline_thread(shared: &Arc<LinkContext>, mut set: WaitSet) {
    let mut kept: BTreeMap<OfflineKey, Box<OfflineReader>> = BTreeMap::new();
    let limits = shared.offline.limits;
    loop {
        let mut dropped: Vec<Option<Box<OfflineReader>>> = Vec::new();
        {
            let mut state = lock(&shared.offline.state);
            for key in std::mem::take(&mut state.dropped) {
                dropped.push(kept.remove(&key));
            }
            let over = kept.iter().filter(|(_, reader)| reader.since.elapsed() >= limits.time);
            for key in over.map(|(key, _)| *key).collect::<Vec<_>>() {
                dropped.push(kept.remove(&key));
            }
            for (key, reader) in std::mem::take(&mut state.arriving) {
                dropped.push(kept.insert(key, reader));
            }
            for key in state.wanted.clone() {
                // A forwarder still has the reader, or an older reader is here.
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
        let more = read_all(&mut kept, limits.len_bytes);
        if !more {
            let left =
                kept.values().map(|reader| limits.time.saturating_sub(reader.since.elapsed()));
            let left = left.min();
            let read = kept.values_mut().filter(|reader| reader.buffer.is_some());
            let mut named: Vec<&mut dyn Waitable> =
                read.map(|reader| &mut reader.subscriber as &mut dyn Waitable).collect();
            // A wake-up arrives as `Interrupted`.
            let _ = set.wait_timeout(&mut named, left.unwrap_or(Duration::MAX));
        }
    }
}

/// Reads some messages of each reader; returns whether there may be more.
fn read_all(kept: &mut BTreeMap<OfflineKey, Box<OfflineReader>>, limit_bytes: u64) -> bool {
    let more = kept.values_mut().fold(false, |more, reader| reader.read() | more);
    let mut sum: u64 = kept.values().map(|reader| reader.len_bytes()).sum();
    // The longest buffers are cut, so that topics of small messages keep theirs.
    while sum > limit_bytes {
        let buffers = kept.values_mut().filter_map(|reader| reader.buffer.as_mut());
        let Some(longest) = buffers.max_by_key(|buffer| buffer.len_bytes()) else { break };
        let before = longest.len_bytes();
        longest.trim(before.saturating_sub(TRIM_LEN_BYTES.min(sum - limit_bytes)));
        sum -= before - longest.len_bytes();
    }
    more
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc::{self, Receiver, TryRecvError};
    use std::time::Duration;

    use rnet::Node;

    use super::*;
    use crate::config::Config;
    use crate::link::positions::PositionTable;
    use crate::transport::{HostId, Presence};

    const KEY: OfflineKey = (HostId(2), 7);
    const LONG: Duration = Duration::from_secs(100);

    /// What the threads of a link share, without the link.
    struct Fixture {
        shared: Arc<LinkContext>,
        events: Receiver<Event>,
        dir: PathBuf,
    }

    impl Fixture {
        fn new(name: &str) -> Fixture {
            let dir = std::env::temp_dir().join(format!("rnet-{name}-{}", std::process::id()));
            std::fs::create_dir(&dir).unwrap();
            let node = Node::builder("link").dir(&dir).domain("t").open().unwrap();
            let (tell, events) = mpsc::channel();
            let shared = Arc::new(LinkContext {
                name: "here".to_owned(),
                domain: "t".to_owned(),
                presence: Presence { host: HostId(1), term: 1 },
                config: Config::from_toml("", Path::new("robot.toml")).unwrap(),
                holds_role: Arc::new(|| true),
                events: tell,
                transport: Mutex::default(),
                certificates: Default::default(),
                positions: PositionTable::open(node.domain_path()).unwrap(),
                offline: OfflineReaders::new(OfflineLimits::default()),
                sessions: AtomicU64::new(1),
                lanes: Default::default(),
                threads: Mutex::default(),
                failure: Default::default(),
                node,
            });
            Fixture { shared, events, dir }
        }

        fn reader(&self) -> OfflineReader {
            OfflineReader::new(
                self.shared.node.subscriber::<[u8]>("/t").open().unwrap(),
                None,
                None,
            )
        }

        fn claim(&self) -> OfflineClaim {
            OfflineReaders::claim(&self.shared, KEY)
        }

        fn take(&self) -> OfflineLookup {
            self.shared.offline.take(KEY)
        }

        fn assert_pending(&self) {
            assert!(matches!(self.take(), OfflineLookup::Pending));
        }

        fn assert_notified(&self) {
            assert!(matches!(self.events.recv_timeout(LONG), Ok(Event::OfflineReader(KEY))));
        }

        fn assert_not_notified(&self) {
            assert!(matches!(self.events.try_recv(), Err(TryRecvError::Empty)));
        }

        fn has_found(&self) -> bool {
            self.shared.offline.found(KEY).is_some()
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            self.shared.offline.close();
            let threads = std::mem::take(&mut *lock(&self.shared.threads));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    #[test]
    fn a_claimed_reader_is_handed_over_later() {
        let of = Fixture::new("offline-claimed");
        assert!(matches!(of.take(), OfflineLookup::NotFound));
        let claim = of.claim();
        of.assert_pending();
        of.assert_not_notified();
        OfflineReaders::hand_over((of.reader(), claim));
        of.assert_notified();
        assert!(of.has_found() && !of.has_found());
        assert!(matches!(of.take(), OfflineLookup::NotFound));
        // A forwarder that ends without a reader to hand over.
        let claim = of.claim();
        of.assert_pending();
        drop(claim);
        of.assert_notified();
        assert!(!of.has_found());
        // A forwarder that another has replaced hands over to no host.
        let (replaced, last) = (of.claim(), of.claim());
        of.assert_pending();
        OfflineReaders::hand_over((of.reader(), replaced));
        of.assert_not_notified();
        OfflineReaders::hand_over((of.reader(), last));
        of.assert_notified();
        // It is requested again before the event that it was found is read.
        assert!(matches!(of.take(), OfflineLookup::Ready(_)));
        assert!(!of.has_found());
    }

    #[test]
    fn a_kept_reader_is_handed_over_later() {
        let of = Fixture::new("offline-kept");
        OfflineReaders::add(&of.shared, KEY, Box::new(of.reader()));
        while !lock(&of.shared.offline.state).kept.contains(&KEY) {
            std::thread::yield_now();
        }
        of.assert_pending();
        of.assert_notified();
        assert!(of.has_found());
        assert!(matches!(of.take(), OfflineLookup::NotFound));
    }

    #[test]
    fn an_unwanted_reader_is_not_announced() {
        let of = Fixture::new("offline-unwanted");
        let claim = of.claim();
        of.assert_pending();
        of.shared.offline.drop_all(|key| *key == KEY);
        OfflineReaders::hand_over((of.reader(), claim));
        of.assert_not_notified();
        assert!(!of.has_found() && !of.shared.offline.has(KEY));
        // The request is over too: the next reader waits for another request.
        OfflineReaders::hand_over((of.reader(), of.claim()));
        of.assert_not_notified();
        assert!(of.shared.offline.has(KEY));
    }
}
