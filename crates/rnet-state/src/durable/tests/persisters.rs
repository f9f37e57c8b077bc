//! The persister: only one at a time, across deaths, stops and other domains with the same folder.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use rnet_core::Error;
use rnet_shm::domain::lease::{CHECK_INTERVAL, LeaseCell};

use super::super::store::Commit;
use super::*;

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
}

/// A clock that advances by one check interval on each read.
fn quick_clock() -> u64 {
    NOW_NS.with(|now| {
        now.set(now.get() + CHECK_INTERVAL.as_nanos() as u64);
        now.get()
    })
}

/// Takes over from a stopped persister of the same region.
fn take_over(candidate: &mut PersisterCandidate) -> Store {
    for _ in 0..100 {
        if let TakeOutcome::Acquired(store) = candidate.take().unwrap() {
            return *store;
        }
    }
    panic!("the stopped persister was not replaced");
}

#[test]
fn store_outlives_its_persister() {
    let place = TestFolder::new();
    let mut model = Model::new();
    let mut rng = TestRng(5);
    for revision in 1..=20 {
        let mut store = acquire(&mut candidate(&place, revision));
        assert_eq!(contents_of(&store), (model.clone(), revision - 1));
        let step = rng.step(revision);
        assert_eq!(store.commit(&step.changes(), revision), Ok(Commit::Done));
        step.apply(&mut model);
        assert_eq!(place.names().len(), 1);
    }
}

#[test]
fn stopped_persister_is_replaced_and_live_one_is_not() {
    let place = TestFolder::new();
    let host = host(4);
    let new = || PersisterCandidate::new(place.folder(), host.clone()).with_clock(quick_clock);
    let mut old = acquire(&mut new());
    old.commit(&[set("/a", b"1", 1)], 1).unwrap();
    let mut waiting = new();
    for _ in 0..50 {
        assert!(old.lease().beat());
        assert!(matches!(waiting.take().unwrap(), TakeOutcome::Busy));
    }
    // Now it is stopped.
    let path = place.store();
    let file = std::fs::File::open(&path).unwrap();
    let mut store = take_over(&mut waiting);
    assert_ne!(place.store(), path);
    assert_eq!(contents_of(&store).0, Model::from([("/a".to_owned(), (b"1".to_vec(), 1))]));
    store.commit(&[set("/a", b"2", 2)], 2).unwrap();
    // It continues: it detects that it may not write, and acknowledges nothing.
    let image = |file: &std::fs::File| {
        let mut image = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut image, 0).unwrap();
        image
    };
    let before = image(&file);
    assert_eq!(old.commit(&[set("/a", b"3", 2), set("/b", b"3", 2)], 2), Ok(Commit::Lost));
    drop(old);
    assert!(before == image(&file), "not even on closing");
    store.commit(&[set("/c", b"4", 3)], 3).unwrap();
    let held = contents_of(&store).0;
    assert_eq!(held["/a"], (b"2".to_vec(), 2));
    assert_eq!((held.len(), place.names().len()), (2, 1));
    drop(store);
    assert_eq!(contents_of(&acquire(&mut new())).0, held);
}

#[test]
fn store_of_another_domain_is_not_taken() {
    let place = TestFolder::new();
    let store = acquire(&mut candidate(&place, 4));
    let mut other = candidate(&place, 5).with_clock(quick_clock);
    for _ in 0..30 {
        let error = other.take().unwrap_err();
        assert!(
            matches!(&error, Error::Storage { why, .. } if why.contains("RNET_DIR")),
            "{error}"
        );
    }
    assert!(store.lease().beat());
    drop(store);
    acquire(&mut other);
}

#[test]
fn sweep_removes_only_drafts_of_dead_processes() {
    let place = TestFolder::new();
    drop(acquire(&mut candidate(&place, 1)));
    let folder = place.folder();
    let (dead, living) = (folder.draft(), folder.draft());
    std::fs::write(&dead, b"half").unwrap();
    let held = rnet_shm::os::file_lock::create_locked(&living, 0o600, 9).unwrap();
    std::fs::write(folder.store(1), b"an older store").unwrap();
    drop(acquire(&mut candidate(&place, 1)));
    assert!(!dead.exists() && living.exists() && !folder.store(1).exists());
    drop(held);
}

/// State shared by the racing threads.
#[derive(Debug, Default)]
struct Race {
    word: AtomicU64,
    /// Acknowledged commits. A persister may acknowledge late, so they may be out of order; each appears
    /// once.
    acknowledged: Mutex<BTreeSet<u64>>,
    more: Condvar,
    done: AtomicBool,
    taken_over: AtomicU64,
}

/// The lease for one thread, which pauses at random right after a check: between the check and the dependent
/// action.
#[derive(Debug)]
struct PausingLease {
    race: Arc<Race>,
    rng: Mutex<TestRng>,
}

impl PausingLease {
    /// Pauses until other threads have acknowledged something, are done, or are blocked: they may wait for
    /// this one.
    fn pause(&self) {
        if self.rng.lock().unwrap().next(150) != 0 {
            return;
        }
        let acknowledged = self.race.acknowledged.lock().unwrap();
        let enough = acknowledged.len() + 2;
        let limit = Duration::from_millis(20);
        let keep_waiting = |acknowledged: &mut BTreeSet<u64>| {
            acknowledged.len() < enough && !self.race.done.load(Ordering::Relaxed)
        };
        drop(self.race.more.wait_timeout_while(acknowledged, limit, keep_waiting).unwrap());
    }
}

impl LeaseCell for PausingLease {
    fn read(&self) -> u64 {
        let word = self.race.word.read();
        self.pause();
        word
    }

    fn swap(&self, seen: u64, next: u64) -> bool {
        let swapped = LeaseCell::swap(&self.race.word, seen, next);
        self.pause();
        swapped
    }
}

/// Commits while allowed, increments `/n`, and acknowledges commits that are on disk.
fn keep(race: &Race, mut store: Store) {
    // Everything acknowledged before the store was taken must be in it.
    let (held, _) = contents_of(&store);
    let mut n =
        held.get("/n").map_or(0, |(value, _)| u64::from_le_bytes(value[..].try_into().unwrap()));
    for _ in 0..20 {
        n += 1;
        // Several pages, so that a partial write is detected.
        let ballast = vec![n as u8; 6000];
        let bytes = n.to_le_bytes();
        let changes = [set("/n", &bytes, n), set("/ballast", &ballast, n)];
        match store.commit(&changes, n) {
            Ok(Commit::Done) => {
                let mut acknowledged = race.acknowledged.lock().unwrap();
                assert!(acknowledged.insert(n), "{n} was acknowledged by another persister");
                race.more.notify_all();
            }
            Ok(Commit::Lost) => return,
            Err(failure) => panic!("{failure:?}"),
        }
    }
}

/// Four persisters pause at random checks of the lease, and are considered stopped long before they continue.
/// Each successor finds everything that any earlier one acknowledged.
#[test]
fn acknowledged_commits_survive_takeovers() {
    const ENOUGH: usize = 400;
    let place = TestFolder::new();
    let race = Arc::new(Race::default());
    std::thread::scope(|scope| {
        for seed in 1..=4 {
            let (race, folder) = (race.clone(), place.folder());
            scope.spawn(move || {
                let rng = Mutex::new(TestRng(seed));
                let pulse = Arc::new(PausingLease { race: race.clone(), rng });
                let host = StoreOwner { region: 8, pulse, clock: Clock::system() };
                while race.acknowledged.lock().unwrap().len() < ENOUGH {
                    let mut candidate = PersisterCandidate::new(folder.clone(), host.clone())
                        .with_clock(quick_clock);
                    for _ in 0..40 {
                        // Read before the store is taken.
                        let known = race.acknowledged.lock().unwrap().last().copied().unwrap_or(0);
                        if let TakeOutcome::Acquired(store) = candidate.take().unwrap() {
                            let found = contents_of(&store).1;
                            assert!(
                                found >= known,
                                "{known} was acknowledged, but the store has {found}"
                            );
                            race.taken_over.fetch_add(1, Ordering::Relaxed);
                            keep(&race, *store);
                            break;
                        }
                    }
                }
                race.done.store(true, Ordering::Relaxed);
                race.more.notify_all();
            });
        }
    });
    let mut last = candidate(&place, 8);
    let found = contents_of(&acquire(&mut last)).1;
    let acknowledged = race.acknowledged.lock().unwrap();
    assert!(found >= *acknowledged.last().unwrap());
    assert_eq!(last.take_reports(), []);
    assert!(race.taken_over.load(Ordering::Relaxed) > 20);
}
