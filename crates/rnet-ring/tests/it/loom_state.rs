//! loom models of the state: small programs over a small region, all interleavings up to a number of
//! preemptions. `state_points` covers larger operations at fewer points.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p rnet-ring --release --test it`.

use std::convert::Infallible;

use loom::sync::Arc;
use loom::thread;
use rnet_ring::state::layout::{GEOMETRY_AT, Geometry, MAGIC_AT, TAIL_AT};
use rnet_ring::state::{
    CommitError, CommitOutcome, Environment, Guard, Key, LeafBuffer, LeafContent, LeafMeta,
    LocalBlocks, Prefix, Prepared, Region, Write, journal,
};
use rnet_ring::sync::{AtomicU64, Ordering};

const GEOMETRY: Geometry = Geometry {
    root_bits: 1,
    journal_bits: 4,
    process_slots: 3,
    followers: 0,
    persist_requests: 1,
    slabs: 14,
};
struct AlwaysBacked;
impl Environment for AlwaysBacked {
    fn back_with_memory(&self, _: usize, _: usize) -> bool {
        true
    }
    fn wake(&self, _: usize) {}
}

struct Memory(Vec<AtomicU64>);

impl Memory {
    fn new() -> Arc<Memory> {
        let words: Vec<AtomicU64> = (0..GEOMETRY.words()).map(|_| AtomicU64::new(0)).collect();
        words[TAIL_AT].store(journal::FIRST_REVISION, Ordering::Relaxed);
        words[MAGIC_AT].store(1, Ordering::Relaxed);
        words[GEOMETRY_AT].store(GEOMETRY.packed(), Ordering::Relaxed);
        Arc::new(Memory(words))
    }
    fn region(&self) -> Region<'_> {
        Region::new(&self.0, GEOMETRY, 7).expect("long enough")
    }
}

/// `preemptions` bounds the search if a full one takes too long.
fn model(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(f);
}

fn key<'k>(region: &Region<'_>, text: &'k str) -> Key<'k> {
    Key::new(text.as_bytes(), region.seed(), region.geometry()).expect("a short key")
}

fn write<'a>(key: &'a Key<'a>, value: &'a [u8], expect: Option<u64>) -> Write<'a> {
    let content = LeafContent { writer: b"w", value, will: None, meta: LeafMeta::default() };
    Write { key, content, expect, durable: None }
}

type Answer = Result<CommitOutcome, CommitError<Infallible>>;

fn set(
    region: Region<'_>,
    local: &mut LocalBlocks,
    at: &str,
    value: &[u8],
    expect: Option<u64>,
) -> Answer {
    let key = key(&region, at);
    let write = write(&key, value, expect);
    let own = region.prepare(local, &AlwaysBacked, &write).expect("enough memory");
    region.fill(&own, &write);
    let done = region.commit_one(local, &AlwaysBacked, &write, &own, 0, &mut |_, _| Ok(()));
    if !matches!(done, Ok(Some(CommitOutcome::Committed(_)))) {
        region.discard(local, own);
    }
    done.map(|done| done.expect("nothing goes to disk"))
}

fn set_both(
    region: Region<'_>,
    local: &mut LocalBlocks,
    value: &[u8],
    guards: &[(&str, u64)],
) -> Answer {
    let keys = ["/a", "/b"].map(|at| key(&region, at));
    let mut writes: Vec<(Write<'_>, Prepared)> = Vec::new();
    for key in &keys {
        let write = write(key, value, None);
        let own = region.prepare(local, &AlwaysBacked, &write).expect("enough memory");
        region.fill(&own, &write);
        writes.push((write, own));
    }
    let guarded: Vec<Key<'_>> = guards.iter().map(|(at, _)| key(&region, at)).collect();
    let pairs = guarded.iter().zip(guards);
    let guards: Vec<Guard<'_>> =
        pairs.map(|(key, (_, revision))| Guard { key, revision: *revision }).collect();
    region.commit_all(local, &AlwaysBacked, &writes, &guards, 0, &mut |_, _| Ok(()))
}

/// First byte and revision of a key's value; all bytes must come from one write.
fn get(region: Region<'_>, process_slot: u16, at: &str) -> Option<(u8, u64)> {
    let mut record = LeafBuffer::default();
    let found = region.get(process_slot, &key(&region, at), &|| 0, &mut record);
    found.expect("a read terminates").then(|| {
        let value = record.value();
        assert!(value.iter().all(|byte| *byte == value[0]), "a value of two writes");
        (value[0], record.meta.revision)
    })
}

/// A process slot that has written once, so that its caches are filled.
fn process_slot(region: Region<'_>, process_slot: u16, at: &str, value: &[u8]) -> LocalBlocks {
    let mut local = LocalBlocks::new(process_slot);
    set(region, &mut local, at, value, None).expect("no concurrent writer");
    local
}

fn at(answer: &Answer) -> u64 {
    match answer {
        Ok(CommitOutcome::Committed(revision)) => *revision,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_writers_of_a_key_follow_each_other() {
    model(2, || {
        let memory = Memory::new();
        let mut one = process_slot(memory.region(), 0, "/a", &[1]);
        let mut two = process_slot(memory.region(), 1, "/a", &[2]);
        let theirs = memory.clone();
        let other = thread::spawn(move || set(theirs.region(), &mut two, "/a", &[20], None));
        let first = at(&set(memory.region(), &mut one, "/a", &[10], None));
        let second = at(&other.join().unwrap());
        assert_eq!((first.min(second), first.max(second)), (3, 4));
        let last = if first > second { 10 } else { 20 };
        assert_eq!(get(memory.region(), 2, "/a"), Some((last, 4)));
    });
}

#[test]
fn one_of_two_compare_and_sets_wins() {
    model(2, || {
        let memory = Memory::new();
        let mut one = process_slot(memory.region(), 0, "/b", &[1]);
        let mut two = process_slot(memory.region(), 1, "/a", &[2]);
        let theirs = memory.clone();
        let other = thread::spawn(move || set(theirs.region(), &mut two, "/a", &[20], Some(2)));
        let first = set(memory.region(), &mut one, "/a", &[10], Some(2));
        let second = other.join().unwrap();
        assert_eq!(u32::from(first.is_ok()) + u32::from(second.is_ok()), 1);
        let last = if first.is_ok() { 10 } else { 20 };
        assert_eq!(get(memory.region(), 2, "/a"), Some((last, 3)));
    });
}

#[test]
fn reader_of_a_write_gets_its_revision_repeatedly() {
    model(2, || {
        let memory = Memory::new();
        let mut one = process_slot(memory.region(), 0, "/a", &[1]);
        let theirs = memory.clone();
        let reader = thread::spawn(move || {
            let first = get(theirs.region(), 1, "/a").unwrap();
            let second = get(theirs.region(), 1, "/a").unwrap();
            assert!([(1, 1), (10, 2)].contains(&first), "{first:?}");
            assert!(second.1 >= first.1, "{second:?} after {first:?}");
            assert!(theirs.region().newest().unwrap() >= second.1);
        });
        assert_eq!(at(&set(memory.region(), &mut one, "/a", &[10], None)), 2);
        reader.join().unwrap();
    });
}

#[test]
fn a_snapshot_has_all_of_a_transaction_or_nothing() {
    model(2, || {
        let memory = Memory::new();
        let mut one = process_slot(memory.region(), 0, "/a", &[1]);
        set(memory.region(), &mut one, "/b", &[1], None).unwrap();
        let theirs = memory.clone();
        let reader = thread::spawn(move || {
            let region = theirs.region();
            let prefix = Prefix::new(b"/", region.seed(), region.geometry());
            let mut seen = Vec::new();
            let revision =
                region.snapshot(1, &prefix, 0, &mut |r| seen.push(r.value()[0])).unwrap();
            let expected = if revision == 3 { [9, 9] } else { [1, 1] };
            assert_eq!(seen, expected, "as of {revision}");
        });
        assert_eq!(at(&set_both(memory.region(), &mut one, &[9], &[])), 3);
        reader.join().unwrap();
    });
}

/// The writer aborts the transaction, or follows it.
#[test]
fn a_transaction_and_a_write_of_one_of_its_keys() {
    model(2, || {
        let memory = Memory::new();
        let mut one = process_slot(memory.region(), 0, "/a", &[1]);
        let mut two = process_slot(memory.region(), 1, "/b", &[1]);
        let theirs = memory.clone();
        let other = thread::spawn(move || at(&set(theirs.region(), &mut two, "/b", &[20], None)));
        let both = set_both(memory.region(), &mut one, &[9], &[]);
        let other = other.join().unwrap();
        let (a, b) = (get(memory.region(), 2, "/a"), get(memory.region(), 2, "/b"));
        match both {
            Ok(CommitOutcome::Committed(both)) => {
                assert_eq!((both.min(other), both.max(other)), (3, 4));
                assert_eq!(a, Some((9, both)));
                assert_eq!(b, Some(if both > other { (9, both) } else { (20, other) }));
            }
            Err(CommitError::Retry) => assert_eq!((a, b), (Some((1, 1)), Some((20, other)))),
            answer => panic!("{answer:?}"),
        }
    });
}

/// What a transaction has read is unchanged at its revision.
#[test]
fn a_guard_holds_at_the_commit() {
    model(2, || {
        let memory = Memory::new();
        let mut one = process_slot(memory.region(), 0, "/a", &[1]);
        let mut two = process_slot(memory.region(), 1, "/c", &[1]);
        let theirs = memory.clone();
        let other = thread::spawn(move || at(&set(theirs.region(), &mut two, "/c", &[20], None)));
        let both = set_both(memory.region(), &mut one, &[9], &[("/c", 2)]);
        let other = other.join().unwrap();
        match both {
            Ok(CommitOutcome::Committed(both)) => {
                assert!(both < other, "{both} was to be before {other}")
            }
            Err(CommitError::Retry | CommitError::Conflict { .. }) => {
                assert_eq!(get(memory.region(), 2, "/a"), Some((1, 1)));
            }
            answer => panic!("{answer:?}"),
        }
        assert_eq!(get(memory.region(), 2, "/c"), Some((20, other)));
    });
}
