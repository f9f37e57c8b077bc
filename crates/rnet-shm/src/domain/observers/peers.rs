//! The observers of a domain, as the node of a publisher sees them.
//!
//! The control thread finds their files and hands each publisher the slots in which it is named; the
//! thread that sends looks at these after each message, and rings who sleeps there. What stands in a
//! slot decides about a ring and nothing else, and no observer is rung more than 2,000 times a second
//! by one publisher: so an observer that is stopped costs a load per message, and a hostile one that
//! and these rings.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use rnet_core::limits::{MAX_OBSERVERS_PER_DOMAIN, MAX_PUBLISHERS_PER_OBSERVER};
use rnet_ring::layout::{OBSERVER_SLOTS_PER_PAGE, ObserverSlot, PAGE_LEN_BYTES};
use rnet_ring::wake;

use super::{BELLS_SUFFIX, ENDPOINTS, MAGIC, PAGE, STATUS_SUFFIX, WAKE, listed, parse_id};
use crate::LAYOUT_VERSION;
use crate::domain::directory::DomainDir;
use crate::domain::node::incarnation_of;
use crate::os::bell::Bells;
use crate::os::files::{self, word_at};
use crate::os::mapping::{Access, Mapping};
use crate::os::{ofd, temp_file};

/// Between two rings of one publisher for one observer. An observer rests for twice as long between
/// two sleeps, so none that keeps to that is passed over.
const RING_PAUSE_NS: u64 = 500_000;
/// Doorbells without a file are left over from a kill once they are as old as this.
const STALE_AFTER: Duration = Duration::from_secs(1);

/// One observer, mapped.
#[derive(Debug)]
struct MappedObserver {
    /// By its lock it is known whether the observer lives.
    file: OwnedFd,
    bells: Arc<Bells>,
    pages: Vec<Arc<Mapping>>,
}

/// A slot in which an observer names a publisher.
#[derive(Clone, Debug)]
pub struct ObserverRef {
    publisher: u64,
    page: Arc<Mapping>,
    at: usize,
    bells: Arc<Bells>,
}

impl ObserverRef {
    fn slot(&self) -> &ObserverSlot {
        self.page.get(self.at)
    }

    /// Has the observer look again.
    pub(crate) fn ring(&self) {
        self.bells.ring(WAKE);
    }

    fn is(&self, other: &ObserverRef) -> bool {
        self.publisher == other.publisher
            && self.at == other.at
            && Arc::ptr_eq(&self.page, &other.page)
    }
}

/// Whether both lists name the same slots in the same order.
pub(crate) fn are_same(a: &[ObserverRef], b: &[ObserverRef]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is(b))
}

/// The observers of a domain.
#[derive(Debug)]
pub struct Observers {
    folder: PathBuf,
    known: BTreeMap<u64, MappedObserver>,
}

impl Observers {
    /// Those of the domain; none before the first [`Observers::refresh`].
    pub fn new(dir: &DomainDir) -> Observers {
        Observers { folder: dir.observers(), known: BTreeMap::new() }
    }

    /// Looks at who there is, and removes what the dead have left. `false` if nobody was there and
    /// nobody is.
    pub fn refresh(&mut self) -> bool {
        let here = listed(&self.folder);
        if here.is_empty() && self.known.is_empty() {
            // One that was killed early has left doorbells, or a temporary file, and no file.
            self.sweep_unlisted();
            return false;
        }
        self.known.retain(|id, known| here.contains(id) && known.lives() && !known.is_truncated());
        for id in here {
            if self.known.len() >= MAX_OBSERVERS_PER_DOMAIN {
                break;
            }
            if !self.known.contains_key(&id) {
                match self.open(id) {
                    Some(known) if known.lives() => drop(self.known.insert(id, known)),
                    Some(_) => self.sweep(id),
                    None => {}
                }
            }
        }
        self.known.values_mut().for_each(MappedObserver::map_pages);
        self.sweep_unlisted();
        true
    }

    fn open(&self, id: u64) -> Option<MappedObserver> {
        let path = self.folder.join(format!("{id:016x}"));
        let file = files::open_read(&path).ok()?;
        let mut header = [0u8; 24];
        files::read_exact_at(&file, &mut header, 0).ok()?;
        let expected = [MAGIC, u64::from(LAYOUT_VERSION), id];
        (0..3).all(|at| word_at(&header, at) == expected[at]).then_some(())?;
        let bells = Bells::open(&self.bells_of(id)).ok();
        // One that died may have taken them with it; its file is still to be swept.
        let bells = match bells {
            Some(bells) => Arc::new(bells),
            None => {
                if !is_held(&file) {
                    self.sweep(id);
                }
                return None;
            }
        };
        Some(MappedObserver { file, bells, pages: Vec::new() })
    }

    fn bells_of(&self, id: u64) -> PathBuf {
        self.folder.join(format!("{id:016x}{BELLS_SUFFIX}"))
    }

    fn sweep(&self, id: u64) {
        let _ = rustix::fs::unlink(self.folder.join(format!("{id:016x}")));
        let _ = rustix::fs::unlink(self.bells_of(id));
        let _ = rustix::fs::unlink(self.folder.join(format!("{id:016x}{STATUS_SUFFIX}")));
    }

    /// Removes what those have left that were killed before they had a file.
    fn sweep_unlisted(&self) {
        temp_file::sweep(&self.folder);
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let of = |name: &str| {
                let id =
                    name.strip_suffix(BELLS_SUFFIX).or_else(|| name.strip_suffix(STATUS_SUFFIX));
                id.and_then(parse_id)
            };
            let Some(id) = name.to_str().and_then(of) else { continue };
            let made = entry.metadata().and_then(|meta| meta.modified());
            let age = made.ok().and_then(|made| SystemTime::now().duration_since(made).ok());
            if age.is_none_or(|age| age > STALE_AFTER)
                && rustix::fs::lstat(self.folder.join(format!("{id:016x}"))).is_err()
            {
                let _ = rustix::fs::unlink(entry.path());
            }
        }
    }

    /// The slots that name publishers of this node, by publisher.
    pub fn of_node(&self, incarnation: u64) -> HashMap<u64, Vec<ObserverRef>> {
        let mut found: HashMap<u64, Vec<ObserverRef>> = HashMap::new();
        for known in self.known.values() {
            // One that names a publisher more than once gets one slot of it.
            let mut named = BTreeSet::new();
            for page in &known.pages {
                for slot in 0..OBSERVER_SLOTS_PER_PAGE {
                    let at = slot * size_of::<ObserverSlot>();
                    let publisher = page.get::<ObserverSlot>(at).publisher.load(Ordering::Acquire);
                    if publisher != 0
                        && incarnation_of(publisher) == incarnation
                        && named.insert(publisher)
                    {
                        let (page, bells) = (page.clone(), known.bells.clone());
                        let slot = ObserverRef { publisher, page, at, bells };
                        found.entry(publisher).or_default().push(slot);
                    }
                }
            }
        }
        found
    }

    /// Tells all observers that endpoints have come or gone.
    pub fn ring_endpoints(&self) {
        for known in self.known.values() {
            known.bells.ring(ENDPOINTS);
            known.bells.ring(WAKE);
        }
    }
}

impl MappedObserver {
    fn lives(&self) -> bool {
        is_held(&self.file)
    }

    fn is_truncated(&self) -> bool {
        self.pages.iter().any(|page| page.is_truncated())
    }

    fn map_pages(&mut self) {
        let most = MAX_PUBLISHERS_PER_OBSERVER / OBSERVER_SLOTS_PER_PAGE;
        let len = files::len_of(&self.file).unwrap_or(0);
        let pages = (len / PAGE).saturating_sub(1).min(most as u64) as usize;
        for page in self.pages.len()..pages {
            let at = PAGE * (1 + page as u64);
            match Mapping::new(self.file.as_fd(), at, PAGE_LEN_BYTES, Access::Read, false) {
                Ok(page) => self.pages.push(Arc::new(page)),
                // Tried again with the next look.
                Err(_) => break,
            }
        }
    }
}

pub(super) fn is_held(file: &OwnedFd) -> bool {
    !matches!(ofd::holder(file, ofd::WHOLE), Ok(None))
}

/// The observers that a writer looks at after each message.
#[derive(Debug, Default)]
pub(crate) struct ObserverBells(Vec<ObserverBell>);

#[derive(Debug)]
struct ObserverBell {
    observer: ObserverRef,
    /// The ticket that was rung for last, and when.
    ticket: u64,
    at_ns: u64,
}

impl ObserverBells {
    /// Takes another list of observers.
    pub(crate) fn replace_all(&mut self, observers: Vec<ObserverRef>) {
        let rung = |observer| ObserverBell { observer, ticket: 0, at_ns: 0 };
        self.0 = observers.into_iter().map(rung).collect();
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// After a message that was sent at `now_ns` and the light barrier: rings the observers that sleep.
    #[cold]
    pub(crate) fn ring(&mut self, now_ns: u64) {
        for rung in &mut self.0 {
            let slot = rung.observer.slot();
            if now_ns.saturating_sub(rung.at_ns) >= RING_PAUSE_NS
                && wake::must_ring(&slot.asleep, &mut rung.ticket)
                // It may have given the slot to another publisher.
                && slot.publisher.load(Ordering::Relaxed) == rung.observer.publisher
            {
                rung.at_ns = now_ns;
                rung.observer.ring();
            }
        }
    }
}
