//! A publisher's readers: the node's control thread admits and removes them, and the writer's hot path has a
//! private copy.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use rnet_ring::admission::{AdmissionState, AdmissionTable, RequestId};
use rnet_ring::epoch::Epoch;
use rnet_ring::fail_point;
use rnet_ring::layout::{REFUSALS_PER_LOG, ReaderSlot, SLOT_BOUND};
use rnet_ring::reader_requests::ReaderRequests;

use crate::channel::handoff::Handoff;
use crate::channel::publisher::{PublisherMap, ReaderProgress};
use crate::channel::subscription::{LinkRole, PeerBinding};
use crate::domain::node::incarnation_of;
use crate::domain::observers::{ObserverRef, are_same};
use crate::os::barrier::SleeperBarrier;
use crate::os::bell::Bells;
use crate::os::mapping::Mapping;

mod admit;
mod late_joiner;

pub use admit::AdmitOutcome;

/// [`rnet_ring::layout::Refusal::reason`]: the table of readers is full.
pub const REFUSED_FULL: u64 = 1;

/// One admitted reader, as the writer's side sees it.
#[derive(Debug)]
pub struct ReaderRef {
    /// The subscription.
    pub subscription: u64,
    /// Name of its node, for errors.
    pub node: Arc<str>,
    /// Whether it holds the writer back.
    pub reliable: bool,
    /// How many of the newest messages it wants; `None`: all.
    pub(crate) keep_last: Option<u32>,
    /// Its role for a link between hosts.
    link: Option<LinkRole>,
    /// Which of its requests was granted.
    generation: u64,
    publisher: u64,
    page: Mapping,
    bells: Arc<Bells>,
    start: AtomicU64,
    /// How long it has been stalled.
    pub(crate) progress: ReaderProgress,
    /// Set when the reader unsubscribed while its samples were still held: only its pins count.
    left: AtomicBool,
    /// Set once the reader knows its start position: messages that are sent after that reach it.
    admitted: AtomicBool,
}

impl ReaderRef {
    #[inline]
    pub(crate) fn page(&self) -> &ReaderSlot {
        self.page.get(0)
    }

    fn holds_pins(&self) -> bool {
        self.page().pins.iter().any(|pin| pin.load(Ordering::Acquire) != 0)
    }

    /// Whether it forwards what it reads to another host.
    pub(crate) fn forwards(&self) -> bool {
        matches!(self.link, Some(LinkRole::Forwards(_)))
    }

    fn is_served(&self) -> bool {
        self.admitted.load(Ordering::Acquire) && !self.has_left()
    }

    /// Whether it counts as one of the publisher's readers.
    fn counts(&self) -> bool {
        self.is_served() && !self.forwards()
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// Whether the page still contains the granted request: the reader has neither left it nor requested
    /// admission again.
    fn is_bound(&self) -> bool {
        let bind = &self.page().bind;
        bind.state.load(Ordering::Relaxed) == SLOT_BOUND
            && bind.publisher.load(Ordering::Relaxed) == self.publisher
            && bind.generation.load(Ordering::Relaxed) == self.generation
    }

    /// The lowest byte position that the reader still needs; `u64::MAX` if it has left the page.
    pub(crate) fn needed(&self) -> u64 {
        if !self.is_bound() || self.has_left() {
            return u64::MAX;
        }
        let page = self.page();
        // SYNC-CURSOR: acquire, because the reader completes its copies from the log before it publishes the
        // cursor.
        page.cursor.cursor.load(Ordering::Acquire).max(self.start.load(Ordering::Acquire))
    }

    /// Wakes the reader if it sleeps at its bell.
    pub(crate) fn ring(&self) {
        self.bells.ring(self.page().bind.bell.load(Ordering::Relaxed));
    }
}

/// The readers of one publisher.
#[derive(Debug)]
pub struct ReaderTable {
    pub(crate) map: Arc<PublisherMap>,
    /// The publisher's file.
    path: PathBuf,
    /// The doorbells of the publisher's own node.
    bells: Arc<Bells>,
    epoch: Epoch,
    list: Mutex<Vec<Arc<ReaderRef>>>,
    /// The list for the writer, which takes no lock: put under the list's lock and before the epoch is
    /// incremented, at each change.
    latest_list: Handoff<Vec<Arc<ReaderRef>>>,
    /// The observers for the writer, put in the same way.
    latest_observers: Handoff<Vec<ObserverRef>>,
    /// The observers that were put last.
    observers: Mutex<Vec<ObserverRef>>,
    next_refusal: AtomicU64,
    /// Number of admissions that are searching the log for their reader's start position.
    scans: AtomicUsize,
    /// The outcomes of their requests. If both are locked, the list is locked first.
    requests: Mutex<ReaderRequests>,
}

/// An admission that searches the log.
#[derive(Debug)]
pub(crate) struct Scan<'a>(&'a AtomicUsize);

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Why a reader is removed from the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RemovalReason {
    /// It unsubscribed, or its process exited: no reader is left to notify.
    Gone,
    /// It stalled for too long, and may request admission again.
    Stalled,
}

impl ReaderTable {
    pub(crate) fn new(map: Arc<PublisherMap>, path: PathBuf, bells: Arc<Bells>) -> ReaderTable {
        ReaderTable {
            map,
            path,
            bells,
            epoch: Epoch::default(),
            list: Mutex::new(Vec::new()),
            latest_list: Handoff::default(),
            latest_observers: Handoff::default(),
            observers: Mutex::default(),
            next_refusal: AtomicU64::new(0),
            scans: AtomicUsize::new(0),
            requests: Mutex::default(),
        }
    }

    pub(crate) fn list(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ReaderRef>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current readers, as subscription and node.
    pub fn readers(&self) -> Vec<(u64, String)> {
        let list = self.list();
        list.iter().filter(|r| r.counts()).map(|r| (r.subscription, r.node.to_string())).collect()
    }

    /// How many readers there are.
    pub fn len(&self) -> usize {
        self.list().iter().filter(|r| r.counts()).count()
    }

    /// Whether there are no readers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Publishes a changed list to the writer, without readers that read nothing.
    fn publish_list(&self, list: &[Arc<ReaderRef>]) {
        let reads = |r: &&Arc<ReaderRef>| r.link != Some(LinkRole::Passive);
        self.latest_list.put(list.iter().filter(reads).cloned().collect());
    }

    fn requests(&self) -> std::sync::MutexGuard<'_, ReaderRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the subscription is served according to its current request. If not, it may have requested
    /// admission again.
    pub fn serves(&self, subscription: u64) -> bool {
        let list = self.list();
        list.iter().any(|r| r.subscription == subscription && !r.has_left() && r.is_bound())
    }

    /// Whether this request was granted and its reader evicted since, because it stalled: it must request
    /// admission again.
    pub fn was_evicted(&self, subscription: u64, binding: &PeerBinding) -> bool {
        let ask = RequestId { subscription, generation: binding.generation };
        self.requests().state(ask) == Some(AdmissionState::Detached)
    }

    /// For the writer: updates its private copy, and returns whether it changed. Takes no lock: a control
    /// thread that was stopped while it holds the list must not block a send.
    #[inline]
    pub(crate) fn update(&self, seen: &mut u64, copy: &mut Vec<Arc<ReaderRef>>) -> bool {
        self.epoch.changed(seen) && self.take_list(copy)
    }

    /// Whether the readers have changed since the copy was updated.
    pub(crate) fn is_newer(&self, mut seen: u64) -> bool {
        self.epoch.changed(&mut seen)
    }

    #[cold]
    fn take_list(&self, copy: &mut Vec<Arc<ReaderRef>>) -> bool {
        // Nothing, if the previous call already took the list of this epoch.
        self.latest_list.take().map(|list| *copy = list).is_some()
    }

    /// Sets the observers that follow the publisher. New ones check again once the writer knows them, so that
    /// they miss nothing that it sent before.
    pub fn set_observers(&self, observers: Vec<ObserverRef>) {
        let mut before = self.observers.lock().unwrap_or_else(PoisonError::into_inner);
        if are_same(&before, &observers) {
            return;
        }
        before.clone_from(&observers);
        let list = self.list();
        self.latest_observers.put(observers.clone());
        self.publish_list(&list);
        drop(list);
        self.epoch.admit(self.map.log(), &SleeperBarrier);
        observers.iter().for_each(ObserverRef::ring);
    }

    /// For the writer, after [`ReaderTable::update`] returned a change.
    pub(crate) fn take_observers(&self) -> Option<Vec<ObserverRef>> {
        self.latest_observers.take()
    }

    fn admissions(&self) -> AdmissionTable<'_> {
        self.map.admissions()
    }

    /// Starts a search of the log, which frees no memory until the scan is dropped: the reader's cursor does
    /// not show that this thread reads there.
    pub(crate) fn scan(&self) -> Scan<'_> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence of `is_scanned`: the writer sees the scan, or the scan sees a head past
        // everything that the writer frees.
        fence(Ordering::SeqCst);
        Scan(&self.scans)
    }

    /// For the writer, after it has stored the head: whether an admission may be reading memory below the
    /// head.
    pub(crate) fn is_scanned(&self) -> bool {
        fence(Ordering::SeqCst);
        // Acquire: what a completed scan has read, it read before this.
        self.scans.load(Ordering::Acquire) != 0
    }

    fn refuse(&self, subscription: u64) {
        let turn = self.next_refusal.fetch_add(1, Ordering::Relaxed) as usize % REFUSALS_PER_LOG;
        let refusal = &self.map.control().refusals[turn];
        refusal.reason.store(REFUSED_FULL, Ordering::Relaxed);
        fail_point!("refuse.reason");
        refusal.subscription.store(subscription, Ordering::Release);
        fail_point!("refuse.subscription");
    }

    /// The reader was admitted: an earlier refusal must not be taken for the next answer.
    fn forget_refusal(&self, subscription: u64) {
        for refusal in &self.map.control().refusals {
            if refusal.subscription.load(Ordering::Relaxed) == subscription {
                refusal.subscription.store(0, Ordering::Release);
            }
        }
    }

    /// Removes a reader that unsubscribed; samples that it still holds stay pinned. Returns whether it was in
    /// the list.
    pub fn remove(&self, subscription: u64) -> bool {
        self.remove_reader(subscription, RemovalReason::Gone, true)
    }

    /// Removes a reader whose process has died, together with its pins.
    pub fn remove_dead(&self, subscription: u64) -> bool {
        self.remove_reader(subscription, RemovalReason::Gone, false)
    }

    /// Removes the readers of a node that has exited, including those that had unsubscribed and were kept for
    /// their pins: the holders of the samples are gone too.
    pub fn remove_dead_node(&self, incarnation: u64) {
        let mut list = self.list();
        let before = list.len();
        list.retain(|reader| {
            let stays = incarnation_of(reader.subscription) != incarnation;
            if !stays {
                reader.left.store(true, Ordering::Relaxed);
            }
            stays
        });
        let changed = list.len() != before;
        if changed {
            self.publish_list(&list);
        }
        let mut requests = self.requests();
        let gone: Vec<u64> =
            requests.subscriptions().filter(|id| incarnation_of(*id) == incarnation).collect();
        for subscription in gone {
            requests.forget(self.admissions(), subscription);
        }
        drop(requests);
        drop(list);
        if !changed {
            return;
        }
        fail_point!("remove_dead.freed");
        self.epoch.advance();
        self.bells.ring(self.map.control().flow.bell.load(Ordering::Relaxed));
    }

    /// Evicts a reader because it stalled; it may request admission again.
    pub(crate) fn detach(&self, subscription: u64) -> bool {
        let done = self.remove_reader(subscription, RemovalReason::Stalled, true);
        if done {
            fail_point!("detach.removed");
            self.map.control().flow.detached.fetch_add(1, Ordering::Relaxed);
            fail_point!("detach.counted");
        }
        done
    }

    /// Evicts the readers whose pages were truncated: they can publish neither their progress nor their pins.
    pub(crate) fn evict_truncated(&self) {
        let list = self.list();
        let truncated = list.iter().filter(|r| r.page.is_truncated()).map(|r| r.subscription);
        let gone: Vec<u64> = truncated.collect();
        drop(list);
        for subscription in gone {
            self.remove_reader(subscription, RemovalReason::Gone, false);
        }
    }

    fn remove_reader(&self, subscription: u64, why: RemovalReason, keep_pins: bool) -> bool {
        let mut list = self.list();
        let reader = list.iter().find(|r| r.subscription == subscription && !r.has_left()).cloned();
        if let Some(reader) = &reader {
            reader.left.store(true, Ordering::Relaxed);
        }
        let lingers = |r: &ReaderRef| keep_pins && r.holds_pins();
        list.retain(|r| r.subscription != subscription || !r.has_left() || lingers(r));
        self.publish_list(&list);
        fail_point!("remove.unlisted");
        // Under the list's lock: a lookup never finds the reader neither served nor evicted.
        match (why, &reader) {
            (RemovalReason::Gone, _) => self.requests().forget(self.admissions(), subscription),
            (RemovalReason::Stalled, Some(_)) => {
                self.requests().detach(self.admissions(), subscription)
            }
            (RemovalReason::Stalled, None) => {}
        }
        let Some(reader) = reader else { return false };
        drop(list);
        fail_point!("remove.freed");
        self.epoch.advance();
        reader.ring();
        fail_point!("remove.rung");
        // The writer may sleep until this reader makes progress.
        self.bells.ring(self.map.control().flow.bell.load(Ordering::Relaxed));
        true
    }
}

#[cfg(test)]
mod tests {
    use rnet_core::{NodeName, PublisherQos, SubscriberQos, TypeDesc};
    use rnet_ring::layout::{MORE_ADMISSIONS_LEN_BYTES, READERS_IN_CONTROL, READERS_PER_LOG};

    use super::*;
    use crate::channel::publisher::{PublisherMeta, Writer};
    use crate::channel::subscription::{
        Binding, PeerSubscription, SubscriptionFile, SubscriptionMeta,
    };
    use crate::domain::directory::{DomainConfig, DomainDir};
    use crate::domain::node::OwnNode;
    use crate::os::random::random_u64;

    /// An evicted reader keeps its request, and is admitted again only after a new request.
    #[test]
    fn evicted_reader_must_request_admission_again() {
        let base = std::env::temp_dir().join(format!("rnet-reader_table-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let name = NodeName::new("both").unwrap();
        let node = Arc::new(OwnNode::create(&dir, &name, "rust", "0").unwrap());
        let topic = || "/t".to_owned();
        let id = node.next_endpoint().unwrap();
        let meta = PublisherMeta {
            topic: topic(),
            type_desc: TypeDesc::Raw,
            qos: PublisherQos::default(),
            proxy: None,
            will: false,
        };
        let writer = Writer::create(&node, node.folder().join("p"), id, &meta).unwrap();
        let reader_table = writer.reader_table();
        let readers: Vec<_> = (0..=READERS_PER_LOG)
            .map(|number| {
                let (type_desc, qos) = (TypeDesc::Raw, SubscriberQos::default());
                let meta =
                    SubscriptionMeta { topic: topic(), type_desc, qos, proxy: None, link: None };
                let (own, path) =
                    (node.next_endpoint().unwrap(), node.folder().join(format!("s{number}")));
                let file =
                    SubscriptionFile::create(node.clone(), path.clone(), own, &meta).unwrap();
                let binding = Binding { publisher: id, reliable: false, history: 0, bell: 0 };
                let slot = file.bind("/t", binding).unwrap();
                (own, PeerSubscription::open(&path, own).unwrap(), file, slot)
            })
            .collect();
        let found = |number: usize| readers[number].1.binding_to(id).unwrap().unwrap();
        let admit = |number: usize| {
            reader_table.admit(
                readers[number].0,
                "/both",
                "/t",
                found(number),
                node.bells().clone(),
            )
        };
        // The table allocates memory for the entries in use.
        let path = node.folder().join("p");
        let blocks = || std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&path).unwrap());
        let before = blocks();
        let peer = crate::channel::publisher::PeerPublisher::open(&path, id).unwrap();
        for number in 0..READERS_PER_LOG {
            assert_eq!(admit(number).unwrap(), AdmitOutcome::New);
            let (used, grown) = (reader_table.admissions().used(), blocks() - before);
            assert_eq!((used, grown > 0), (number + 1, number >= READERS_IN_CONTROL), "{number}");
        }
        assert_eq!((blocks() - before) * 512, MORE_ADMISSIONS_LEN_BYTES as u64);
        // The file's content is untrusted.
        for used in [READERS_PER_LOG as u64, u64::MAX] {
            assert_eq!(peer.more_admissions(used).unwrap().len(), 448 * 40);
        }
        let (evicted, _, _, slot) = &readers[0];
        assert!(reader_table.detach(*evicted) && !reader_table.serves(*evicted));
        assert!(reader_table.was_evicted(*evicted, &found(0).binding));
        // It keeps its request; a third reader withdraws its own.
        admit(READERS_PER_LOG).unwrap_err();
        assert!(reader_table.remove(readers[1].0));
        assert_eq!(admit(READERS_PER_LOG).unwrap(), AdmitOutcome::New);
        assert!(reader_table.was_evicted(*evicted, &found(0).binding));
        rnet_ring::binding::renew_request(&slot.page().bind, readers[0].2.next_request());
        assert!(!reader_table.was_evicted(*evicted, &found(0).binding));
        assert_eq!(admit(0).unwrap(), AdmitOutcome::New);
        assert!(reader_table.serves(*evicted));
        drop((readers, writer, node));
        std::fs::remove_dir_all(&base).unwrap();
    }
}
