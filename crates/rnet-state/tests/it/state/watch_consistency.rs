//! A watch and a reader agree, even if the watch is so late that the journal has discarded changes; unknown
//! counts are reported as unknown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rnet::state::{Change, State, Watch};

use crate::common::Net;

const SECOND: u64 = 1_000_000_000;

/// More changes than the journal holds.
const A_JOURNAL: usize = 17_000;
/// More writes of one node than the number of replaced blocks that it keeps.
const SOME: usize = 1_000;

fn drain(watch: &mut Watch) -> Vec<Change> {
    std::iter::from_fn(|| watch.try_recv().unwrap()).collect()
}

fn fill(state: &State, key: &str, count: usize) {
    for n in 0..count {
        state.set(key, n as i64).unwrap();
    }
}

/// States with the test's own clock, whose wall clock differs each time.
fn clocked(net: &Net, name: &str) -> (Arc<AtomicU64>, State) {
    let clock = Arc::new(AtomicU64::new(50 * SECOND));
    let (read, wall) = (clock.clone(), AtomicU64::new(1));
    let wall = move || wall.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst) >> 3;
    let read = move || read.load(Ordering::SeqCst);
    (clock, rnet::binding::state_with_clocks(&net.node(name), wall, read, 1).unwrap())
}

/// Sum for one key: each reported change and each skipped value counts one.
fn counted(changes: &[Change], key: &str) -> u64 {
    let of_key = changes.iter().filter(|change| change.key == key);
    of_key.map(|change| 1 + change.skipped.expect("the count is known")).sum()
}

#[test]
fn unseen_deleted_values_are_counted() {
    let net = Net::new("unseen_deleted_values_are_counted");
    let state = net.node("n").state().unwrap();
    state.set("/known", -1).unwrap();
    let mut watch = state.watch("/").unwrap();
    assert_eq!(drain(&mut watch).len(), 1);
    let mut count = |key: &str, lives: u64| {
        let changes = drain(&mut watch);
        assert_eq!(counted(&changes, key), lives, "{key}");
        let last = changes.iter().rfind(|change| change.key == key).unwrap();
        assert_eq!(last.expired, Some(false));
        assert!(changes.iter().any(|c| c.skipped > Some(100)), "nothing was skipped at all");
        last.entry.is_some()
    };
    fill(&state, "/known", SOME);
    state.delete("/known").unwrap();
    assert!(!count("/known", SOME as u64 + 1));
    // A key that is created and deleted before the watch reads.
    fill(&state, "/brief", SOME);
    state.delete("/brief").unwrap();
    assert!(!count("/brief", SOME as u64 + 1));
    fill(&state, "/again", SOME);
    state.delete("/again").unwrap();
    state.set("/again", 1).unwrap();
    assert!(count("/again", SOME as u64 + 2));
}

#[test]
fn unknown_counts_are_reported_as_unknown() {
    let net = Net::new("unknown_counts_are_reported_as_unknown");
    let (clock, state) = clocked(&net, "n");
    let lives = Duration::from_secs(60);
    for key in ["/by-hand", "/again", "/stays"] {
        state.put(key).ttl(lives).set(1).unwrap();
    }
    state.put("/over").ttl(Duration::from_secs(5)).set(1).unwrap();
    fill(&state, "/often", 3 * A_JOURNAL);
    let mut watch = state.watch("/").unwrap();
    assert_eq!(drain(&mut watch).len(), 5);
    state.delete("/by-hand").unwrap();
    fill(&state, "/by-hand", 50);
    state.delete("/by-hand").unwrap();
    state.delete("/again").unwrap();
    fill(&state, "/again", 50);
    fill(&state, "/often", 2 * A_JOURNAL);
    clock.fetch_add(10 * SECOND, Ordering::SeqCst);
    let reported: BTreeMap<String, Change> =
        drain(&mut watch).into_iter().map(|change| (change.key.clone(), change)).collect();
    // Its time would be over by now, but it may have been deleted before.
    let gone = &reported["/by-hand"];
    assert_eq!((gone.entry.is_none(), gone.expired, gone.skipped), (true, None, None));
    assert_eq!((reported["/again"].skipped, reported["/again"].entry.is_some()), (None, true));
    // This expired value still exists in the region.
    let over = &reported["/over"];
    assert_eq!((over.entry.is_none(), over.expired, over.skipped), (true, Some(true), Some(0)));
    // This key has more writes than there were changes since, so it was not created again.
    assert_eq!(reported["/often"].skipped, Some(2 * A_JOURNAL as u64 - 1));
    assert!(!reported.contains_key("/stays"));
}

/// The true history of a key, by revision.
#[derive(Default)]
struct KeyModel {
    writes: Vec<u64>,
    /// The first write after the key was absent.
    made: u64,
    /// Explicit deletions of a present key.
    deleted: Vec<u64>,
    /// End of the newest value's time to live.
    ends: u64,
}

impl KeyModel {
    fn is_gone(&self, now: u64) -> bool {
        let newest = self.writes.last().copied().unwrap_or_default();
        self.deleted.last().is_some_and(|r| *r > newest) || self.ends <= now
    }

    fn writes_in(&self, after: u64, until: u64) -> u64 {
        self.writes.iter().filter(|r| **r > after && **r <= until).count() as u64
    }
}

struct WatchModel {
    dice: u64,
    clock: Arc<AtomicU64>,
    state: State,
    truth: BTreeMap<String, KeyModel>,
    /// The contents that a user derives from the watch alone.
    mirror: BTreeMap<String, u64>,
    reported_at: BTreeMap<String, u64>,
    begun: u64,
    /// Revision of the watch's last read, and whether changes may have been lost since.
    looked: u64,
    may_lose: bool,
    unknown: u64,
    known: u64,
}

impl WatchModel {
    fn below(&mut self, n: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % n
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    fn key(&mut self) -> String {
        // Durable keys rarely, because they cost disk time.
        if self.below(60) == 0 { "/durable".to_owned() } else { format!("/k{}", self.below(4)) }
    }

    fn act(&mut self) {
        let key = self.key();
        match self.below(20) {
            0..8 => {
                let ttl = (self.below(2) == 0).then(|| 1 + self.below(20));
                let mut put = self.state.put(&key).durable(key == "/durable");
                if let Some(ttl) = ttl {
                    put = put.ttl(Duration::from_secs(ttl));
                }
                let revision = put.set(self.dice as i64).unwrap();
                let ends = ttl.map_or(u64::MAX, |ttl| self.now() + ttl * SECOND);
                self.wrote(&key, revision, ends);
            }
            8..12 => {
                let was = self.state.get(&key).unwrap().is_some();
                self.state.delete(&key).unwrap();
                let revision = self.state.revision();
                if was {
                    self.truth.entry(key).or_default().deleted.push(revision);
                }
            }
            12..14 => {
                let mut transaction = self.state.transaction();
                for key in ["/k0", "/k1"] {
                    transaction.put(key).change_type().set(rnet::state::Value::Int(1)).unwrap();
                }
                let revision = transaction.commit().unwrap();
                for key in ["/k0", "/k1"] {
                    self.wrote(key, revision, u64::MAX);
                }
            }
            14 => self.burst(SOME as u64 / 2),
            _ => drop(self.clock.fetch_add(SECOND, Ordering::SeqCst)),
        }
    }

    /// Enough changes to reuse blocks, or to wrap the journal.
    fn burst(&mut self, count: u64) {
        let key = format!("/k{}", self.below(4));
        for _ in 0..count {
            let revision = self.state.set(&key, 0).unwrap();
            self.wrote(&key, revision, u64::MAX);
        }
    }

    fn wrote(&mut self, key: &str, revision: u64, ends: u64) {
        let now = self.now();
        let truth = self.truth.entry(key.to_owned()).or_default();
        if truth.is_gone(now) {
            truth.made = revision;
        }
        truth.writes.push(revision);
        truth.ends = ends;
    }

    fn hear(&mut self, change: Change) {
        let last =
            self.reported_at.insert(change.key.clone(), change.revision).unwrap_or(self.begun);
        let truth = &self.truth[&change.key];
        if let Some(skipped) = change.skipped {
            self.known += 1;
            // A reported value is one of the writes.
            let seen = u64::from(change.entry.is_some());
            let writes = truth.writes_in(last, change.revision);
            let mut least = writes;
            if self.may_lose && !self.mirror.contains_key(&change.key) {
                // The key may have been created and deleted before, in a lost part of the journal.
                least = truth.writes_in(last.max(truth.made - 1), change.revision);
            }
            let known = least..=writes;
            assert!(known.contains(&(skipped + seen)), "{known:?}: {change:?} after {last}");
        } else {
            self.unknown += 1;
        }
        match &change.entry {
            Some(entry) => drop(self.mirror.insert(change.key.clone(), entry.revision)),
            None => {
                let before = truth.writes.iter().rfind(|r| **r <= change.revision).copied();
                let before = before.unwrap_or_default();
                let by_hand = truth.deleted.iter().any(|r| *r > before && *r <= change.revision);
                if let Some(expired) = change.expired {
                    assert_eq!(expired, !by_hand, "{change:?}");
                }
                self.mirror.remove(&change.key);
            }
        }
    }

    fn compare(&mut self, watch: &mut Watch) {
        let mut high = 0;
        self.may_lose = self.state.revision() - self.looked > A_JOURNAL as u64 / 200;
        for change in drain(watch) {
            assert!(change.revision >= high, "out of order: {change:?}");
            high = change.revision;
            self.hear(change);
        }
        self.looked = self.state.revision();
        let seen: BTreeMap<String, u64> =
            self.state.list("/").unwrap().into_iter().map(|e| (e.key, e.revision)).collect();
        assert_eq!(self.mirror, seen, "reported, and read");
        let now = self.now();
        for (key, truth) in &self.truth {
            if self.may_lose && !seen.contains_key(key) {
                // A key that was created and deleted in a lost part of the journal is neither reported nor
                // counted.
                self.reported_at.insert(key.clone(), self.looked);
            }
            let newest = truth.writes.last().copied().unwrap_or_default();
            let there = (!truth.is_gone(now)).then_some(&newest);
            assert_eq!(seen.get(key), there, "{key} at {now}");
        }
    }
}

/// Random operations, with clocks that jump, and a watch that reads now and then.
#[test]
fn reader_and_watch_agree_under_random_operations() {
    let (mut known, mut unknown) = (0, 0);
    for seed in 1..=8u64 {
        println!("seed {seed}");
        let net = Net::new(&format!("agree-{seed}"));
        let (clock, state) = clocked(&net, "n");
        let mut scene = WatchModel {
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            begun: 0,
            looked: 0,
            may_lose: false,
            clock,
            state,
            truth: BTreeMap::new(),
            mirror: BTreeMap::new(),
            reported_at: BTreeMap::new(),
            known: 0,
            unknown: 0,
        };
        let mut watch = scene.state.watch("/").unwrap();
        scene.begun = scene.state.revision();
        for round in 0..60 {
            for _ in 0..=scene.below(12) {
                scene.act();
            }
            if round % 12 == 5 {
                scene.burst(A_JOURNAL as u64);
            }
            for _ in 0..=scene.below(6) {
                scene.act();
            }
            scene.compare(&mut watch);
        }
        known += scene.known;
        unknown += scene.unknown;
    }
    println!("{known} changes with a count, {unknown} without one");
    assert!(known > 100 && unknown > 0, "{known} {unknown}");
}
