//! A subscription's file: what it wants, and one page per publisher it reads from.
//!
//! The file belongs to the subscriber. A publisher that admits it maps the page that is bound to
//! it, read-only, and sees there how far the reader is, whether it sleeps, and what it pins.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rnet_core::{Error, MAX_PINS_PER_READER, MAX_PUBLISHERS_PER_SUBSCRIPTION};
use rnet_core::{Proxy, SubscriberQos, TypeDesc};
use rnet_ring::binding::{self, BindRequest};
use rnet_ring::fail_point;
use rnet_ring::layout::{BindLine, CountLine, PAGE_LEN_BYTES, ReaderSlot};
use rnet_ring::layout::{SLOT_BOUND, SLOT_FREE, SLOT_TOTALS};
use serde::{Deserialize, Serialize};

use crate::LAYOUT_VERSION;
use crate::domain::endpoint_file::{corrupt, meta_json, parse_meta, read_endpoint_header};
use crate::domain::node::OwnNode;
use crate::domain::presence;
use crate::os::files::{self, create_error, io_error, word_at};
use crate::os::fork::ForkGuard;
use crate::os::mapping::{Access, Mapping};

mod link;

pub use link::{LinkRole, PassivePage};

const MAGIC: u64 = u64::from_le_bytes(*b"RNETSUB\x01");
const HEADER_WORDS: usize = 7;
const SLOT_COUNT_AT: u64 = 6 * 8;
const PAGE: u64 = PAGE_LEN_BYTES as u64;
/// Pages of readers in one file: one for the sums of those that are gone; and for each publisher that
/// may be there one, and one for what others have left unread.
const MAX_SLOTS: usize = 1 + 2 * MAX_PUBLISHERS_PER_SUBSCRIPTION;

/// What a subscription says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubscriptionMeta {
    /// The topic.
    pub topic: String,
    /// The message type it expects.
    #[serde(rename = "type")]
    pub type_desc: TypeDesc,
    /// The quality of service it asks for.
    pub qos: SubscriberQos,
    /// Whom it stands for, if it is a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// What it does for a link between hosts, if it is no ordinary one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRole>,
}

/// How a slot is to be bound.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The publisher.
    pub publisher: u64,
    /// Whether the reader holds the writer back.
    pub reliable: bool,
    /// What it asks for of what was sent before, a [`HistoryRequest`](rnet_ring::binding::HistoryRequest) as its word.
    pub history: u64,
    /// Which of the reader's node's bells wakes it.
    pub bell: u64,
}

/// One page of our own subscription, bound to one publisher.
#[derive(Debug)]
pub struct Slot {
    map: Mapping,
    /// Which pins are taken, a bit each; private, so that threads can let go of samples.
    pins_taken: AtomicU64,
    /// Set while the reader cannot go on for want of a pin: the next one freed wakes it.
    wants_pin: AtomicBool,
    /// Samples keep their node: its presence is what makes publishers honour the pins.
    node: Arc<OwnNode>,
}

impl Slot {
    /// The page as its publisher sees it.
    #[inline]
    pub fn page(&self) -> &ReaderSlot {
        self.map.get(0)
    }

    /// Whether the page was cut off the file: nobody sees any more what is written to it.
    pub(crate) fn is_truncated(&self) -> bool {
        self.map.is_truncated()
    }

    /// A free pin, or `None` if all are taken.
    pub fn take_pin(&self) -> Option<usize> {
        let mut taken = self.pins_taken.load(Ordering::Relaxed);
        loop {
            let free = (!taken).trailing_zeros() as usize;
            if free >= MAX_PINS_PER_READER {
                self.wants_pin.store(true, Ordering::SeqCst);
                // One freed just before that store would wake nobody.
                taken = self.pins_taken.load(Ordering::SeqCst);
                if taken == u64::MAX {
                    return None;
                }
                continue;
            }
            let with = taken | 1 << free;
            let swap = self.pins_taken.compare_exchange_weak(
                taken,
                with,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match swap {
                Ok(_) => {
                    self.wants_pin.store(false, Ordering::SeqCst);
                    return Some(free);
                }
                Err(now) => taken = now,
            }
        }
    }

    /// Lets go of a pin.
    pub fn release_pin(&self, pin: usize) {
        // A forked child has a copy of the sample; the pin is its parent's.
        if self.node.fork_guard().is_from_parent() {
            return;
        }
        rnet_ring::pins::unpin(&self.page().pins[pin]);
        self.pins_taken.fetch_and(!(1 << pin), Ordering::SeqCst);
        if self.wants_pin.swap(false, Ordering::SeqCst) {
            self.node.bells().ring(self.page().bind.bell.load(Ordering::Relaxed));
        }
    }

    /// The reader no longer waits for a pin: it gave up the message that needed one.
    pub fn cancel_pin_wait(&self) {
        self.wants_pin.store(false, Ordering::SeqCst);
    }

    /// Whether the reader waits for a sample to be dropped.
    pub fn wants_pin(&self) -> bool {
        self.wants_pin.load(Ordering::Acquire)
    }

    /// Whether samples still point into chunks of this slot's publisher.
    pub fn holds_pins(&self) -> bool {
        self.pins_taken.load(Ordering::Acquire) != 0
    }
}

/// Our own subscription's file; unlinked on drop.
#[derive(Debug)]
pub struct SubscriptionFile {
    node: Arc<OwnNode>,
    id: u64,
    path: PathBuf,
    slots_at: u64,
    slots: Mutex<Vec<Arc<Slot>>>,
    /// Requests to read that it has made, on all pages together.
    requests: AtomicU64,
}

impl SubscriptionFile {
    /// The node it belongs to.
    pub(crate) fn own_node(&self) -> &OwnNode {
        &self.node
    }

    /// Creates the file `path` for the subscription `id`.
    pub fn create(
        node: Arc<OwnNode>,
        path: PathBuf,
        id: u64,
        meta: &SubscriptionMeta,
    ) -> Result<SubscriptionFile, Error> {
        let json = meta_json(meta)?;
        let slots_at = PAGE + (json.len() as u64).next_multiple_of(PAGE);
        let failed = |e| create_error(Some(&meta.topic), &path, slots_at, e);
        let file =
            files::create_sized(&path, slots_at, node.domain().file_mode()).map_err(failed)?;
        let words = [MAGIC, u64::from(LAYOUT_VERSION), id, 0, json.len() as u64, slots_at, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let written = files::write_all_at(&file, &json, PAGE)
            .and_then(|()| {
                fail_point!("subscription.meta");
                files::write_all_at(&file, &bytes, 0)
            })
            .map_err(failed);
        drop(file);
        let slots = Mutex::new(Vec::new());
        // From here on the file is removed with it, whatever fails.
        let own = SubscriptionFile { node, id, path, slots_at, slots, requests: AtomicU64::new(0) };
        written?;
        fail_point!("subscription.header");
        let past = own.grow(&meta.topic, &mut own.lock())?;
        past.page().bind.state.store(SLOT_TOTALS, Ordering::Release);
        fail_point!("subscription.past");
        Ok(own)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a slot back: its publisher is gone or let go of. Its counters join those of all
    /// publishers that are gone, so that what tools read never goes backwards.
    pub(crate) fn release(&self, slot: &Slot) {
        let slots = self.lock();
        let page = slot.page();
        if let Some(past) = slots.first() {
            let add = |to: &AtomicU64, from: &AtomicU64| {
                to.fetch_add(from.swap(0, Ordering::Relaxed), Ordering::Relaxed);
                fail_point!("release.add");
            };
            let (to, from) = (&past.page().count, &page.count);
            add(&to.received, &from.received);
            add(&to.bytes, &from.bytes);
            add(&to.lost_overrun, &from.lost_overrun);
            add(&to.lost_link, &from.lost_link);
            add(&to.lost_restart, &from.lost_restart);
            add(&to.lost_detached, &from.lost_detached);
            add(&to.skipped, &from.skipped);
            add(&to.sum_latency_ns, &from.sum_latency_ns);
            add(&to.late_wakes, &from.late_wakes);
            add(&to.malformed, &from.malformed);
            add(&to.expired, &from.expired);
            add(&to.deadline_missed, &from.deadline_missed);
            let longest = from.max_latency_ns.swap(0, Ordering::Relaxed);
            to.max_latency_ns.fetch_max(longest, Ordering::Relaxed);
            for (to, from) in past.page().latency.iter().zip(&page.latency) {
                add(to, from);
            }
        }
        fail_point!("release.summed");
        binding::free(&page.bind);
        fail_point!("release.free");
    }

    /// Counts a message of `publisher` that could not be decoded; of one that is gone, among those.
    pub fn count_malformed(&self, publisher: u64) {
        self.count_of(publisher, |count| count.malformed.fetch_add(1, Ordering::Relaxed));
    }

    /// Counts periods of the deadline in which `publisher` sent nothing; of one that is gone, among those.
    pub fn count_deadline_missed(&self, publisher: u64, periods: u64) {
        self.count_of(publisher, |c| c.deadline_missed.fetch_add(periods, Ordering::Relaxed));
    }

    fn count_of(&self, publisher: u64, add: impl Fn(&CountLine) -> u64) {
        let slots = self.lock();
        let is_its = |slot: &&Arc<Slot>| {
            let bind = &slot.page().bind;
            bind.state.load(Ordering::Acquire) == SLOT_BOUND
                && bind.publisher.load(Ordering::Relaxed) == publisher
        };
        if let Some(slot) = slots.iter().find(is_its).or(slots.first()) {
            add(&slot.page().count);
        }
    }

    /// The pages there are, bound or not; the first adds up the publishers that are gone.
    pub fn slots(&self) -> Vec<Arc<Slot>> {
        self.lock().clone()
    }

    /// The subscription's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// In which process it was made.
    pub fn fork_guard(&self) -> ForkGuard {
        self.node.fork_guard()
    }

    /// Whether the node of this folder lives.
    pub(crate) fn is_node_alive(&self, folder: &Path) -> bool {
        let name = folder.file_name().and_then(|name| name.to_str());
        name.and_then(presence::parse_folder_name)
            .is_some_and(|(stem, id)| presence::is_alive(self.node.domain(), stem, id))
    }

    /// The incarnation of its node.
    pub fn node(&self) -> u64 {
        self.node.incarnation()
    }

    /// Rings the node whose folder it is: something has changed at this one.
    pub fn ring(&self, folder: &Path) {
        self.node.ring(folder);
    }

    /// A number for the next request to read.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Binds a page to a publisher, which can then admit this reader.
    pub fn bind(&self, topic: &str, binding: Binding) -> Result<Arc<Slot>, Error> {
        let mut slots = self.lock();
        let free = slots.iter().find(|slot| {
            let state = slot.page().bind.state.load(Ordering::Acquire);
            state == SLOT_FREE && !slot.holds_pins() && !slot.is_truncated()
        });
        let slot = match free {
            Some(slot) => slot.clone(),
            None => self.grow(topic, &mut slots)?,
        };
        slot.cancel_pin_wait();
        let page = slot.page();
        page.cursor.cursor.store(0, Ordering::Relaxed);
        page.count.next_seq.store(0, Ordering::Relaxed);
        fail_point!("bind.cursor");
        page.bind.asleep.store(0, Ordering::Relaxed);
        fail_point!("bind.asleep");
        page.bind.bell.store(binding.bell, Ordering::Relaxed);
        fail_point!("bind.bell");
        let Binding { publisher, reliable, history, .. } = binding;
        let request = BindRequest { publisher, subscription: self.id, reliable, history };
        binding::bind(&page.bind, request, self.next_request());
        Ok(slot)
    }

    fn grow(&self, topic: &str, slots: &mut Vec<Arc<Slot>>) -> Result<Arc<Slot>, Error> {
        if slots.len() >= MAX_SLOTS {
            return Err(too_many_publishers(topic));
        }
        let at = self.slots_at + slots.len() as u64 * PAGE;
        let failed = |e| create_error(Some(topic), &self.path, PAGE, e);
        // Opened when it grows, not kept open: a node may have thousands of subscriptions.
        let file = files::open_write(&self.path).map_err(failed)?;
        if files::len_of(&file).map_err(failed)? < at {
            // Our readers' pages and the header with them: no publisher would find us there.
            return Err(Error::Corrupt {
                topic: topic.to_owned(),
                publisher_node: self.node.name().to_string(),
                what: format!(
                    "the subscriber's own file {} was truncated; reopen the subscriber",
                    self.path.display()
                ),
            });
        }
        rustix::fs::ftruncate(&file, at + PAGE)
            .and_then(|()| {
                fail_point!("slots.sized");
                files::reserve(&file, at, PAGE)
            })
            .map_err(failed)?;
        fail_point!("slots.reserved");
        let map =
            Mapping::new(file.as_fd(), at, PAGE_LEN_BYTES, Access::Write, true).map_err(failed)?;
        let slot = Arc::new(Slot {
            map,
            pins_taken: AtomicU64::new(0),
            wants_pin: AtomicBool::new(false),
            node: self.node.clone(),
        });
        let count = (slots.len() as u64 + 1).to_le_bytes();
        files::write_all_at(&file, &count, SLOT_COUNT_AT).map_err(failed)?;
        fail_point!("slots.counted");
        // Last: a page that publishers do not know of must not be bound.
        slots.push(slot.clone());
        Ok(slot)
    }
}

impl Drop for SubscriptionFile {
    fn drop(&mut self) {
        if self.fork_guard().is_from_parent() {
            return;
        }
        fail_point!("subscription.leaving");
        crate::os::folders::remove(&self.path);
        fail_point!("subscription.unlinked");
    }
}

/// The error for one publisher more than a subscriber may follow.
pub fn too_many_publishers(topic: &str) -> Error {
    Error::LimitReached {
        what: format!("publishers of {topic} at one subscriber"),
        limit: MAX_PUBLISHERS_PER_SUBSCRIPTION,
        hint: "spread them over several topics".to_owned(),
    }
}

fn cannot_map(topic: &str, errno: rustix::io::Errno) -> Error {
    let (doing, path) = ("cannot map the page of a reader of", Path::new(topic));
    crate::os::shortage::error_for(doing, path, Some(topic), PAGE, errno)
        .unwrap_or_else(|| io_error(doing, path, errno))
}

/// A peer's subscription as its file describes it.
#[derive(Debug)]
pub struct PeerSubscription {
    file: OwnedFd,
    /// What it says of itself.
    pub meta: SubscriptionMeta,
    slots_at: u64,
}

/// A page of a peer's file that is bound to a publisher of ours, mapped.
#[derive(Debug)]
pub struct BoundPage {
    /// What it asks for.
    pub binding: PeerBinding,
    pub(crate) page: Mapping,
}

/// A slot's binding as read from a peer's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerBinding {
    /// Which of the subscription's requests it is.
    pub generation: u64,
    /// Whether the reader holds the writer back.
    pub reliable: bool,
    /// What it asks for of what was sent before, a [`HistoryRequest`](rnet_ring::binding::HistoryRequest) as its word.
    pub history: u64,
    /// How many of the newest messages it wants; `None`: every one.
    pub keep_last: Option<u32>,
    /// What the subscription does for a link between hosts.
    pub link: Option<LinkRole>,
}

impl PeerSubscription {
    /// Reads a subscription's file.
    pub fn open(path: &Path, id: u64) -> Result<PeerSubscription, Error> {
        let (file, header, json) = read_endpoint_header(path, MAGIC, HEADER_WORDS)?;
        let meta: SubscriptionMeta = parse_meta(path, &json)?;
        if word_at(&header, 2) != id {
            return Err(corrupt(path, "the file belongs to another subscription"));
        }
        let slots_at = word_at(&header, 5);
        if !slots_at.is_multiple_of(PAGE) || slots_at > 1 << 32 {
            return Err(corrupt(path, "the slots are not on a page bound"));
        }
        Ok(PeerSubscription { file, meta, slots_at })
    }

    /// All pages of the file, as words; for tools and for finding a binding.
    pub fn slots(&self) -> impl Iterator<Item = (u64, Vec<u8>)> + '_ {
        let mut count = [0u8; 8];
        let _ = files::read_exact_at(&self.file, &mut count, SLOT_COUNT_AT);
        let count = u64::from_le_bytes(count).min(MAX_SLOTS as u64);
        (0..count).filter_map(|index| {
            let mut page = vec![0u8; PAGE_LEN_BYTES];
            files::read_exact_at(&self.file, &mut page, self.slots_at + index * PAGE).ok()?;
            Some((index, page))
        })
    }

    /// The page that is bound to `publisher`, mapped read-only, if there is one.
    ///
    /// # Errors
    /// `OutOfMemory` or `Io` if the page cannot be mapped.
    pub fn binding_to(&self, publisher: u64) -> Result<Option<BoundPage>, Error> {
        // The newest, while the subscription still drains what it had of an earlier one.
        let asks = |(index, page): (u64, Vec<u8>)| {
            let word = |at: usize| word_at(&page, at / 8);
            (word(128) == SLOT_BOUND && word(136) == publisher).then(|| (word(152), index))
        };
        let Some((_, index)) = self.slots().filter_map(asks).max() else { return Ok(None) };
        let at = self.slots_at + index * PAGE;
        let page = Mapping::new(self.file.as_fd(), at, PAGE_LEN_BYTES, Access::Read, true)
            .map_err(|e| cannot_map(&self.meta.topic, e))?;
        // What a `pread` copies of a page that changes may be of any mixture of times: it says where to look,
        // and no more.
        let slot: &ReaderSlot = page.get(0);
        let Some((request, generation)) = binding::read(&slot.bind, publisher) else {
            return Ok(None);
        };
        let BindRequest { reliable, history, .. } = request;
        let keep_last = self.meta.qos.depth();
        let link = self.meta.link;
        let binding = PeerBinding { generation, reliable, history, keep_last, link };
        Ok(Some(BoundPage { binding, page }))
    }
}

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(ReaderSlot, bind) == 128);
    assert!(offset_of!(BindLine, publisher) == 8);
    assert!(offset_of!(BindLine, generation) == 24);
};

#[cfg(test)]
mod tests {
    use rnet_core::NodeName;

    use super::*;
    use crate::domain::directory::{DomainConfig, DomainDir};
    use crate::os::random::random_u64;

    /// A page goes from publisher to publisher while another process looks for its own: it finds the whole
    /// of a binding that is its own, or none.
    #[test]
    fn a_binding_is_read_whole() {
        let base = std::env::temp_dir().join(format!("rnet-binding-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let name = NodeName::new("reader").unwrap();
        let node = Arc::new(OwnNode::create(&dir, &name, "rust", "0").unwrap());
        let (id, path) = (node.next_endpoint().unwrap(), node.folder().join("s0"));
        let (topic, type_desc) = ("/t".to_owned(), TypeDesc::Raw);
        let meta = SubscriptionMeta {
            topic,
            type_desc,
            qos: SubscriberQos::default(),
            proxy: None,
            link: None,
        };
        let file = SubscriptionFile::create(node, path.clone(), id, &meta).unwrap();
        let mut seen = 0;
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for turn in 0..100_000_u64 {
                    let publisher = 1 + turn % 2;
                    let reliable = publisher == 1;
                    // What it asks for says whose it is, and which of them.
                    let binding = Binding { publisher, reliable, history: turn + 1, bell: 0 };
                    let slot = file.bind("/t", binding).unwrap();
                    file.release(&slot);
                }
            });
            let peer = PeerSubscription::open(&path, id).unwrap();
            while !writer.is_finished() {
                for publisher in [1, 2] {
                    let Some(bound) = peer.binding_to(publisher).unwrap() else { continue };
                    let found = bound.binding;
                    seen += 1;
                    assert_eq!(found.reliable, publisher == 1, "{found:?}");
                    assert_eq!(found.history, found.generation, "{found:?}");
                }
            }
        });
        assert!(seen > 0);
        drop(file);
        std::fs::remove_dir_all(&base).unwrap();
    }
}
