//! A publisher's readers: admitted and dismissed by the node's control thread, known to the
//! writer's hot path by a private copy.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rnet_core::Error;
use rnet_ring::fail_point;
use rnet_ring::join::Epoch;
use rnet_ring::layout::{
    ADMISSION_ACTIVE, ADMISSION_DETACHED, ADMISSION_FREE, Admission, READERS_PER_LOG,
    REFUSALS_PER_LOG, ReaderSlot, SLOT_BOUND,
};
use rnet_ring::{Gate, LogReader, Pull};

use crate::barrier::SleeperBarrier;
use crate::bell::Bells;
use crate::handoff::Handoff;
use crate::mapping::Mapping;
use crate::node::incarnation_of;
use crate::publisher::PublisherMap;
use crate::subscription::{BoundPage, PeerBinding};

/// [`rnet_ring::layout::Refusal::reason`]: the table of readers is full.
pub const REFUSED_FULL: u64 = 1;

/// How often the end of the log is looked at until both its words agree; a writer in full flight
/// is between them for nanoseconds.
const START_TRIES: u32 = 1_000_000;
const SPINS_PER_YIELD: u32 = 100;

/// One admitted reader, as the writer's side sees it.
#[derive(Debug)]
pub struct ReaderRef {
    /// The subscription.
    pub subscription: u64,
    /// Name of its node, for errors.
    pub node: String,
    /// Whether it holds the writer back.
    pub reliable: bool,
    /// Its page, and which binding of it.
    index: u64,
    generation: u64,
    publisher: u64,
    page: Mapping,
    bells: Arc<Bells>,
    start: AtomicU64,
    place: usize,
    /// Set when the reader unsubscribed while samples of it were still held: only its pins count.
    left: AtomicBool,
    /// Set once the reader has been told from where it reads: what is sent from then on reaches it.
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

    fn is_served(&self) -> bool {
        self.admitted.load(Ordering::Acquire) && !self.has_left()
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// The lowest byte position that the reader still needs; `u64::MAX` if it has left the page.
    pub(crate) fn needed(&self) -> u64 {
        let page = self.page();
        let ours = page.bind.state.load(Ordering::Relaxed) == SLOT_BOUND
            && page.bind.publisher.load(Ordering::Relaxed) == self.publisher
            && page.bind.generation.load(Ordering::Relaxed) == self.generation;
        if !ours || self.has_left() {
            return u64::MAX;
        }
        // SYNC-CURSOR: acquire, because the reader's copies out of the log are over before it shows
        // the cursor.
        page.cursor.cursor.load(Ordering::Acquire).max(self.start.load(Ordering::Acquire))
    }

    /// Wakes the reader if it sleeps at its bell.
    pub(crate) fn ring(&self) {
        self.bells.ring(self.page().bind.bell.load(Ordering::Relaxed));
    }
}

/// The readers of one publisher.
#[derive(Debug)]
pub struct Roster {
    map: Arc<PublisherMap>,
    /// The doorbells of the publisher's own node.
    bells: Arc<Bells>,
    epoch: Epoch,
    list: Mutex<Vec<Arc<ReaderRef>>>,
    /// The list for the writer, which takes no lock: put with the list locked and before the epoch is
    /// raised, whenever the list changes.
    fresh: Handoff<Vec<Arc<ReaderRef>>>,
    next_refusal: AtomicU64,
    /// Set when a reader was let go for standing still: it may come back.
    some_detached: AtomicBool,
    /// The binding under which each of those was let go, page and generation, until it has bound itself anew.
    /// Changed with the list locked.
    let_go: Mutex<BTreeMap<u64, (u64, u64)>>,
}

/// What [`Roster::admit`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// The reader is in.
    New,
    /// It was in already.
    Known,
}

impl Roster {
    pub(crate) fn new(map: Arc<PublisherMap>, bells: Arc<Bells>) -> Roster {
        Roster {
            map,
            bells,
            epoch: Epoch::default(),
            list: Mutex::new(Vec::new()),
            fresh: Handoff::default(),
            next_refusal: AtomicU64::new(0),
            some_detached: AtomicBool::new(false),
            let_go: Mutex::default(),
        }
    }

    pub(crate) fn list(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ReaderRef>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The readers now, as subscription and node.
    pub fn readers(&self) -> Vec<(u64, String)> {
        let list = self.list();
        list.iter().filter(|r| r.is_served()).map(|r| (r.subscription, r.node.clone())).collect()
    }

    /// How many readers there are.
    pub fn len(&self) -> usize {
        self.list().iter().filter(|r| r.is_served()).count()
    }

    /// Whether nobody reads.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the subscription is admitted now.
    pub fn serves(&self, subscription: u64) -> bool {
        self.list().iter().any(|r| r.subscription == subscription && !r.has_left())
    }

    /// Whether a reader was let go for standing still since this was asked last.
    pub fn take_detached(&self) -> bool {
        self.some_detached.swap(false, Ordering::Acquire)
    }

    /// Whether this very binding of the subscription was let go because it stood still; it has
    /// to bind itself anew.
    pub fn was_detached(&self, subscription: u64, binding: &PeerBinding) -> bool {
        self.let_go().get(&subscription) == Some(&(binding.index, binding.generation))
    }

    fn let_go(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, (u64, u64)>> {
        self.let_go.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer's side: brings its private copy up to date, returns whether it changed. Takes no
    /// lock: a control thread that was stopped with the list in its hands must not stop a send.
    #[inline]
    pub(crate) fn update(&self, seen: &mut u64, copy: &mut Vec<Arc<ReaderRef>>) -> bool {
        self.epoch.changed(seen) && self.take_fresh(copy)
    }

    /// Whether the readers have changed since the copy was brought up to date.
    pub(crate) fn is_newer(&self, mut seen: u64) -> bool {
        self.epoch.changed(&mut seen)
    }

    #[cold]
    fn take_fresh(&self, copy: &mut Vec<Arc<ReaderRef>>) -> bool {
        // Nothing, if what this epoch stands for was taken with the one before.
        self.fresh.take().map(|list| *copy = list).is_some()
    }

    fn admissions(&self) -> &[Admission; READERS_PER_LOG] {
        &self.map.control().admissions
    }

    /// Admits a reader that has bound a page to this publisher.
    ///
    /// # Errors
    /// `LimitReached` if the table is full; the reader is told as well.
    pub fn admit(
        &self,
        subscription: u64,
        node: &str,
        topic: &str,
        bound: BoundPage,
        bells: Arc<Bells>,
    ) -> Result<Admitted, Error> {
        let BoundPage { binding, page } = bound;
        let mut list = self.list();
        list.retain(|r| !r.has_left() || r.holds_pins());
        if let Some(known) = list.iter().position(|r| r.subscription == subscription) {
            // Each page counts its own bindings.
            if (list[known].index, list[known].generation) == (binding.index, binding.generation) {
                return Ok(Admitted::Known);
            }
            // It was detached or bound itself anew: this is another reader now.
            let old = list.remove(known);
            self.free_place(old.place, ADMISSION_FREE);
        }
        let free = self.admissions().iter().position(|a| {
            let state = a.state.load(Ordering::Relaxed);
            let mine = a.subscription.load(Ordering::Relaxed) == subscription;
            state == ADMISSION_FREE || (state == ADMISSION_DETACHED && mine)
        });
        // Those that linger for their pins have no place any more, but not without end.
        let free = free.filter(|_| list.len() < 2 * READERS_PER_LOG);
        let Some(place) = free.or_else(|| self.detached_place(&list)) else {
            self.refuse(subscription);
            let slot: &ReaderSlot = page.get(0);
            bells.ring(slot.bind.bell.load(Ordering::Relaxed));
            return Err(Error::LimitReached {
                what: format!("readers of {topic}"),
                limit: READERS_PER_LOG,
                hint: "let one subscriber per process feed the others".to_owned(),
            });
        };
        let log = self.map.log();
        let reader = Arc::new(ReaderRef {
            subscription,
            node: node.to_owned(),
            reliable: binding.reliable,
            index: binding.index,
            generation: binding.generation,
            publisher: self.map.id(),
            page,
            bells,
            start: AtomicU64::new(log.control.tail.tail.load(Ordering::Acquire)),
            place,
            left: AtomicBool::new(false),
            admitted: AtomicBool::new(false),
        });
        list.push(reader.clone());
        self.fresh.put(list.clone());
        self.let_go().remove(&subscription);
        drop(list);
        fail_point!("admit.listed");
        self.epoch.admit(log, &SleeperBarrier);
        let (start, start_seq) = self.starting_point(binding.history);
        reader.start.store(start, Ordering::Release);
        fail_point!("admit.start");
        let entry = &self.admissions()[place];
        entry.subscription.store(subscription, Ordering::Relaxed);
        fail_point!("admit.subscription");
        entry.generation.store(binding.generation, Ordering::Relaxed);
        fail_point!("admit.generation");
        entry.start.store(start, Ordering::Relaxed);
        fail_point!("admit.from");
        entry.start_seq.store(start_seq, Ordering::Relaxed);
        fail_point!("admit.seq");
        // SYNC-ADMIT: pairs with the acquire load in `Reader::find_admission`.
        entry.state.store(ADMISSION_ACTIVE, Ordering::Release);
        fail_point!("admit.active");
        reader.admitted.store(true, Ordering::Release);
        self.forget_refusal(subscription);
        reader.ring();
        fail_point!("admit.rung");
        Ok(Admitted::New)
    }

    /// A place that still tells a detached reader so, if no other is left.
    fn detached_place(&self, list: &[Arc<ReaderRef>]) -> Option<usize> {
        let used = |place| list.iter().any(|r| r.place == place);
        self.admissions().iter().enumerate().position(|(place, a)| {
            a.state.load(Ordering::Relaxed) == ADMISSION_DETACHED && !used(place)
        })
    }

    /// Position and sequence number from which a new reader reads: the end, or `history`
    /// messages before it. Call after the epoch was raised.
    fn starting_point(&self, history: u64) -> (u64, u64) {
        let log = self.map.log();
        let line = &log.control.tail;
        let mut tries = 0;
        let (end, end_seq) = loop {
            if let Some(end) = log.end() {
                break end;
            }
            tries += 1;
            if tries > START_TRIES {
                // A stray pointer of this process spoilt the log; any number will do.
                break (line.tail.load(Ordering::Acquire), line.seq.load(Ordering::Relaxed));
            }
            if tries % SPINS_PER_YIELD == 0 {
                // The writer's thread may wait for this very processor.
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        };
        if history == 0 {
            return (end, end_seq);
        }
        let from_seq = end_seq.saturating_sub(history);
        let mut reader = LogReader::new(log.control.head.head.load(Ordering::Acquire));
        let mut buf = vec![0u64; 2048];
        loop {
            let before = reader.position();
            if before >= end {
                return (end, end_seq);
            }
            match reader.next(&buf) {
                Ok(Some(record)) if record.seq >= from_seq => return (before, record.seq),
                Ok(Some(_)) => {}
                Ok(None) => match reader.pull(log, &mut buf) {
                    Pull::Batch | Pull::Lapped => {}
                    Pull::Empty | Pull::Corrupt(_) => return (end, end_seq),
                },
                Err(_) => return (end, end_seq),
            }
        }
    }

    fn refuse(&self, subscription: u64) {
        let turn = self.next_refusal.fetch_add(1, Ordering::Relaxed) as usize % REFUSALS_PER_LOG;
        let refusal = &self.map.control().refusals[turn];
        refusal.reason.store(REFUSED_FULL, Ordering::Relaxed);
        fail_point!("refuse.reason");
        refusal.subscription.store(subscription, Ordering::Release);
        fail_point!("refuse.subscription");
    }

    /// It is admitted after all; what was said before must not be taken for an answer the next time.
    fn forget_refusal(&self, subscription: u64) {
        for refusal in &self.map.control().refusals {
            if refusal.subscription.load(Ordering::Relaxed) == subscription {
                refusal.subscription.store(0, Ordering::Release);
            }
        }
    }

    fn free_place(&self, place: usize, state: u64) {
        self.admissions()[place].state.store(state, Ordering::Release);
    }

    /// Lets a reader go that unsubscribed; samples that it still holds stay pinned. Returns
    /// whether it was there.
    pub fn dismiss(&self, subscription: u64) -> bool {
        self.remove(subscription, ADMISSION_FREE, true)
    }

    /// Lets a reader go whose process has died, and its pins with it.
    pub fn bury(&self, subscription: u64) -> bool {
        self.remove(subscription, ADMISSION_FREE, false)
    }

    /// Forgets the readers of a node that is gone, those included that had unsubscribed and were
    /// kept for their pins: whoever held the samples is gone too.
    pub fn bury_node(&self, incarnation: u64) {
        let mut list = self.list();
        let before = list.len();
        list.retain(|reader| {
            let stays = incarnation_of(reader.subscription) != incarnation;
            if !stays && !reader.left.swap(true, Ordering::Relaxed) {
                self.free_place(reader.place, ADMISSION_FREE);
            }
            stays
        });
        let changed = list.len() != before;
        if changed {
            self.fresh.put(list.clone());
        }
        self.let_go().retain(|subscription, _| incarnation_of(*subscription) != incarnation);
        drop(list);
        if !changed {
            return;
        }
        fail_point!("bury.freed");
        self.epoch.raise();
        self.bells.ring(self.map.control().flow.bell.load(Ordering::Relaxed));
    }

    /// Lets a reader go because it stood still; its entry keeps the verdict until it asks again.
    pub(crate) fn detach(&self, subscription: u64) -> bool {
        let done = self.remove(subscription, ADMISSION_DETACHED, true);
        if done {
            fail_point!("detach.removed");
            self.map.control().flow.detached.fetch_add(1, Ordering::Relaxed);
            fail_point!("detach.counted");
        }
        done
    }

    /// Lets the readers go whose pages were cut off their files: they can neither show how far they
    /// are nor what they pin.
    pub(crate) fn let_go_truncated(&self) {
        let list = self.list();
        let spoilt = list.iter().filter(|r| r.page.is_spoilt()).map(|r| r.subscription);
        let gone: Vec<u64> = spoilt.collect();
        drop(list);
        for subscription in gone {
            self.remove(subscription, ADMISSION_FREE, false);
        }
    }

    fn remove(&self, subscription: u64, state: u64, keep_pins: bool) -> bool {
        let detaches = state == ADMISSION_DETACHED;
        let mut list = self.list();
        if !detaches {
            self.let_go().remove(&subscription);
        }
        let Some(at) = list.iter().position(|r| r.subscription == subscription) else {
            return false;
        };
        let reader = list[at].clone();
        let was_left = reader.left.swap(true, Ordering::Relaxed);
        if !(keep_pins && reader.holds_pins()) {
            list.remove(at);
        }
        self.fresh.put(list.clone());
        if was_left {
            return false;
        }
        fail_point!("remove.unlisted");
        // Before the reader can see it and ask again, and before anybody else sees that it is not served:
        // who looks in between would admit it as it was, or find nothing to do when it asks.
        if detaches {
            self.let_go().insert(subscription, (reader.index, reader.generation));
            self.some_detached.store(true, Ordering::Release);
        }
        self.free_place(reader.place, state);
        drop(list);
        fail_point!("remove.freed");
        self.epoch.raise();
        reader.ring();
        fail_point!("remove.rung");
        // The writer may sleep until this very reader makes room.
        self.bells.ring(self.map.control().flow.bell.load(Ordering::Relaxed));
        true
    }
}

/// What the readers of the private copy still need.
pub(crate) struct ReaderGate<'a>(pub &'a [Arc<ReaderRef>]);

impl Gate for ReaderGate<'_> {
    fn lowest_needed(&mut self) -> u64 {
        self.0.iter().filter(|r| r.reliable).map(|r| r.needed()).min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use rnet_core::{NodeName, PublisherQos, SubscriberQos, TypeDesc};

    use super::*;
    use crate::domain::{DomainConfig, DomainDir, random_u64};
    use crate::node::OwnNode;
    use crate::publisher::{PublisherMeta, Writer};
    use crate::subscription::{Binding, PeerSubscription, SubscriptionFile, SubscriptionMeta};

    /// Who was let go is not admitted as it was, whoever has its place by now, until it has asked again.
    #[test]
    fn one_that_was_let_go_has_to_ask_again() {
        let base = std::env::temp_dir().join(format!("rnet-roster-{:x}", random_u64()));
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
        };
        let writer = Writer::create(&node, node.folder().join("p"), id, &meta).unwrap();
        let roster = writer.roster();
        let readers: Vec<_> = (0..=READERS_PER_LOG)
            .map(|number| {
                let (type_desc, qos) = (TypeDesc::Raw, SubscriberQos::default());
                let meta = SubscriptionMeta { topic: topic(), type_desc, qos };
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
            roster.admit(readers[number].0, "/both", "/t", found(number), node.bells().clone())
        };
        (0..READERS_PER_LOG).for_each(|number| assert_eq!(admit(number).unwrap(), Admitted::New));
        let (let_go, _, _, slot) = &readers[0];
        assert!(roster.detach(*let_go) && !roster.serves(*let_go) && roster.take_detached());
        assert!(roster.was_detached(*let_go, &found(0).binding));
        // Another has its place, and a third leaves.
        assert_eq!(admit(READERS_PER_LOG).unwrap(), Admitted::New);
        assert!(roster.dismiss(readers[1].0));
        assert!(roster.was_detached(*let_go, &found(0).binding));
        rnet_ring::binding::ask_again(&slot.page().bind);
        assert!(!roster.was_detached(*let_go, &found(0).binding));
        assert_eq!(admit(0).unwrap(), Admitted::New);
        assert!(roster.serves(*let_go));
        drop((readers, writer, node));
        std::fs::remove_dir_all(&base).unwrap();
    }
}
