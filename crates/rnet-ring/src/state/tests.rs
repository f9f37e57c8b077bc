//! Tests the algorithms over a heap region: against a model, between threads, and after sudden deaths.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::block_words::{BlockHeader, BlockRef, IS_LEAF, JournalEntry, LAP_BITS, LEAF, pending};
use super::blocks::QUARANTINE;
use super::conditional_write::Check;
use super::journal::JournalSlot;
use super::layout::{GEOMETRY_AT, Geometry, MAGIC_AT, PROCESS_OWNER, TAIL_AT};
use super::region::Block;
use super::*;

struct AlwaysBacked;
impl Environment for AlwaysBacked {
    fn back_with_memory(&self, _: usize, _: usize) -> bool {
        true
    }
    fn wake(&self, _: usize) {}
}

fn words(geometry: Geometry) -> Vec<AtomicU64> {
    let words: Vec<AtomicU64> = (0..geometry.words()).map(|_| AtomicU64::new(0)).collect();
    words[TAIL_AT].store(journal::FIRST_REVISION, Ordering::Relaxed);
    words[MAGIC_AT].store(1, Ordering::Relaxed);
    words[GEOMETRY_AT].store(geometry.packed(), Ordering::Relaxed);
    words
}

fn region(words: &[AtomicU64]) -> Region<'_> {
    Region::new(words, Geometry::SMALL, 42).unwrap()
}

fn key<'k>(region: &Region<'_>, text: &'k str) -> Key<'k> {
    Key::new(text.as_bytes(), region.seed(), region.geometry()).unwrap()
}

fn content(value: Option<&[u8]>) -> LeafContent<'_> {
    let flags = if value.is_none() { leaf::DELETED } else { 0 };
    let meta = LeafMeta { kind: 7, flags, written_unix_ns: 5, ..LeafMeta::default() };
    LeafContent { writer: b"/tester", value: value.unwrap_or_default(), will: None, meta }
}

type Never = std::convert::Infallible;

fn put(
    region: &Region<'_>,
    local: &mut LocalBlocks,
    at: &str,
    value: Option<&[u8]>,
    expect: Option<u64>,
) -> Result<CommitOutcome, CommitError<Never>> {
    let key = key(region, at);
    let write = Write { key: &key, content: content(value), expect, durable: None };
    let prepared =
        region.prepare(local, &AlwaysBacked, &write).map_err(|_| CommitError::OutOfMemory(0))?;
    region.fill(&prepared, &write);
    match region.commit_one(local, &AlwaysBacked, &write, &prepared, 0, &mut |_, _| Ok(())) {
        Ok(Some(CommitOutcome::Committed(revision))) => Ok(CommitOutcome::Committed(revision)),
        other => {
            region.discard(local, prepared);
            other.map(Option::unwrap)
        }
    }
}

fn put_all(
    region: &Region<'_>,
    local: &mut LocalBlocks,
    changes: &[(&str, Option<&[u8]>)],
) -> Result<CommitOutcome, CommitError<Never>> {
    let keys: Vec<Key<'_>> = changes.iter().map(|(at, _)| key(region, at)).collect();
    let mut writes = Vec::new();
    for ((_, value), key) in changes.iter().zip(&keys) {
        let write = Write { key, content: content(*value), expect: None, durable: None };
        let prepared = region
            .prepare(local, &AlwaysBacked, &write)
            .map_err(|_| CommitError::OutOfMemory(0))?;
        region.fill(&prepared, &write);
        writes.push((write, prepared));
    }
    region.commit_all(local, &AlwaysBacked, &writes, &[], 0, &mut |_, _| Ok(()))
}

fn get(region: &Region<'_>, at: &str) -> Option<Vec<u8>> {
    let mut record = LeafBuffer::default();
    let found = region.get(0, &key(region, at), &|| 0, &mut record).unwrap();
    found.then(|| record.value().to_vec())
}

fn all(region: &Region<'_>, prefix: &str) -> (u64, BTreeMap<String, Vec<u8>>) {
    let prefix = Prefix::new(prefix.as_bytes(), region.seed(), region.geometry());
    let mut found = BTreeMap::new();
    let revision = region
        .snapshot(0, &prefix, 0, &mut |record| {
            let key = String::from_utf8(record.key().to_vec()).unwrap();
            assert!(found.insert(key, record.value().to_vec()).is_none(), "shown twice");
        })
        .unwrap();
    (revision, found)
}

struct Dice(u64);
impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[test]
fn a_value_is_set_replaced_and_deleted() {
    let words = words(Geometry::SMALL);
    let region = region(&words);
    let mut local = LocalBlocks::new(0);
    assert_eq!(get(&region, "/a"), None);
    assert_eq!(
        put(&region, &mut local, "/a", Some(b"one"), Some(0)),
        Ok(CommitOutcome::Committed(1))
    );
    assert_eq!(get(&region, "/a").unwrap(), b"one");
    let refused = put(&region, &mut local, "/a", Some(b"two"), Some(0));
    assert_eq!(refused, Err(CommitError::Conflict { index: 0, expected: 0, found: 1 }));
    assert_eq!(
        put(&region, &mut local, "/a", Some(b"two"), Some(1)),
        Ok(CommitOutcome::Committed(2))
    );
    assert_eq!(get(&region, "/a").unwrap(), b"two");
    assert_eq!(put(&region, &mut local, "/a", None, None), Ok(CommitOutcome::Committed(3)));
    assert_eq!(get(&region, "/a"), None);
    assert_eq!(put(&region, &mut local, "/a", None, None), Ok(CommitOutcome::Unchanged));
    assert_eq!(all(&region, "/"), (3, BTreeMap::new()));
}

#[test]
fn random_operations_match_a_model_and_leave_no_garbage() {
    let words = words(Geometry::SMALL);
    let region = region(&words);
    let mut local = LocalBlocks::new(0);
    let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut dice = Dice(0x1234_5678);
    for step in 0..60_000 {
        let at = match dice.below(4) {
            0 => format!("/a/b/{}", dice.below(40)),
            1 => format!("/{}", dice.below(40)),
            2 => format!("/{}/x", dice.below(40)),
            _ => format!("/a/{}/c", dice.below(400)),
        };
        let len = match dice.below(50) {
            0 => dice.below(200_000),
            1..10 => dice.below(3000),
            _ => dice.below(40),
        };
        let value = vec![dice.below(256) as u8; len as usize];
        match dice.below(8) {
            0..3 => {
                put(&region, &mut local, &at, None, None).unwrap();
                model.remove(&at);
            }
            3 => {
                let other = format!("/a/b/{}", dice.below(40));
                if other != at {
                    let changes = [(at.as_str(), Some(value.as_slice())), (&other, None)];
                    put_all(&region, &mut local, &changes).unwrap();
                    model.insert(at.clone(), value);
                    model.remove(&other);
                }
            }
            _ => {
                put(&region, &mut local, &at, Some(&value), None).unwrap();
                model.insert(at.clone(), value);
            }
        }
        assert_eq!(get(&region, &at), model.get(&at).cloned());
        if step % 5000 == 0 {
            assert_eq!(all(&region, "/").1, model);
            let below: BTreeMap<_, _> = model
                .iter()
                .filter(|(k, _)| k.starts_with("/a/b/"))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            assert_eq!(all(&region, "/a/b/").1, below);
        }
    }
    assert_eq!(region.usage().leaves, model.len() as u64);
    for at in model.keys() {
        put(&region, &mut local, at, None, None).unwrap();
    }
    assert!(region.leave(&mut local));
    let usage = region.usage();
    assert_eq!((usage.leaves, usage.cached, usage.transactions), (0, 0, 0), "{usage:?}");
}

#[test]
fn concurrent_increments_are_counted_and_snapshots_are_consistent() {
    let words = words(Geometry::SMALL);
    let region = region(&words);
    let stop = AtomicBool::new(false);
    // Two accounts with a constant sum.
    put(&region, &mut LocalBlocks::new(6), "/bank/a", Some(&1000i64.to_le_bytes()), None).unwrap();
    put(&region, &mut LocalBlocks::new(7), "/bank/b", Some(&1000i64.to_le_bytes()), None).unwrap();
    std::thread::scope(|scope| {
        let adders: Vec<_> = (1..4)
            .map(|process_slot| {
                scope.spawn(move || {
                    let mut local = LocalBlocks::new(process_slot);
                    let mut done = 0u64;
                    while done < 3000 {
                        let (value, revision) = counter(&region, process_slot);
                        let next = (value + 1).to_le_bytes();
                        let set = put(&region, &mut local, "/n", Some(&next), Some(revision));
                        match set {
                            Ok(_) => done += 1,
                            Err(CommitError::Conflict { .. }) => {}
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                    region.leave(&mut local);
                })
            })
            .collect();
        let mover = scope.spawn(|| {
            let mut local = LocalBlocks::new(4);
            for step in 0..4000i64 {
                let (a, b) = ((1000 + step).to_le_bytes(), (1000 - step).to_le_bytes());
                let changes = [("/bank/a", Some(&a[..])), ("/bank/b", Some(&b[..]))];
                match put_all(&region, &mut local, &changes) {
                    Ok(_) | Err(CommitError::Retry) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
        let reader = scope.spawn(|| {
            let mut seen = 0;
            let mut last = 0;
            while !stop.load(Ordering::Relaxed) || seen == 0 {
                let (revision, found) = all(&region, "/bank");
                let sum: i64 = found
                    .values()
                    .map(|v| i64::from_le_bytes(v.as_slice().try_into().unwrap()))
                    .sum();
                assert_eq!(sum, 2000, "{found:?} at {revision}");
                assert!(revision >= last);
                last = revision;
                seen += 1;
            }
        });
        adders.into_iter().for_each(|t| t.join().unwrap());
        mover.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(counter(&region, 0).0, 9000);
}

fn counter(region: &Region<'_>, process_slot: u16) -> (u64, u64) {
    let mut record = LeafBuffer::default();
    match region.get(process_slot, &key(region, "/n"), &|| 0, &mut record).unwrap() {
        true => (u64::from_le_bytes(record.value().try_into().unwrap()), record.meta.revision),
        false => (0, 0),
    }
}

#[test]
fn follower_sees_changes_in_order_and_detects_overruns() {
    let words = words(Geometry::SMALL);
    let region = region(&words);
    let mut local = LocalBlocks::new(0);
    let prefix = Prefix::new(b"/a", region.seed(), region.geometry());
    let mut at = Position { revision: 1, within: 0 };
    let mut record = LeafBuffer::default();
    assert_eq!(region.next_change(&mut at, &prefix, &mut record), Next::Nothing);
    put(&region, &mut local, "/a/x", Some(b"1"), None).unwrap();
    put(&region, &mut local, "/b", Some(b"2"), None).unwrap();
    put_all(&region, &mut local, &[("/a/y", Some(b"3")), ("/b", None), ("/a/x", None)]).unwrap();
    let mut seen = Vec::new();
    while region.next_change(&mut at, &prefix, &mut record) == Next::Change {
        let text = String::from_utf8(record.key().to_vec()).unwrap();
        seen.push((text, record.meta.revision, record.meta.has(leaf::DELETED)));
    }
    let expected = [("/a/x", 1, false), ("/a/y", 3, false), ("/a/x", 3, true)];
    assert_eq!(seen, expected.map(|(k, r, d)| (k.to_owned(), r, d)));
    // Further behind than the length of the journal.
    for _ in 0..100 {
        put(&region, &mut local, "/b", Some(b"2"), None).unwrap();
    }
    assert_eq!(region.next_change(&mut at, &prefix, &mut record), Next::Overrun);
}

#[test]
fn lease_keeps_its_blocks() {
    let words = words(Geometry::SMALL);
    let region = region(&words);
    let mut local = LocalBlocks::new(0);
    for at in ["/x/0", "/x/1", "/x/2"] {
        put(&region, &mut local, at, Some(b"old"), None).unwrap();
    }
    let lease = region.take_lease(1).unwrap().unwrap();
    for round in 0..1000 {
        put(&region, &mut local, "/x/0", Some(format!("{round}").as_bytes()), None).unwrap();
    }
    put(&region, &mut local, "/x/1", None, None).unwrap();
    put(&region, &mut local, "/x/1", Some(b"again"), None).unwrap();
    put(&region, &mut local, "/x/2", None, None).unwrap();
    put(&region, &mut local, "/x/3", Some(b"new"), None).unwrap();
    let prefix = Prefix::new(b"/x", region.seed(), region.geometry());
    let mut found = Vec::new();
    region
        .walk(&prefix, &mut |word, root| {
            let word = region.as_of(word, root, lease.revision)?.unwrap();
            if let Some(block) = region.current_block(word).filter(|_| !word.is_none()) {
                let mut record = LeafBuffer::default();
                leaf::copy(block, word, &mut record).unwrap();
                found.push(record.value().to_vec());
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(found, vec![b"old".to_vec(); 3]);
    region.end_snapshot(lease);
    put(&region, &mut local, "/x/0", None, None).unwrap();
    put(&region, &mut local, "/x/1", None, None).unwrap();
    put(&region, &mut local, "/x/3", None, None).unwrap();
    assert!(region.leave(&mut local));
    assert_eq!(region.usage().leaves + region.usage().cached, 0, "{:?}", region.usage());
}

#[test]
fn sweep_frees_everything_of_a_dead_process_slot() {
    let words = words(Geometry::SMALL);
    let region = region(&words);
    for round in 0..50u16 {
        // A process slot that dies while it holds one of everything.
        let mut dead = LocalBlocks::new(1);
        region.process_slot(1, PROCESS_OWNER).store(9, Ordering::Relaxed);
        for i in 0..200 {
            put(&region, &mut dead, &format!("/k/{}", i % 7), Some(&[1; 100]), None).unwrap();
        }
        put_all(&region, &mut dead, &[("/k/1", Some(b"x")), ("/k/2", None)]).unwrap();
        put(&region, &mut dead, "/large", Some(&vec![round as u8; 100_000]), None).unwrap();
        let _lease = region.take_lease(1).unwrap().unwrap();
        drop(dead);
        let mut local = LocalBlocks::new(2);
        assert_eq!(region.sweep(&mut local, &AlwaysBacked, 1), Ok(SweepOutcome::Complete));
        assert!(region.leave(&mut local));
        let usage = region.usage();
        assert_eq!((usage.cached, usage.transactions, usage.leaves), (0, 0, 7), "{usage:?}");
    }
    assert_eq!(get(&region, "/k/1").unwrap(), b"x");
    assert_eq!(get(&region, "/large").unwrap().len(), 100_000);
}

#[test]
fn slabs_change_class_when_memory_is_exhausted() {
    let geometry = Geometry { slabs: 40, ..Geometry::SMALL };
    let words = words(geometry);
    let region = Region::new(&words, geometry, 1).unwrap();
    let mut local = LocalBlocks::new(0);
    for round in 0..6 {
        let len = [20, 300, 2000, 30_000, 90_000, 6000][round];
        let mut made = 0;
        loop {
            match put(&region, &mut local, &format!("/f/{made}"), Some(&vec![7; len]), None) {
                Ok(_) => made += 1,
                Err(CommitError::OutOfMemory(_)) => break,
                Err(other) => panic!("{other:?}"),
            }
        }
        assert!(made * (len + 150) > 150_000, "{made} values of {len} bytes");
        for index in 0..made {
            put(&region, &mut local, &format!("/f/{index}"), None, None).unwrap();
        }
        assert!(region.leave(&mut local), "{round}");
    }
}

/// Each transaction writes a key if the other's key is absent: of two concurrent ones, at most one succeeds.
#[test]
fn guards_are_valid_at_commit() {
    let words = words(Geometry::SMALL);
    let region = region(&words);
    let both = AtomicU64::new(0);
    let barrier = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for (process_slot, mine, others) in [(1, "/lock/a", "/lock/b"), (2, "/lock/b", "/lock/a")] {
            let (both, barrier) = (&both, &barrier);
            scope.spawn(move || {
                let mut local = LocalBlocks::new(process_slot);
                for _ in 0..2000 {
                    barrier.wait();
                    let taken = take_if_absent(&region, &mut local, mine, others);
                    barrier.wait();
                    if taken {
                        both.fetch_add(1, Ordering::Relaxed);
                    }
                    barrier.wait();
                    assert!(both.load(Ordering::Relaxed) <= 1);
                    barrier.wait();
                    both.store(0, Ordering::Relaxed);
                    put(&region, &mut local, mine, None, None).unwrap();
                }
                assert!(region.leave(&mut local));
            });
        }
    });
    assert_eq!(region.usage().leaves + region.usage().cached, 0, "{:?}", region.usage());
}

fn take_if_absent(region: &Region<'_>, local: &mut LocalBlocks, mine: &str, others: &str) -> bool {
    let (mine, others) = (key(region, mine), key(region, others));
    let write = Write { key: &mine, content: content(Some(b"me")), expect: None, durable: None };
    let prepared = region.prepare(local, &AlwaysBacked, &write).unwrap();
    region.fill(&prepared, &write);
    let guard = Guard { key: &others, revision: 0 };
    let check: Check<'_, Never> = &mut |_, _| Ok(());
    match region.commit_all(local, &AlwaysBacked, &[(write, prepared)], &[guard], 0, check) {
        Ok(CommitOutcome::Committed(_)) => true,
        Err(CommitError::Retry | CommitError::Conflict { .. }) => false,
        other => panic!("{other:?}"),
    }
}

/// A filled leaf that is in neither a slot nor the journal.
fn pending_leaf<'a>(
    region: &Region<'a>,
    local: &mut LocalBlocks,
    at: &str,
) -> (Block<'a>, BlockRef, u32) {
    let key = key(region, at);
    let write = Write { key: &key, content: content(Some(b"v")), expect: None, durable: None };
    let prepared = region.prepare(local, &AlwaysBacked, &write).unwrap();
    region.fill(&prepared, &write);
    let own = prepared.0;
    (region.block(own.unit).unwrap(), BlockRef::new(LEAF, own.unit, own.tag), key.root())
}

#[test]
fn delayed_helper_assigns_no_revision_to_a_later_use_of_a_block() {
    let words = words(Geometry::SMALL);
    let region = region(&words);
    let mut local = LocalBlocks::new(0);
    let (block, word, root) = pending_leaf(&region, &mut local, "/a");
    region.append(1, block, word, root);
    assert!(region.help(1));
    assert_eq!(block[leaf::REVISION].load(Ordering::Relaxed), 1);
    // The block was reused as often as 16 bits can count and is pending again when an old helper continues.
    let tag = word.tag() + (1 << 16);
    block[0].store(BlockHeader::new(IS_LEAF, 0, tag).0, Ordering::Relaxed);
    block[leaf::REVISION].store(pending(tag), Ordering::Relaxed);
    region.help(1);
    assert_eq!(block[leaf::REVISION].load(Ordering::Relaxed), pending(tag));
    // A late follower does not take it for the earlier content either.
    block[leaf::REVISION].store(9, Ordering::Relaxed);
    assert!(matches!(region.at_position(1), JournalSlot::Change { word: None, .. }));
}

#[test]
fn writer_delayed_by_a_lap_does_not_overwrite_an_entry() {
    let words = words(Geometry::SMALL);
    let region = region(&words);
    let mut local = LocalBlocks::new(0);
    let lap = 1 << Geometry::SMALL.journal_bits;
    for _ in 0..lap {
        put(&region, &mut local, "/a", Some(b"x"), None).unwrap();
    }
    // Another process has entered a leaf and is stopped before it moves the tail.
    let (block, word, root) = pending_leaf(&region, &mut local, "/b");
    region.append(1 + lap, block, word, root);
    let entered = region.entry(1 + lap).load(Ordering::Relaxed);
    // Another process loaded the tail a lap ago.
    let (late, other, root) = pending_leaf(&region, &mut local, "/c");
    region.append(1, late, other, root);
    assert_eq!(region.entry(1 + lap).load(Ordering::Relaxed), entered);
    assert_eq!(region.newest(), Ok(1 + lap));
    assert_eq!(block[leaf::REVISION].load(Ordering::Relaxed), 1 + lap);
}

#[test]
fn entry_belongs_to_one_lap() {
    let geometry = Geometry::DOMAIN;
    let journal = 1u64 << geometry.journal_bits;
    let word = BlockRef::new(LEAF, 77, 5);
    for position in [0, 1, journal - 1, 5 * journal + 3] {
        let entry = JournalEntry::new(word, JournalEntry::lap_of(&geometry, position), false, 3);
        assert!(entry.is_of(JournalEntry::lap_of(&geometry, position)));
        assert!(!JournalEntry(0).is_of(JournalEntry::lap_of(&geometry, position)), "never written");
        for shift in 0..LAP_BITS {
            let later = position + (journal << shift);
            assert!(!entry.is_of(JournalEntry::lap_of(&geometry, later)), "{position} {later}");
        }
        assert_eq!((entry.unit(), entry.is_txn(), entry.is_deleted()), (77, false, false));
        assert!(entry.fits_root(3) && !entry.fits_root(4));
    }
}

#[test]
fn change_is_not_read_while_its_block_is_rewritten() {
    let geometry = Geometry { journal_bits: 10, ..Geometry::SMALL };
    let words = words(geometry);
    let region = Region::new(&words, geometry, 42).unwrap();
    let mut local = LocalBlocks::new(0);
    put(&region, &mut local, "/a", Some(b"one"), None).unwrap();
    let JournalSlot::Change { word: Some(first), .. } = region.at_position(1) else { panic!() };
    let key = key(&region, "/a");
    let write = Write { key: &key, content: content(Some(b"two")), expect: None, durable: None };
    for _ in 0..4 * QUARANTINE {
        let prepared = region.prepare(&mut local, &AlwaysBacked, &write).unwrap();
        if prepared.0.unit == first.unit() {
            // Allocated and not yet written: its new tag would cover whatever is written from here on.
            let JournalSlot::Change { word, .. } = region.at_position(1) else { panic!() };
            assert_eq!(word, None);
            return;
        }
        region.fill(&prepared, &write);
        let check: Check<'_, Never> = &mut |_, _| Ok(());
        let done = region.commit_one(&mut local, &AlwaysBacked, &write, &prepared, 0, check);
        assert!(matches!(done, Ok(Some(CommitOutcome::Committed(_)))), "{done:?}");
    }
    panic!("the block was never reused");
}
