//! A map with the behaviour of the region, and the operations on both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rnet_core::Error;
use rnet_shm::state::{Follower, Guard, Head, NextChange, Record, Region, StoredValue, Write};

/// Number of keys; some are long, many share a prefix.
const KEYS: u64 = 3000;
/// Number of operations between two reads of a follower.
const READ_INTERVAL: u64 = 500;
/// Memory in addition to the values: headers, memory kept for late readers, rounding of sizes.
const SLACK_LEN_BYTES: u64 = 64 << 20;
/// The prefix that the followers watch.
const FOLLOWED: &str = "/follow/";

/// One key of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    revision: u64,
    version: u64,
    kind: u16,
    type_id: u64,
    /// Seed and length determine the value.
    seed: u64,
    len: usize,
    written: u64,
    expires: u64,
    writer: usize,
}

/// A write to one key.
struct Order {
    key: String,
    /// Seed and length; `None` deletes.
    value: Option<(u64, usize)>,
    expires: u64,
    expect: Option<u64>,
}

impl Order {
    fn write<'a>(&'a self, bytes: &'a Option<Vec<u8>>) -> Write<'a> {
        let (seed, _) = self.value.unwrap_or_default();
        let value = bytes.as_deref().map(|bytes| StoredValue {
            kind: seed as u16,
            type_id: seed >> 16,
            bytes,
            will: None,
            expires_boot_ns: self.expires,
        });
        Write { key: &self.key, value, expect: self.expect, durable: None }
    }
}

pub struct Model<'a> {
    regions: &'a [Region; 2],
    clock: Arc<AtomicU64>,
    dice: u64,
    steps: u64,
    map: BTreeMap<String, Kept>,
    revision: u64,
    /// Bytes of the existing values, now and at most.
    live: u64,
    most: u64,
    record: Record,
    followers: Vec<(Follower, BTreeMap<String, Kept>)>,
    counts: BTreeMap<&'static str, u64>,
}

fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let words = (0..len.div_ceil(8) as u64).flat_map(|at| mix(seed ^ at << 24).to_le_bytes());
    let mut bytes: Vec<u8> = words.collect();
    bytes.truncate(len);
    bytes
}

/// Names of the two nodes.
const WRITERS: [&str; 2] = ["/one", "/two"];

impl<'a> Model<'a> {
    pub fn new(regions: &'a [Region; 2], clock: Arc<AtomicU64>, seed: u64) -> Model<'a> {
        let revision = regions[0].revision();
        let follow = |_| (regions[1].follow(revision).unwrap(), BTreeMap::new());
        Model {
            regions,
            clock,
            dice: seed,
            steps: 0,
            map: BTreeMap::new(),
            revision,
            live: 0,
            most: 0,
            record: Record::default(),
            followers: (0..2).map(follow).collect(),
            counts: BTreeMap::new(),
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.dice) % limit.max(1)
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn summary(&self) -> String {
        format!("{:?}", self.counts)
    }

    fn key(&mut self) -> String {
        // A few keys are written often, many rarely.
        let number = if self.below(4) == 0 { self.below(16) } else { self.below(KEYS) };
        match number % 8 {
            0..4 => format!("/follow/{number}"),
            4 => format!("/{}{number}", "long/".repeat(49)),
            5 => format!("/a/b/c/{number}"),
            6 => format!("/{number}"),
            _ => format!("/ключ/{number}"),
        }
    }

    fn len(&mut self) -> usize {
        let len = match self.below(100_000) {
            0..3 => 1 << 20 | self.below(3 << 20),
            3..200 => self.below(64 << 10),
            200..5_000 => self.below(4 << 10),
            _ => self.below(120),
        };
        len as usize
    }

    /// The value of a key, expired or not.
    fn stored_value(&self, key: &str) -> Option<&Kept> {
        self.map.get(key)
    }

    /// The value of a key that has not expired.
    fn living(&self, key: &str) -> Option<&Kept> {
        let now = self.now();
        self.map.get(key).filter(|kept| kept.expires == 0 || kept.expires > now)
    }

    pub fn step(&mut self) {
        self.steps += 1;
        match self.below(20) {
            0..7 => self.get(),
            7..13 => self.write_one(true),
            13..16 => self.write_one(false),
            16..18 => self.write_many(),
            18 => {
                let on = self.below(1000);
                self.clock.fetch_add(on, Ordering::Relaxed);
            }
            _ if self.below(200) == 0 => self.snapshot(),
            _ => self.get(),
        }
        if self.steps.is_multiple_of(READ_INTERVAL) {
            self.read_changes(0);
            self.bound();
        }
        // After whatever is kept for followers.
        if self.steps.is_multiple_of(READ_INTERVAL * 97) {
            self.read_changes(1);
        }
    }

    /// Memory is bounded by the existing values: replaced memory is reused.
    fn bound(&mut self) {
        self.most = self.most.max(self.live);
        let slabs = self.regions[0].usage().slabs * (64 << 10);
        let most = 4 * self.most + SLACK_LEN_BYTES;
        assert!(slabs <= most, "{slabs} bytes for at most {} of values", self.most);
    }

    fn get(&mut self) {
        let key = self.key();
        let from = self.below(2) as usize;
        let mut record = std::mem::take(&mut self.record);
        let found = self.regions[from].get(&key, &mut record).unwrap();
        let expected = self.living(&key);
        assert_eq!(found, expected.is_some(), "{key}: {expected:?}");
        if let Some(expected) = expected {
            same(&key, expected, &record);
        }
        self.record = record;
        self.count(if found { "found" } else { "absent" });
    }

    fn order(&mut self, key: String, sets: bool) -> Order {
        let value = sets.then(|| (self.below(u64::MAX), self.len()));
        let expires = if self.below(20) == 0 { self.now() + 1 + self.below(20_000) } else { 0 };
        let present = self.living(&key).map_or(0, |kept| kept.revision);
        let expect = match self.below(10) {
            0..2 => Some(present),
            2 => Some(present + 1 + self.below(3)),
            3 => Some(0),
            _ => None,
        };
        // An expired key is deleted at its revision, which notifies followers of its expiry.
        let expect = match self.stored_value(&key) {
            Some(kept) if value.is_none() && expect == Some(0) && present == 0 => {
                Some(kept.revision)
            }
            _ => expect,
        };
        Order { key, value, expires, expect }
    }

    fn write_one(&mut self, sets: bool) {
        let key = self.key();
        let order = self.order(key, sets);
        self.commit(&[order], &[]);
    }

    fn write_many(&mut self) {
        let mut orders: Vec<Order> = Vec::new();
        for _ in 0..2 + self.below(if self.steps.is_multiple_of(512) { 60 } else { 4 }) {
            let key = self.key();
            if orders.iter().all(|order| order.key != key) {
                let sets = self.below(4) > 0;
                let mut order = self.order(key, sets);
                order.expect = order.expect.filter(|_| self.below(4) == 0);
                orders.push(order);
            }
        }
        let mut guards: Vec<(String, u64)> = Vec::new();
        for _ in 0..self.below(3) {
            let key = self.key();
            let new = guards.iter().all(|(guarded, _)| *guarded != key);
            if new && orders.iter().all(|order| order.key != key) {
                let present = self.living(&key).map_or(0, |kept| kept.revision);
                let wrong = u64::from(self.below(8) == 0);
                guards.push((key, present + wrong));
            }
        }
        self.commit(&orders, &guards);
    }

    /// The revision that the commit must find at a key: a deletion at its revision also finds an expired key.
    fn found(&self, order: &Order) -> u64 {
        let over = order.value.is_none() && order.expect.is_some_and(|r| r != 0);
        let kept = if over { self.stored_value(&order.key) } else { self.living(&order.key) };
        kept.map_or(0, |kept| kept.revision)
    }

    fn commit(&mut self, orders: &[Order], guards: &[(String, u64)]) {
        let at = self.below(2) as usize;
        let values: Vec<Option<Vec<u8>>> =
            orders.iter().map(|o| o.value.map(|(seed, len)| bytes(seed, len))).collect();
        let pairs = orders.iter().zip(&values);
        let writes: Vec<Write<'_>> = pairs.map(|(order, bytes)| order.write(bytes)).collect();
        let guards: Vec<Guard<'_>> =
            guards.iter().map(|(key, revision)| Guard { key, revision: *revision }).collect();
        let mut heads: Vec<Option<Head>> = vec![None; orders.len()];
        let done = self.regions[at].commit(&writes, &guards, &mut |at, head| {
            heads[at] = head.copied();
            Ok(())
        });
        let wrong_guard =
            guards.iter().any(|g| self.living(g.key).map_or(0, |kept| kept.revision) != g.revision);
        let wrong_order = orders.iter().any(|o| o.expect.is_some_and(|r| r != self.found(o)));
        if wrong_guard || wrong_order {
            let what = (orders.len(), wrong_guard, wrong_order);
            assert!(matches!(done, Err(Error::Conflict { .. })), "{what:?}: {done:?}");
            return self.count("refused");
        }
        // Expired keys may have been deleted in passing; a deletion at their revision then fails.
        if let Err(Error::Conflict { key, .. }) = &done
            && self.stored_value(key).is_some()
            && self.living(key).is_none()
        {
            self.live -= self.stored_value(key).map_or(0, |kept| kept.len as u64);
            self.map.remove(key);
            return self.count("over");
        }
        let revision = done.unwrap();
        for (order, head) in orders.iter().zip(&heads) {
            let expected = self.living(&order.key).map(|kept| (kept.revision, kept.version));
            let head = head.filter(|head| {
                let now = self.now();
                head.expires_boot_ns == 0 || head.expires_boot_ns > now
            });
            assert_eq!(head.map(|h| (h.revision, h.version)), expected, "{}", order.key);
        }
        let changes = |o: &Order| o.value.is_some() || self.living(&o.key).is_some();
        if revision == 0 {
            assert!(!orders.iter().any(changes), "a commit without effect");
            return self.count("nothing to delete");
        }
        // Expired keys are deleted in passing, which uses revisions too.
        assert!(revision > self.revision, "revisions follow each other");
        self.revision = revision;
        for order in orders {
            self.apply(order, at);
        }
        self.count(if orders.len() > 1 { "transactions" } else { "writes" });
    }

    fn apply(&mut self, order: &Order, writer: usize) {
        // An expired key continues its version, a deleted key starts again; expired keys may have been
        // deleted in passing.
        let mut version = self.stored_value(&order.key).map_or(1, |kept| kept.version + 1);
        if self.stored_value(&order.key).is_some() && self.living(&order.key).is_none() {
            let mut record = Record::default();
            if self.regions[writer].get(&order.key, &mut record).unwrap() {
                assert!([1, version].contains(&record.version), "{}", order.key);
                version = record.version;
            }
        }
        self.live -= self.stored_value(&order.key).map_or(0, |kept| kept.len as u64);
        let Some((seed, len)) = order.value else {
            self.map.remove(&order.key);
            return;
        };
        self.live += len as u64;
        let kept = Kept {
            revision: self.revision,
            version,
            kind: seed as u16,
            type_id: seed >> 16,
            seed,
            len,
            written: self.now(),
            expires: order.expires,
            writer,
        };
        self.map.insert(order.key.clone(), kept);
    }

    fn snapshot(&mut self) {
        let prefix = ["", "/", "/follow/", "/follow", "/a/b", "/nothing"][self.below(6) as usize];
        let (revision, records) = self.regions[0].snapshot(prefix).unwrap();
        assert!(revision >= self.revision);
        let expected =
            self.map.keys().filter(|key| key.starts_with(prefix) && self.living(key).is_some());
        // No key is a prefix of another name, so comparing bytes suffices.
        assert_eq!(records.len(), expected.count(), "{prefix}");
        for record in &records {
            let key = record.key();
            assert!(key.starts_with(prefix));
            same(key, self.living(key).expect("the key exists"), record);
        }
        self.count("snapshots");
    }

    /// A follower reads the changes, and then knows the current values.
    fn read_changes(&mut self, which: usize) {
        let mut record = std::mem::take(&mut self.record);
        let (mut follower, mut copy) = self.followers.swap_remove(which);
        loop {
            match follower.next(FOLLOWED, &mut record) {
                NextChange::Nothing => break,
                NextChange::Change if record.deleted => {
                    copy.remove(record.key());
                }
                NextChange::Change => {
                    copy.insert(record.key().to_owned(), kept_of(&record));
                }
                NextChange::Overrun => {
                    let (revision, records) = self.regions[1].snapshot(FOLLOWED).unwrap();
                    let kept = records.iter().map(|r| (r.key().to_owned(), kept_of(r)));
                    copy = kept.collect();
                    follower = self.regions[1].follow(revision).unwrap();
                    self.count("followers behind");
                }
            }
        }
        let now = self.now();
        copy.retain(|_, kept| kept.expires == 0 || kept.expires > now);
        let followed = |key: &&String| key.starts_with(FOLLOWED);
        let expected: Vec<_> = self.map.keys().filter(followed).collect();
        for key in expected {
            let kept = self.living(key).map(|kept| (kept.revision, kept.version, kept.len));
            let seen = copy.get(key).map(|kept| (kept.revision, kept.version, kept.len));
            assert_eq!(seen, kept, "{key}: the follower's copy differs from the map");
        }
        let gone = copy.keys().find(|key| !self.map.contains_key(*key));
        assert_eq!(gone, None, "a follower was not notified of its deletion");
        self.followers.push((follower, copy));
        let last = self.followers.len() - 1;
        self.followers.swap(which, last);
        self.record = record;
        self.count("reads");
    }

    /// Deletes everything and checks that the region is empty.
    pub fn empty(&mut self) {
        let keys: Vec<(String, u64)> =
            self.map.iter().map(|(key, kept)| (key.clone(), kept.revision)).collect();
        for (key, revision) in keys {
            let order = Order { key, value: None, expires: 0, expect: Some(revision) };
            self.commit(&[order], &[]);
        }
        assert_eq!(self.map.len(), 0);
        let (_, records) = self.regions[0].snapshot("").unwrap();
        assert_eq!(records.len(), 0);
    }
}

fn kept_of(record: &Record) -> Kept {
    Kept {
        revision: record.revision,
        version: record.version,
        kind: record.kind,
        type_id: record.type_id,
        seed: 0,
        len: record.value().len(),
        written: record.written_unix_ns,
        expires: record.expires_boot_ns,
        writer: 0,
    }
}

fn same(key: &str, kept: &Kept, record: &Record) {
    assert_eq!(record.key(), key);
    let seen = (record.revision, record.version, record.kind, record.type_id);
    assert_eq!(seen, (kept.revision, kept.version, kept.kind, kept.type_id), "{key}");
    let times = (record.written_unix_ns, record.expires_boot_ns);
    assert_eq!(times, (kept.written, kept.expires), "{key}");
    assert_eq!(record.writer(), WRITERS[kept.writer], "{key}");
    assert!(!record.deleted && record.will().is_none(), "{key}");
    assert!(record.value() == bytes(kept.seed, kept.len), "{key}: another value");
}
