//! A region on the heap, operations of process slots, and views of its content.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

use rnet_ring::state::layout::{GEOMETRY_AT, Geometry, MAGIC_AT, PROCESS_OWNER, TAIL_AT};
use rnet_ring::state::{
    CommitError, CommitOutcome, Environment, Guard, Key, LeafBuffer, LeafContent, LeafMeta,
    LocalBlocks, Prefix, Prepared, Region, SweepOutcome, Write, journal, leaf,
};

/// Process slot that dies or is suspended.
pub const VICTIM: u16 = 1;
/// Process slot that operates in between.
pub const OTHER: u16 = 2;
/// Process slot that cleans up.
pub const SWEEPER: u16 = 3;

/// Attempts of an operation that others interfere with.
const TRIES: usize = 100;
const SEED: u64 = 42;

struct AlwaysBacked;
impl Environment for AlwaysBacked {
    fn back_with_memory(&self, _: usize, _: usize) -> bool {
        true
    }
    fn wake(&self, _: usize) {}
}

/// An operation of a process slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Sets (key, first byte and length of the value) or deletes (`None`) keys, all or nothing.
    Commit(Vec<(&'static str, Option<(u8, usize)>)>, Vec<(&'static str, u64)>),
    /// Sets or deletes a key that is at this revision.
    If(&'static str, Option<(u8, usize)>, u64),
    /// Sets a key this many times.
    Burst(&'static str, usize),
    /// Reads a key.
    Get(&'static str),
    /// Reads all keys as of one revision.
    Snapshot,
}

/// Revision, version, first byte and length of a value.
pub type ValueView = (u64, u64, u8, usize);
/// All keys.
pub type StateView = BTreeMap<String, ValueView>;

/// The result of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its revision; 0 if nothing changed.
    At(u64),
    /// The expected and the found revision.
    Conflict(u64, u64),
    /// The result of a read.
    Got(Option<ValueView>),
    /// The result of a snapshot.
    StateView(u64, StateView),
}

/// The words of a region.
pub struct Words(Vec<AtomicU64>);

impl Words {
    pub fn new() -> Words {
        let geometry = Geometry { slabs: 24, ..Geometry::SMALL };
        let words: Vec<AtomicU64> = (0..geometry.words()).map(|_| AtomicU64::new(0)).collect();
        words[TAIL_AT].store(journal::FIRST_REVISION, Ordering::Relaxed);
        words[MAGIC_AT].store(1, Ordering::Relaxed);
        words[GEOMETRY_AT].store(geometry.packed(), Ordering::Relaxed);
        Words(words)
    }

    /// The region.
    pub fn region(&self) -> Region<'_> {
        let geometry = Geometry { slabs: 24, ..Geometry::SMALL };
        Region::new(&self.0, geometry, SEED).expect("enough words")
    }

    /// The region, and the victim's block lists after it has set some keys.
    pub fn begin(&self) -> (Region<'_>, LocalBlocks) {
        let region = self.region();
        let mut victim = LocalBlocks::new(VICTIM);
        for process_slot in [VICTIM, OTHER, SWEEPER] {
            region
                .process_slot(usize::from(process_slot), PROCESS_OWNER)
                .store(u64::from(process_slot), Ordering::Relaxed);
        }
        let first = Operation::Commit(vec![("/a/1", Some((1, 40)))], vec![]);
        let second = Operation::Commit(vec![("/a/2", Some((2, 40)))], vec![]);
        let third = Operation::Commit(vec![("/b", Some((3, 40)))], vec![]);
        // More than the quarantine keeps, so that blocks are reused.
        for act in [&Operation::Burst("/a/1", 140), &first, &second, &third] {
            perform(&region, &mut victim, act);
        }
        (region, victim)
    }
}

fn key<'k>(region: &Region<'_>, text: &'k str) -> Key<'k> {
    Key::new(text.as_bytes(), region.seed(), region.geometry()).expect("a short key")
}

fn content(value: &Option<Vec<u8>>) -> LeafContent<'_> {
    let flags = if value.is_none() { leaf::DELETED } else { 0 };
    let meta = LeafMeta { kind: 7, flags, ..LeafMeta::default() };
    LeafContent { writer: b"/w", value: value.as_deref().unwrap_or_default(), will: None, meta }
}

fn seen(record: &LeafBuffer) -> ValueView {
    let value = record.value();
    let first = value.first().copied().unwrap_or_default();
    assert!(value.iter().all(|byte| *byte == first), "a value of several writes");
    (record.meta.revision, record.meta.version, first, value.len())
}

/// All keys as of one revision.
pub fn picture(region: &Region<'_>, process_slot: u16) -> (u64, StateView) {
    let prefix = Prefix::new(b"/", region.seed(), region.geometry());
    let mut found = StateView::new();
    let revision = region
        .snapshot(process_slot, &prefix, 0, &mut |record| {
            let key = String::from_utf8(record.key().to_vec()).expect("a key of ours");
            assert!(found.insert(key, seen(record)).is_none(), "shown twice");
        })
        .expect("a snapshot terminates");
    (revision, found)
}

/// Executes an operation, again if another one interfered.
pub fn perform(region: &Region<'_>, local: &mut LocalBlocks, act: &Operation) -> Outcome {
    match act {
        Operation::Get(at) => {
            let mut record = LeafBuffer::default();
            let found = region.get(local.process_slot, &key(region, at), &|| 0, &mut record);
            Outcome::Got(found.expect("a read terminates").then(|| seen(&record)))
        }
        Operation::Snapshot => {
            let (revision, found) = picture(region, local.process_slot);
            Outcome::StateView(revision, found)
        }
        Operation::Burst(at, count) => {
            let set = Operation::Commit(vec![(*at, Some((200, 40)))], vec![]);
            let all: Vec<Outcome> = (0..*count).map(|_| perform(region, local, &set)).collect();
            all.into_iter().next_back().expect("at least one")
        }
        Operation::If(at, value, expect) => {
            commit(region, local, &[(*at, *value)], &[], Some(*expect))
        }
        Operation::Commit(writes, guards) => commit(region, local, writes, guards, None),
    }
}

fn commit(
    region: &Region<'_>,
    local: &mut LocalBlocks,
    writes: &[(&'static str, Option<(u8, usize)>)],
    guards: &[(&'static str, u64)],
    expect: Option<u64>,
) -> Outcome {
    let keys: Vec<Key<'_>> = writes.iter().map(|(at, _)| key(region, at)).collect();
    let values: Vec<Option<Vec<u8>>> =
        writes.iter().map(|(_, value)| value.map(|(byte, len)| vec![byte; len])).collect();
    let guarded: Vec<Key<'_>> = guards.iter().map(|(at, _)| key(region, at)).collect();
    let guards: Vec<Guard<'_>> = guarded
        .iter()
        .zip(guards)
        .map(|(key, (_, revision))| Guard { key, revision: *revision })
        .collect();
    for _ in 0..TRIES {
        let prepare = |(key, value)| {
            let write = Write { key, content: content(value), expect, durable: None };
            (write, ())
        };
        let orders: Vec<(Write<'_>, ())> = keys.iter().zip(&values).map(prepare).collect();
        let mut prepared: Vec<(Write<'_>, Prepared)> = Vec::new();
        for (write, ()) in orders {
            let own = region.prepare(local, &AlwaysBacked, &write).expect("enough memory");
            region.fill(&own, &write);
            prepared.push((write, own));
        }
        let done = if let ([(write, own)], true) = (prepared.as_slice(), guards.is_empty()) {
            one(region, local, write, *own)
        } else {
            region.commit_all::<Infallible>(
                local,
                &AlwaysBacked,
                &prepared,
                &guards,
                0,
                &mut |_, _| Ok(()),
            )
        };
        match done {
            Ok(CommitOutcome::Committed(revision)) => return Outcome::At(revision),
            Ok(CommitOutcome::Unchanged) => return Outcome::At(0),
            Err(CommitError::Conflict { expected, found, .. }) => {
                return Outcome::Conflict(expected, found);
            }
            Err(CommitError::Retry) => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("other operations interfered {TRIES} times")
}

fn one(
    region: &Region<'_>,
    local: &mut LocalBlocks,
    write: &Write<'_>,
    own: Prepared,
) -> Result<CommitOutcome, CommitError<Infallible>> {
    let done = region.commit_one(local, &AlwaysBacked, write, &own, 0, &mut |_, _| Ok(()));
    if !matches!(done, Ok(Some(CommitOutcome::Committed(_)))) {
        region.discard(local, own);
    }
    done.map(|done| done.expect("nothing here goes to disk"))
}

/// Fills the region with values of one size until it is full, and deletes them: all free blocks are then of
/// that size.
pub fn fill_and_empty(region: &Region<'_>, local: &mut LocalBlocks) {
    let mut made = 0;
    loop {
        let (at, value) = (format!("/full/{made}"), Some(vec![9; 6000]));
        let key = key(region, &at);
        let write = Write { key: &key, content: content(&value), expect: None, durable: None };
        let Ok(own) = region.prepare(local, &AlwaysBacked, &write) else { break };
        region.fill(&own, &write);
        one(region, local, &write, own).expect("no concurrent writer");
        made += 1;
    }
    assert!(made > 100, "only {made} values fit");
    for number in 0..made {
        let at = format!("/full/{number}");
        let key = key(region, &at);
        let write = Write { key: &key, content: content(&None), expect: None, durable: None };
        let own =
            region.prepare(local, &AlwaysBacked, &write).expect("memory for deletions is reserved");
        region.fill(&own, &write);
        one(region, local, &write, own).expect("no concurrent writer");
    }
    assert!(region.leave(local));
}

/// Cleans up after a dead process slot.
pub fn sweep(region: &Region<'_>, local: &mut LocalBlocks, dead: u16) {
    assert_eq!(region.sweep(local, &AlwaysBacked, dead), Ok(SweepOutcome::Complete));
    region.process_slot(usize::from(dead), PROCESS_OWNER).store(0, Ordering::Relaxed);
}

/// After all process slots have left, only the keys remain.
pub fn nothing_is_left_over(region: &Region<'_>, locals: &mut [LocalBlocks], what: &str) {
    for local in locals.iter_mut() {
        assert!(region.leave(local), "{what}: process_slot {} cannot leave", local.process_slot);
    }
    let (_, keys) = picture(region, SWEEPER);
    let usage = region.usage();
    let counts = (usage.leaves, usage.cached, usage.transactions);
    assert_eq!(counts, (keys.len() as u64, 0, 0), "{what}: {usage:?}");
}
