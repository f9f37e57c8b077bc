//! The state of a domain: keys, values, revisions. **Stand-in**: one map per domain directory in this
//! process, behind a lock. The interface is the real one's, which takes the place of this file.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rnet_core::{Error, MAX_VALUE_LEN_BYTES};

use crate::bell::{MAX_SLEEP, Woken};
use crate::node::OwnNode;

/// Now, in ns since 1970: stamps writes and ends the time of keys.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Changes that the journal keeps.
const JOURNAL: usize = 4096;

/// What a read copies out. Reusable: its buffer is kept.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Revision at which this was written; 0 if nothing was read.
    pub revision: u64,
    /// Writes of this key since it was made, from 1 on.
    pub version: u64,
    /// What kind of value it is; the meaning is the caller's.
    pub kind: u16,
    /// Which type of values; the meaning is the caller's.
    pub type_id: u64,
    /// The key was deleted; only from [`Follower::next`].
    pub deleted: bool,
    /// The key was deleted because its time was over.
    pub expired: bool,
    /// Whether the key is kept on disk.
    pub durable: bool,
    /// When it was written, ns since 1970.
    pub written_unix_ns: u64,
    /// When its time is over, ns since 1970; 0: never.
    pub expires_unix_ns: u64,
    key: String,
    writer: String,
    value: Vec<u8>,
    will: Option<Vec<u8>>,
}

impl Record {
    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Name of the node that wrote it.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// The value's bytes.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// What the key becomes when its writer ends, as [`Will::encode`] made it.
    pub fn will(&self) -> Option<&[u8]> {
        self.will.as_deref()
    }

    fn copy_from(&mut self, key: &str, leaf: &Leaf) {
        self.revision = leaf.revision;
        self.version = leaf.version;
        self.kind = leaf.kind;
        self.type_id = leaf.type_id;
        self.deleted = leaf.deleted;
        self.expired = leaf.expired;
        self.durable = leaf.durable;
        self.written_unix_ns = leaf.written_unix_ns;
        self.expires_unix_ns = leaf.expires_unix_ns;
        self.key.clear();
        self.key.push_str(key);
        self.writer.clear();
        self.writer.push_str(&leaf.writer);
        self.value.clear();
        self.value.extend_from_slice(&leaf.value);
        self.will.clone_from(&leaf.will);
    }
}

/// What stands at a key while a write is decided.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// As [`Record::revision`].
    pub revision: u64,
    /// As [`Record::version`].
    pub version: u64,
    /// As [`Record::kind`].
    pub kind: u16,
    /// As [`Record::type_id`].
    pub type_id: u64,
    /// As [`Record::durable`].
    pub durable: bool,
    /// As [`Record::expires_unix_ns`].
    pub expires_unix_ns: u64,
}

/// One key that a commit writes.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The key.
    pub key: &'a str,
    /// The value; `None` deletes.
    pub value: Option<Stored<'a>>,
    /// `Some(0)`: must be absent; `Some(r)`: must be at revision `r`.
    pub expect: Option<u64>,
    /// Whether it is kept on disk; `None`: as the key is.
    pub durable: Option<bool>,
}

/// A value as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// As [`Record::kind`].
    pub kind: u16,
    /// As [`Record::type_id`].
    pub type_id: u64,
    /// The value.
    pub bytes: &'a [u8],
    /// What the key becomes when the writing node ends ([`Will`]).
    pub will: Option<&'a [u8]>,
    /// As [`Record::expires_unix_ns`].
    pub expires_unix_ns: u64,
}

/// A key that a transaction has read, and which must be unchanged when it is committed.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    /// The key.
    pub key: &'a str,
    /// The revision that was read; 0: it was absent.
    pub revision: u64,
}

/// The form of a last will.
#[derive(Debug)]
pub struct Will;

impl Will {
    /// The will that deletes the key.
    pub const DELETE: &'static [u8] = &[];

    /// The will that gives the key a value: kind and type (8 bytes each), then the value.
    pub fn encode(kind: u16, type_id: u64, bytes: &[u8]) -> Vec<u8> {
        let mut will = Vec::with_capacity(16 + bytes.len());
        will.extend_from_slice(&u64::from(kind).to_le_bytes());
        will.extend_from_slice(&type_id.to_le_bytes());
        will.extend_from_slice(bytes);
        will
    }

    /// Kind, type and value of a will; `None` for one that deletes, or is no will.
    pub fn decode(will: &[u8]) -> Option<(u16, u64, &[u8])> {
        let (head, bytes) = will.split_at_checked(16)?;
        let (kind, type_id) = head.split_at(8);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        Some((u16::try_from(word(kind)).ok()?, word(type_id), bytes))
    }
}

#[derive(Clone, Debug)]
struct Leaf {
    revision: u64,
    version: u64,
    kind: u16,
    type_id: u64,
    deleted: bool,
    expired: bool,
    durable: bool,
    written_unix_ns: u64,
    expires_unix_ns: u64,
    writer: String,
    writer_id: u64,
    value: Vec<u8>,
    will: Option<Vec<u8>>,
}

impl Leaf {
    fn head(&self) -> Head {
        Head {
            revision: self.revision,
            version: self.version,
            kind: self.kind,
            type_id: self.type_id,
            durable: self.durable,
            expires_unix_ns: self.expires_unix_ns,
        }
    }
}

#[derive(Default)]
struct Domain {
    keys: BTreeMap<String, Leaf>,
    journal: VecDeque<(String, Leaf)>,
    /// Changes up to this revision are no longer in the journal.
    forgotten: u64,
    revision: u64,
}

#[derive(Default)]
struct Shared {
    domain: Mutex<Domain>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Domain> {
        self.domain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shared(path: PathBuf) -> Arc<Shared> {
    static ALL: OnceLock<Mutex<HashMap<PathBuf, Arc<Shared>>>> = OnceLock::new();
    let all = ALL.get_or_init(Mutex::default);
    all.lock().unwrap_or_else(PoisonError::into_inner).entry(path).or_default().clone()
}

/// The state of a domain, as one node sees it.
pub struct Region {
    shared: Arc<Shared>,
    clock: Clock,
    writer: String,
    writer_id: u64,
}

impl Region {
    /// Opens the state of the node's domain; makes it if there is none.
    ///
    /// # Errors
    /// Those of making and mapping a file.
    pub fn open(own: &Arc<OwnNode>, clock: Clock) -> Result<Region, Error> {
        static NEXT: Mutex<u64> = Mutex::new(1);
        let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        Ok(Region {
            shared: shared(own.domain().path().to_owned()),
            clock,
            writer: own.name().to_string(),
            writer_id: *next,
        })
    }

    fn living<'a>(&self, domain: &'a Domain, key: &str) -> Option<&'a Leaf> {
        let now = (self.clock)();
        let leaf = domain.keys.get(key)?;
        (leaf.expires_unix_ns == 0 || leaf.expires_unix_ns > now).then_some(leaf)
    }

    /// Copies what stands at a key; `false` if it is absent, or its time is over.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn get(&self, key: &str, into: &mut Record) -> Result<bool, Error> {
        let domain = self.shared.lock();
        let Some(leaf) = self.living(&domain, key) else { return Ok(false) };
        into.copy_from(key, leaf);
        Ok(true)
    }

    /// Writes keys, all or nothing. `check` sees each key's present head (`None`: absent) at each attempt; its
    /// error ends the commit. Returns the revision, the same for all keys; 0 if nothing was changed.
    ///
    /// # Errors
    /// `Conflict`; that of `check`; `OutOfMemory`, `LimitReached`.
    pub fn commit(
        &self,
        writes: &[Write<'_>],
        guards: &[Guard<'_>],
        check: &mut dyn FnMut(usize, Option<&Head>) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let mut domain = self.shared.lock();
        let conflict = |key: &str, expected, found| {
            Err(Error::Conflict { key: key.to_owned(), expected, found })
        };
        for guard in guards {
            let found = self.living(&domain, guard.key).map_or(0, |leaf| leaf.revision);
            if found != guard.revision {
                return conflict(guard.key, guard.revision, found);
            }
        }
        for (at, write) in writes.iter().enumerate() {
            // Of a key whose time is over, only the deletion at its revision still sees it.
            let over = write.value.is_none() && write.expect.is_some_and(|r| r != 0);
            let leaf =
                if over { domain.keys.get(write.key) } else { self.living(&domain, write.key) };
            let found = leaf.map_or(0, |leaf| leaf.revision);
            if let Some(expected) = write.expect.filter(|r| *r != found) {
                return conflict(write.key, expected, found);
            }
            check(at, leaf.map(Leaf::head).as_ref())?;
            if write.value.is_some_and(|v| v.bytes.len() > MAX_VALUE_LEN_BYTES) {
                return Err(Error::LimitReached {
                    what: format!("bytes in the value of {}", write.key),
                    limit: MAX_VALUE_LEN_BYTES,
                    hint: "store it in parts".to_owned(),
                });
            }
        }
        if writes.iter().all(|w| w.value.is_none() && !domain.keys.contains_key(w.key)) {
            return Ok(0);
        }
        let now = (self.clock)();
        domain.revision += 1;
        for write in writes {
            self.apply(&mut domain, write, now);
        }
        let revision = domain.revision;
        drop(domain);
        self.shared.changed.notify_all();
        Ok(revision)
    }

    fn apply(&self, domain: &mut Domain, write: &Write<'_>, now: u64) {
        let before = domain.keys.remove(write.key);
        let expired =
            before.as_ref().is_some_and(|l| l.expires_unix_ns != 0 && l.expires_unix_ns <= now);
        if before.is_none() && write.value.is_none() {
            return;
        }
        let fresh = expired && write.value.is_some();
        let mut leaf = Leaf {
            revision: domain.revision,
            version: before.as_ref().filter(|_| !fresh).map_or(1, |leaf| leaf.version + 1),
            kind: 0,
            type_id: 0,
            deleted: write.value.is_none(),
            expired: expired && write.value.is_none(),
            durable: write.durable.unwrap_or(before.is_some_and(|leaf| leaf.durable)),
            written_unix_ns: now,
            expires_unix_ns: 0,
            writer: self.writer.clone(),
            writer_id: self.writer_id,
            value: Vec::new(),
            will: None,
        };
        if let Some(stored) = &write.value {
            leaf.kind = stored.kind;
            leaf.type_id = stored.type_id;
            leaf.expires_unix_ns = stored.expires_unix_ns;
            leaf.value = stored.bytes.to_vec();
            leaf.will = stored.will.map(<[u8]>::to_vec);
            domain.keys.insert(write.key.to_owned(), leaf.clone());
        }
        domain.journal.push_back((write.key.to_owned(), leaf));
        while domain.journal.len() > JOURNAL {
            if let Some((_, gone)) = domain.journal.pop_front() {
                domain.forgotten = gone.revision;
            }
        }
    }

    /// Revision of the newest change in the domain.
    pub fn revision(&self) -> u64 {
        self.shared.lock().revision
    }

    /// All keys that start with the bytes of `prefix`, as of one revision; in no order.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn snapshot(&self, prefix: &str) -> Result<(u64, Vec<Record>), Error> {
        let domain = self.shared.lock();
        let mut records = Vec::new();
        for (key, _) in domain.keys.range(prefix.to_owned()..) {
            if !key.starts_with(prefix) {
                break;
            }
            if let Some(leaf) = self.living(&domain, key) {
                let mut record = Record::default();
                record.copy_from(key, leaf);
                records.push(record);
            }
        }
        Ok((domain.revision, records))
    }

    /// Follows every change after a revision.
    ///
    /// # Errors
    /// `LimitReached`.
    pub fn follow(&self, after_revision: u64) -> Result<Follower, Error> {
        Ok(Follower {
            shared: self.shared.clone(),
            after: after_revision,
            within: 0,
            interrupt: Arc::default(),
        })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut domain = self.shared.lock();
        let left = |leaf: &Leaf| leaf.writer_id == self.writer_id && leaf.will.is_some();
        let wills: Vec<_> = domain.keys.iter().filter(|(_, leaf)| left(leaf)).collect();
        let wills: Vec<_> = wills.into_iter().map(|(k, l)| (k.clone(), l.will.clone())).collect();
        let now = (self.clock)();
        for (key, will) in wills {
            domain.revision += 1;
            let will = will.unwrap_or_default();
            let value = Will::decode(&will).map(|(kind, type_id, bytes)| Stored {
                kind,
                type_id,
                bytes,
                will: None,
                expires_unix_ns: 0,
            });
            let write = Write { key: &key, value, expect: None, durable: None };
            self.apply(&mut domain, &write, now);
        }
        drop(domain);
        self.shared.changed.notify_all();
    }
}

/// What [`Follower::next`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A change; it stands in the record.
    Change,
    /// Nothing more at the moment.
    Nothing,
    /// Something was missed: take a snapshot, and follow anew from its revision.
    Behind,
}

/// Follows the changes of the domain.
pub struct Follower {
    shared: Arc<Shared>,
    after: u64,
    /// Changes of the revision behind `after` that were seen.
    within: usize,
    interrupt: Arc<AtomicBool>,
}

impl Follower {
    /// The next change of a key that starts with the bytes of `prefix`.
    pub fn next(&mut self, prefix: &str, into: &mut Record) -> Next {
        let shared = self.shared.clone();
        let domain = shared.lock();
        if self.after < domain.forgotten {
            return Next::Behind;
        }
        loop {
            let first = domain.journal.partition_point(|(_, leaf)| leaf.revision <= self.after);
            let Some((key, leaf)) = domain.journal.get(first + self.within) else {
                self.after = domain.revision;
                self.within = 0;
                return Next::Nothing;
            };
            let of_one = domain.journal.get(first).is_some_and(|f| f.1.revision == leaf.revision);
            if of_one {
                self.within += 1;
            } else {
                self.after = leaf.revision - 1;
                self.within = 1;
            }
            if key.starts_with(prefix) {
                into.copy_from(key, leaf);
                return Next::Change;
            }
        }
    }

    /// Sleeps until a change may match, no longer than `limit` and [`MAX_SLEEP`]; it may also return for nothing.
    pub fn wait(&mut self, prefix: &str, limit: Duration) -> Woken {
        let until = Instant::now() + limit.min(MAX_SLEEP);
        let shared = self.shared.clone();
        let mut domain = shared.lock();
        loop {
            let seen = domain.journal.iter().rev().take_while(|(_, l)| l.revision > self.after);
            let unread = seen.clone().count() > self.within;
            if unread && seen.clone().any(|(key, _)| key.starts_with(prefix))
                || self.after < domain.forgotten
                || self.interrupt.swap(false, Ordering::AcqRel)
            {
                return Woken::Look;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Woken::TimedOut;
            }
            let waited = shared.changed.wait_timeout(domain, left);
            domain = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends waits of this follower from other threads.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter { shared: self.shared.clone(), interrupt: self.interrupt.clone() }
    }
}

/// Ends waits of a [`Follower`]; made by [`Follower::interrupter`].
#[derive(Clone)]
pub struct Interrupter {
    shared: Arc<Shared>,
    interrupt: Arc<AtomicBool>,
}

impl Interrupter {
    /// The wait that goes on ends with [`Woken::Look`], or the next one does at once.
    pub fn interrupt(&self) {
        let domain = self.shared.lock();
        self.interrupt.store(true, Ordering::Release);
        drop(domain);
        self.shared.changed.notify_all();
    }
}
