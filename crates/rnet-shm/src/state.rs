//! The state of a domain: one file that every node that uses state maps.
//!
//! [`rnet_ring::state`] has the algorithms, docs/design/state-layout.md the layout. This module provides what
//! they need from the kernel: the file and its memory, liveness, and sleeping threads.
//!
//! | module | contents |
//! |---|---|
//! | `file` | creating and mapping the file |
//! | `process_slots` | a slot for each node, and cleaning up after dead nodes |
//! | `read` | reading one key, and many as of one revision |
//! | `record` | what is written and read |
//! | `expiry` | the memory of expired keys |
//! | `follow` | changes, and the followers that sleep until the next one |
//! | `bells` | the bells that wake followers |
//! | `time` | the clocks |
//! | `blocking_hooks` | what a binding does while a thread waits for the disk |
//! | `persist_requests` | writing transactions to disk before they commit |
//! | `folder_binding` | the folder on disk |

mod bells;
mod blocking_hooks;
mod expiry;
mod file;
mod folder_binding;
mod follow;
mod persist_requests;
mod process_slots;
mod read;
mod record;
mod time;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rnet_core::{Error, MAX_KEY_LEN_BYTES, MAX_TRANSACTION_KEYS, MAX_VALUE_LEN_BYTES};
use rnet_ring::state::layout::{FOLLOWER_BELL, FOLLOWER_OWNER, Geometry, PROCESS_OWNER};
use rnet_ring::state::leaf::{DELETED, MEMORY_ONLY};
use rnet_ring::state::{
    self as ring, CommitError, CommitOutcome, Environment, Key, LeafContent, LeafMeta, LocalBlocks,
    Usage,
};

use crate::domain::node::OwnNode;
use crate::os::clock;
use crate::os::files;

pub use blocking_hooks::{BlockingHooks, with_blocking_hooks};
pub use file::FileStatus;
pub use follow::{Follower, NextChange};
pub use persist_requests::{
    DiskValue, DurableChange, PersistRequest, PersisterControl, PersisterHandle, RestoreOutcome,
};
pub use read::KeyPath;
pub use record::{Guard, Head, Record, StoredValue, Will, Write};
pub use time::Clock;

/// Version of the layout of the file `state`.
pub const STATE_VERSION: u64 = 3;

/// Decides whether a key may be written, given its current head (`None`: absent).
pub type Check<'a> = dyn FnMut(usize, Option<&Head>) -> Result<(), Error> + 'a;

/// Values up to this length are written while the node's lock is held; a longer one would block other
/// threads.
const SHORT_LEN_BYTES: usize = 4096;
/// Number of spins after a failed compare-and-set: about a microsecond.
const CONFLICT_SPINS: u32 = 32;
/// Maximum number of times in a row that this is doubled.
const MAX_BACKOFF_DOUBLINGS: u32 = 4;
/// Attempts of a commit that meets concurrent commits, before it fails.
const MAX_ATTEMPTS: usize = 1000;

/// The state of a domain, as one node sees it.
pub struct Region {
    inner: Arc<Inner>,
}

/// What a region's handles and followers share.
struct Inner {
    file: file::StateFile,
    own: Arc<OwnNode>,
    process_slot: u16,
    seed: u64,
    local: Mutex<LocalBlocks>,
    clock: Clock,
    /// Failed conditions since the last successful write: consecutive lost races.
    conflicts: AtomicU32,
    /// Whether a last will of this node could not be executed when it exited.
    wills_left: AtomicBool,
    /// Held by the sweeping thread.
    sweeping: Mutex<()>,
    /// Keys of this node that expire.
    expiries: Mutex<expiry::ExpiryQueue>,
    persister_control: Mutex<Option<Arc<dyn PersisterControl>>>,
    peer_bells: bells::PeerBells,
    /// Transactions that the persister was still writing when their writers timed out.
    abandoned: Mutex<Vec<ring::block_words::BlockRef>>,
}

impl Environment for Inner {
    fn back_with_memory(&self, first_word: usize, words: usize) -> bool {
        files::reserve(&self.file.fd, first_word as u64 * 8, words as u64 * 8).is_ok()
    }
    fn wake(&self, follower: usize) {
        let ring = self.ring();
        let word = |word| ring.follower(follower, word).load(Ordering::Acquire);
        // The value decides only about a ring.
        let process_slot = word(FOLLOWER_OWNER).wrapping_sub(1) as usize;
        if process_slot < ring.geometry().process_slots {
            let node = ring.process_slot(process_slot, PROCESS_OWNER).load(Ordering::Acquire);
            let lives = || self.file.process_slot_is_locked(process_slot);
            let now_ns = clock::now_ns;
            if let Some(bells) = self.peer_bells.of(&self.own, process_slot, node, now_ns, lives) {
                bells.ring(word(FOLLOWER_BELL));
            }
        }
    }
}

impl Inner {
    fn ring(&self) -> ring::Region<'_> {
        ring::Region::new(self.file.words(), Geometry::DOMAIN, self.seed)
            .expect("the mapping has the geometry's length")
    }

    fn local(&self) -> MutexGuard<'_, LocalBlocks> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key<'k>(&self, key: &'k str) -> Result<Key<'k>, Error> {
        Key::new(key.as_bytes(), self.seed, &Geometry::DOMAIN).ok_or_else(|| Error::BadName {
            what: "key",
            name: key.chars().take(64).collect(),
            why: format!("it has {} bytes; 1 to {MAX_KEY_LEN_BYTES} are allowed", key.len()),
        })
    }

    /// The region, or the error if its memory is invalid.
    fn checked_ring(&self) -> Result<ring::Region<'_>, Error> {
        if self.file.is_truncated() {
            return Err(Error::Corrupt {
                topic: "state".to_owned(),
                publisher_node: self.file.path.display().to_string(),
                what: self.file.why_corrupt().to_owned(),
            });
        }
        Ok(self.ring())
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::Corrupt {
            topic: "state".to_owned(),
            publisher_node: self.file.path.display().to_string(),
            what: format!("{what}; stop the nodes of this domain and remove the file"),
        }
    }

    /// The error for a read as of a revision that does not complete.
    fn unread_error(&self, ring: &ring::Region<'_>, what: &str) -> Error {
        if !ring.has_free_lease() {
            return Error::LimitReached {
                what: "concurrent readers of one state revision".to_owned(),
                limit: ring::layout::SNAPSHOT_LEASES,
                hint: "take fewer snapshots at once, or try again".to_owned(),
            };
        }
        self.corrupt(what)
    }

    fn full_error(&self, bytes: usize) -> Error {
        Error::OutOfMemory {
            topic: "state".to_owned(),
            needed_bytes: bytes as u64,
            limit_bytes: rnet_core::MAX_STATE_LEN_BYTES,
            why: format!(
                "{} is full (df -h {}); delete keys, or enlarge the file system",
                self.file.path.display(),
                self.own.domain().path().display()
            ),
        }
    }
}

impl Region {
    /// Opens the state of the node's domain and creates it if it does not exist. Cleans up after dead nodes.
    ///
    /// # Errors
    /// `OutOfMemory`, `NoPermission`, `Io`; `LayoutVersion`, `Corrupt` for a file of another kind;
    /// `LimitReached` if too many nodes use state.
    pub fn open(own: &Arc<OwnNode>, clock: impl Into<Clock>) -> Result<Region, Error> {
        let region = Region::open_unswept(own, clock.into())?;
        region.sweep_dead();
        Ok(region)
    }

    /// Like [`Region::open`], without the cleanup: for the node that becomes the persister of durable state,
    /// which writes the last wills of durable keys. It sweeps afterwards.
    ///
    /// # Errors
    /// Errors of [`Region::open`].
    pub fn open_unswept(own: &Arc<OwnNode>, clock: Clock) -> Result<Region, Error> {
        let (file, seed) = file::StateFile::open(own.domain())?;
        let words = file.words();
        let ring = ring::Region::new(words, Geometry::DOMAIN, seed)
            .ok_or_else(|| file.corrupt_error("it is too short"))?;
        let process_slot =
            process_slots::claim(&file, &ring, own.incarnation()).ok_or_else(|| {
                Error::LimitReached {
                    what: "nodes that use state".to_owned(),
                    limit: Geometry::DOMAIN.process_slots,
                    hint: "stop some nodes".to_owned(),
                }
            })?;
        let inner = Arc::new(Inner {
            file,
            own: own.clone(),
            process_slot,
            seed,
            local: Mutex::new(LocalBlocks::new(process_slot)),
            clock,
            conflicts: AtomicU32::new(0),
            wills_left: AtomicBool::new(false),
            sweeping: Mutex::new(()),
            expiries: Mutex::default(),
            persister_control: Mutex::new(None),
            peer_bells: bells::PeerBells::default(),
            abandoned: Mutex::default(),
        });
        Ok(Region { inner })
    }

    /// Writes keys atomically. `check` gets each key's current head (`None`: absent) at each attempt; its
    /// error aborts the commit. Returns the revision, the same for all keys; 0 if nothing changed.
    ///
    /// # Errors
    /// `Conflict`; the error of `check`; `OutOfMemory`, `LimitReached`, `BadName`, `BadValue` for a key that
    /// is named twice; `Storage` and `Timeout` for durable keys; `Corrupt`.
    pub fn commit(
        &self,
        writes: &[Write<'_>],
        guards: &[Guard<'_>],
        check: &mut Check<'_>,
    ) -> Result<u64, Error> {
        let mut done = self.commit_now(writes, guards, check, 0);
        // Retries once after the memory of expired keys was freed.
        if matches!(done, Err(Error::OutOfMemory { .. })) && self.reap() {
            done = self.commit_now(writes, guards, check, 0);
        }
        let revision = done?;
        for write in writes {
            let ends = write.value.map_or(0, |value| value.expires_boot_ns);
            if ends != 0 {
                self.track_expiry(ends, revision, write.key);
            }
        }
        Ok(revision)
    }

    /// Like [`Region::commit`], but only in memory. The disk stays unchanged until a persister opens it again
    /// and makes it match the memory. For changes that must succeed even if the disk is not writable.
    ///
    /// # Errors
    /// Errors of [`Region::commit`], without `Storage`.
    pub fn commit_in_memory(
        &self,
        writes: &[Write<'_>],
        guards: &[Guard<'_>],
    ) -> Result<u64, Error> {
        self.commit_now(writes, guards, &mut |_, _| Ok(()), MEMORY_ONLY)
    }

    fn commit_now(
        &self,
        writes: &[Write<'_>],
        guards: &[Guard<'_>],
        check: &mut Check<'_>,
        flags: u16,
    ) -> Result<u64, Error> {
        let inner = &*self.inner;
        check_lengths(writes, guards)?;
        if let ([write], [], 0) = (writes, guards, flags) {
            return self.commit_one(write, check);
        }
        let keys = writes.iter().map(|w| inner.key(w.key)).collect::<Result<Vec<_>, _>>()?;
        let (writes, guards) = &conditions(writes, guards);
        let guard_keys = guards.iter().map(|g| inner.key(g.key)).collect::<Result<Vec<_>, _>>()?;
        let (now, unix_now) = (inner.clock.boot_ns(), inner.clock.unix_ns());
        let writer = inner.own.name().as_str().as_bytes();
        let ring_writes: Vec<_> = writes
            .iter()
            .zip(&keys)
            .map(|(write, key)| ring::Write {
                key,
                content: with_flags(content(write, writer, unix_now), flags),
                expect: write.expect,
                durable: write.durable,
            })
            .collect();
        let ring_guards: Vec<_> = guards
            .iter()
            .zip(&guard_keys)
            .map(|(guard, key)| ring::Guard { key, revision: guard.revision })
            .collect();
        let named = |index: usize| match index.checked_sub(writes.len()) {
            None => writes[index].key,
            Some(guard) => guards[guard].key,
        };
        let mut check_meta =
            |at: usize, meta: Option<&LeafMeta>| check(at, meta.map(Head::of).as_ref());
        let len = ring_writes.iter().map(|w| w.content.value.len()).sum();
        for attempt in 0..MAX_ATTEMPTS {
            match inner.attempt(&ring_writes, &ring_guards, now, &mut check_meta) {
                Ok(done) => return self.conclude(done),
                Err(refused) => inner.refusal(refused, attempt, len, &named)?,
            }
        }
        Err(contention_error(named(0)))
    }

    /// The common case, without an allocation.
    fn commit_one(&self, write: &Write<'_>, check: &mut Check<'_>) -> Result<u64, Error> {
        let inner = &*self.inner;
        let key = inner.key(write.key)?;
        let (now, unix_now) = (inner.clock.boot_ns(), inner.clock.unix_ns());
        let writer = inner.own.name().as_str().as_bytes();
        let ring_write = ring::Write {
            key: &key,
            content: content(write, writer, unix_now),
            expect: write.expect,
            durable: write.durable,
        };
        let mut check_meta =
            |at: usize, meta: Option<&LeafMeta>| check(at, meta.map(Head::of).as_ref());
        let len = ring_write.content.value.len();
        for attempt in 0..MAX_ATTEMPTS {
            match inner.attempt_one(&ring_write, now, &mut check_meta) {
                Ok(done) => return self.conclude(done),
                Err(refused) => inner.refusal(refused, attempt, len, &|_| write.key)?,
            }
        }
        Err(contention_error(write.key))
    }

    fn conclude(&self, done: CommitOutcome) -> Result<u64, Error> {
        if self.inner.conflicts.load(Ordering::Relaxed) != 0 {
            self.inner.conflicts.store(0, Ordering::Relaxed);
        }
        match done {
            CommitOutcome::Committed(revision) => Ok(revision),
            CommitOutcome::Unchanged => Ok(0),
            CommitOutcome::Persisting(txn) => self.inner.persist(txn),
        }
    }

    /// Revision of the newest change in the domain.
    pub fn revision(&self) -> u64 {
        self.inner.checked_ring().ok().and_then(|ring| ring.newest().ok()).unwrap_or_default()
    }

    /// Makes this region reachable for others again if its file's name was removed.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn restore_file(&self) -> Result<FileStatus, Error> {
        self.inner.file.restore()
    }

    /// Computes how much of the region's memory is in use, by scanning all of it.
    pub fn usage(&self) -> Usage {
        self.inner.ring().usage()
    }
}

impl Inner {
    fn attempt(
        &self,
        writes: &[ring::Write<'_>],
        guards: &[ring::Guard<'_>],
        now: u64,
        check: ring::conditional_write::Check<'_, Error>,
    ) -> Result<CommitOutcome, CommitError<Error>> {
        let ring = self.checked_ring().map_err(CommitError::Check)?;
        let mut local = self.local();
        let mut prepared = Vec::with_capacity(writes.len());
        for write in writes {
            match ring.prepare(&mut local, self, write) {
                Ok(leaf) => prepared.push((*write, leaf)),
                Err(ring::OutOfMemory) => {
                    for (_, leaf) in prepared {
                        ring.discard(&mut local, leaf);
                    }
                    return Err(CommitError::OutOfMemory(0));
                }
            }
        }
        drop(local);
        prepared.iter().for_each(|(write, leaf)| ring.fill(leaf, write));
        ring.commit_all(&mut self.local(), self, &prepared, guards, now, check)
    }

    fn attempt_one(
        &self,
        write: &ring::Write<'_>,
        now: u64,
        check: ring::conditional_write::Check<'_, Error>,
    ) -> Result<CommitOutcome, CommitError<Error>> {
        let ring = self.checked_ring().map_err(CommitError::Check)?;
        let mut local = self.local();
        let leaf =
            ring.prepare(&mut local, self, write).map_err(|_| CommitError::OutOfMemory(0))?;
        if write.content.value.len() > SHORT_LEN_BYTES {
            drop(local);
            ring.fill(&leaf, write);
            local = self.local();
        } else {
            ring.fill(&leaf, write);
        }
        match ring.commit_one(&mut local, self, write, &leaf, now, check) {
            Ok(Some(done)) => {
                if done == CommitOutcome::Unchanged {
                    ring.discard(&mut local, leaf);
                }
                Ok(done)
            }
            // The value is durable.
            Ok(None) => ring.commit_all(&mut local, self, &[(*write, leaf)], &[], now, check),
            Err(refused) => {
                ring.discard(&mut local, leaf);
                Err(refused)
            }
        }
    }

    /// What to do about a failed commit: retry, or return an error.
    fn refusal<'k>(
        &self,
        refused: CommitError<Error>,
        attempt: usize,
        len: usize,
        named: &dyn Fn(usize) -> &'k str,
    ) -> Result<(), Error> {
        match refused {
            CommitError::Check(error) => Err(error),
            CommitError::Conflict { index, expected, found } => {
                // After a lost race, the next attempt follows soon; `commit_one` of the ring explains the
                // delay.
                let lost =
                    self.conflicts.fetch_add(1, Ordering::Relaxed).min(MAX_BACKOFF_DOUBLINGS);
                (0..CONFLICT_SPINS << lost).for_each(|_| std::hint::spin_loop());
                Err(Error::Conflict { key: named(index).to_owned(), expected, found })
            }
            CommitError::Retry => {
                back_off(attempt);
                Ok(())
            }
            CommitError::Wait(txn) => self.wait_for(txn),
            CommitError::OutOfMemory(words) => Err(self.full_error(len.max(words * 8))),
            CommitError::RetriesExhausted => {
                self.checked_ring()?;
                Err(self.corrupt("a write does not finish"))
            }
        }
    }
}

fn contention_error(key: &str) -> Error {
    let what = format!("other transactions that block the write of {key}");
    Error::timeout("", what, Duration::ZERO)
}

fn with_flags(mut content: LeafContent<'_>, flags: u16) -> LeafContent<'_> {
    content.meta.flags |= flags;
    content
}

fn content<'a>(write: &Write<'a>, writer: &'a [u8], unix_now: u64) -> LeafContent<'a> {
    let meta = LeafMeta { written_unix_ns: unix_now, ..LeafMeta::default() };
    match write.value {
        None => LeafContent {
            writer,
            value: &[],
            will: None,
            meta: LeafMeta { flags: DELETED, ..meta },
        },
        Some(stored) => LeafContent {
            writer,
            value: stored.bytes,
            will: stored.will,
            meta: LeafMeta {
                kind: stored.kind,
                type_id: stored.type_id,
                expires_boot_ns: stored.expires_boot_ns,
                ..meta
            },
        },
    }
}

/// If a guarded key is also written, the guard becomes the condition of the write.
fn conditions<'a>(writes: &[Write<'a>], guards: &[Guard<'a>]) -> (Vec<Write<'a>>, Vec<Guard<'a>>) {
    let (mut writes, mut rest) = (writes.to_vec(), Vec::with_capacity(guards.len()));
    for guard in guards {
        match writes.iter_mut().find(|write| write.key == guard.key) {
            Some(write) => write.expect = write.expect.or(Some(guard.revision)),
            None => rest.push(*guard),
        }
    }
    (writes, rest)
}

fn check_lengths(writes: &[Write<'_>], guards: &[Guard<'_>]) -> Result<(), Error> {
    if writes.len().max(guards.len()) > MAX_TRANSACTION_KEYS {
        return Err(Error::LimitReached {
            what: "keys in one transaction".to_owned(),
            limit: MAX_TRANSACTION_KEYS,
            hint: "split them over several transactions".to_owned(),
        });
    }
    for write in writes {
        let longest = write.value.map_or(0, |v| v.bytes.len().max(v.will.map_or(0, <[u8]>::len)));
        if longest > MAX_VALUE_LEN_BYTES {
            return Err(Error::LimitReached {
                what: format!("bytes in the value of {} (this one has {longest})", write.key),
                limit: MAX_VALUE_LEN_BYTES,
                hint: "split it over several keys, or send it on a topic".to_owned(),
            });
        }
    }
    let twice = "it guards the key twice: guard it once";
    check_unique(guards.len(), guards.iter().map(|g| g.key), twice)?;
    check_unique(
        writes.len(),
        writes.iter().map(|w| w.key),
        "it writes the key twice: write it once",
    )
}

fn check_unique<'k>(
    len: usize,
    keys: impl Iterator<Item = &'k str>,
    why: &str,
) -> Result<(), Error> {
    // Most transactions write one key, which needs no list.
    if len < 2 {
        return Ok(());
    }
    let mut keys: Vec<_> = keys.collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Error::BadValue {
            what: format!("transaction on {}", twice[0]),
            why: why.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Gives the conflicting writer time to finish.
fn back_off(attempt: usize) {
    match attempt {
        0..4 => std::hint::spin_loop(),
        4..64 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(attempt as u64)),
    }
}
