//! A region with arbitrary content: readers and writers neither panic nor loop forever, and return a value or
//! an error.

use std::sync::atomic::{AtomicU64, Ordering};

use rnet_ring::state::layout::{GEOMETRY_AT, Geometry, PROCESS_WILLS, TAIL_AT};
use rnet_ring::state::leaf::DELETED;
use rnet_ring::state::{
    Environment, Guard, Key, LeafBuffer, LeafContent, LeafMeta, LocalBlocks, Position, Prefix,
    Region, Write,
};

struct AlwaysBacked;
impl Environment for AlwaysBacked {
    fn back_with_memory(&self, _: usize, _: usize) -> bool {
        true
    }
    fn wake(&self, _: usize) {}
}

struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

type Never = std::convert::Infallible;

/// One of a few keys, some of which share a path prefix in the trie.
fn name(rng: &mut Rng) -> String {
    match rng.below(3) {
        0 => format!("/a/{}", rng.below(30)),
        1 => format!("/{}/x", rng.below(30)),
        _ => format!("/a/b/{}", rng.below(30)),
    }
}

fn act(region: &Region<'_>, local: &mut LocalBlocks, rng: &mut Rng) {
    let text = name(rng);
    let Some(key) = Key::new(text.as_bytes(), region.seed(), region.geometry()) else { return };
    let value = vec![7; [8, 300, 5000, 90_000][rng.below(4) as usize]];
    let deletes = rng.below(3) == 0;
    let meta =
        LeafMeta { flags: if deletes { DELETED } else { 0 }, kind: 1, ..LeafMeta::default() };
    let content = LeafContent {
        writer: b"/hostile",
        value: if deletes { &[] } else { &value },
        will: (rng.below(4) == 0 && !deletes).then_some(&[1, 2, 3]),
        meta,
    };
    let write = Write { key: &key, content, expect: None, durable: None };
    let check = &mut |_: usize, _: Option<&LeafMeta>| Ok::<(), Never>(());
    let mut record = LeafBuffer::default();
    match rng.below(8) {
        0..3 => {
            let Ok(leaf) = region.prepare(local, &AlwaysBacked, &write) else { return };
            region.fill(&leaf, &write);
            let done = region.commit_one(local, &AlwaysBacked, &write, &leaf, 0, check);
            if !matches!(done, Ok(Some(_))) {
                region.discard(local, leaf);
            }
        }
        3 => {
            let other = name(rng);
            let Some(guard) = Key::new(other.as_bytes(), region.seed(), region.geometry()) else {
                return;
            };
            let Ok(leaf) = region.prepare(local, &AlwaysBacked, &write) else { return };
            region.fill(&leaf, &write);
            let guards = [Guard { key: &guard, revision: 0 }];
            let guards = if other == text { &[][..] } else { &guards[..] };
            let _ = region.commit_all(local, &AlwaysBacked, &[(write, leaf)], guards, 0, check);
        }
        4 => {
            let prefix = Prefix::new(b"/a", region.seed(), region.geometry());
            let _ = region.snapshot(local.process_slot, &prefix, 0, &mut |record| {
                let _ = (record.key().len(), record.value().len(), record.writer().len());
            });
        }
        5 => {
            let prefix = Prefix::new(b"/", region.seed(), region.geometry());
            let newest = region.newest().unwrap_or_default();
            let revision = newest.wrapping_sub(rng.below(80));
            let mut at = Position { revision, within: 0 };
            for _ in 0..100 {
                let _ = region.next_change(&mut at, &prefix, &mut record);
            }
        }
        6 if rng.below(4) == 0 => {
            let dead = 3;
            region.process_slot(3, PROCESS_WILLS).store(1, Ordering::Relaxed);
            let _ = region.due_wills(local.process_slot, dead, &mut |_| {});
            let _ = region.sweep(local, &AlwaysBacked, dead);
            let _ = region.usage();
        }
        _ => {
            let _ = region.get(local.process_slot, &key, &|| 0, &mut record);
        }
    }
}

/// A word that is wrong in a relevant way: a small number, a neighbour's word, or any.
fn wrong(words: &[AtomicU64], rng: &mut Rng) -> u64 {
    let any = |rng: &mut Rng| words[rng.below(words.len() as u64) as usize].load(Ordering::Relaxed);
    match rng.below(6) {
        0 => rng.below(2),
        1 => rng.below(1 << 20),
        2 => u64::MAX - rng.below(4),
        3 => any(rng),
        4 => any(rng) ^ 1 << rng.below(64),
        _ => rng.next(),
    }
}

fn run(seed: u64) {
    let geometry = Geometry { slabs: 24, ..Geometry::SMALL };
    let words: Vec<AtomicU64> = (0..geometry.words()).map(|_| AtomicU64::new(0)).collect();
    words[TAIL_AT].store(1, Ordering::Relaxed);
    words[GEOMETRY_AT].store(geometry.packed(), Ordering::Relaxed);
    let region = Region::new(&words, geometry, seed).expect("the words are enough");
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut locals = [LocalBlocks::new(0), LocalBlocks::new(1), LocalBlocks::new(3)];
    for _ in 0..60 {
        let which = rng.below(3) as usize;
        act(&region, &mut locals[which], &mut rng);
    }
    for _ in 0..40 {
        // The corrupted area: the fixed part, the table, or blocks in use.
        let limit = match rng.below(4) {
            0 => geometry.process_slots_at() as u64,
            1 => geometry.table_at() as u64,
            2 => (geometry.table_at() + geometry.slabs) as u64,
            _ => (geometry.blocks_at() + 6 * 8192) as u64,
        };
        for _ in 0..rng.below(6) {
            let value = wrong(&words, &mut rng);
            words[rng.below(limit) as usize].store(value, Ordering::Relaxed);
        }
        let which = rng.below(3) as usize;
        act(&region, &mut locals[which], &mut rng);
    }
    for local in &mut locals {
        region.leave(local);
    }
}

#[test]
fn corrupt_region_causes_no_panic_or_endless_loop() {
    for seed in 1..600 {
        run(seed);
    }
}
