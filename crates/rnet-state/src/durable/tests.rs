//! Helpers of these tests: folders, records, a model.

mod damage;
mod disk;
mod kill;
mod persisters;
mod power;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rnet_core::Error;
use rnet_shm::state::Clock;

use super::engine::Engine;
use super::folder::StateFolder;
use super::persister_candidate::{PersisterCandidate, StoreOwner, TakeOutcome};
use super::record::{Change, Saved};
use super::store::Store;

/// The expected content of a store: value and revision of each key.
type Model = BTreeMap<String, (Vec<u8>, u64)>;

/// A folder of one test, removed at its end.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new() -> TestFolder {
        let name = format!("rnet-durable-{:x}", rnet_shm::os::random::random_u64());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        TestFolder(path)
    }

    fn folder(&self) -> StateFolder {
        StateFolder::at(self.0.join("state"))
    }

    /// Path of the current store.
    fn store(&self) -> PathBuf {
        self.folder().store(self.folder().list().unwrap().highest.unwrap())
    }

    /// The names in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder().path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn host(region: u64) -> StoreOwner {
    StoreOwner { region, pulse: Arc::new(AtomicU64::default()), clock: Clock::system() }
}

fn candidate(place: &TestFolder, region: u64) -> PersisterCandidate {
    PersisterCandidate::new(place.folder(), host(region))
}

/// Becomes the persister of an unused store.
///
/// A child that a concurrent test has forked holds the locks of this process until it calls exec. The store
/// is then free a moment later.
fn acquire(candidate: &mut PersisterCandidate) -> Store {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match candidate.take() {
            Ok(TakeOutcome::Acquired(store)) => return *store,
            Ok(TakeOutcome::Busy) => panic!("the store is free"),
            Err(Error::Storage { why, .. })
                if why.starts_with("a domain in another directory") && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(1)); // sleep: the release causes no event
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn saved<'a>(key: &'a str, value: &'a [u8], revision: u64) -> Saved<'a> {
    Saved {
        key,
        kind: 5,
        type_id: 0,
        version: 1,
        revision,
        written_unix_ns: 1,
        expires_boot_ns: 0,
        writer: "/test",
        value,
        will: None,
    }
}

fn set<'a>(key: &'a str, value: &'a [u8], revision: u64) -> Change<'a> {
    Change { key, saved: Some(saved(key, value, revision)) }
}

/// One commit of a random run, with owned data.
#[derive(Clone, Debug)]
struct RandomCommit(Vec<(String, Option<Vec<u8>>)>, u64);

impl RandomCommit {
    fn changes(&self) -> Vec<Change<'_>> {
        self.0
            .iter()
            .map(|(key, value)| match value {
                Some(value) => set(key, value, self.1),
                None => Change { key, saved: None },
            })
            .collect()
    }

    fn apply(&self, model: &mut Model) {
        for (key, value) in &self.0 {
            match value {
                Some(value) => drop(model.insert(key.clone(), (value.clone(), self.1))),
                None => drop(model.remove(key)),
            }
        }
    }
}

/// Pseudorandom numbers, equal for equal seeds (xorshift64*, Vigna 2016).
#[derive(Debug)]
struct TestRng(u64);

impl TestRng {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    /// A commit of one to four of twelve keys: sets, some with several pages, and deletions.
    fn step(&mut self, revision: u64) -> RandomCommit {
        let changes = (0..=self.next(4)).map(|_| {
            let key = format!("/key/{}", self.next(12));
            let value = (self.next(4) != 0).then(|| {
                let len = if self.next(8) == 0 { 3000 + self.next(9000) } else { self.next(60) };
                vec![(revision % 251) as u8; len as usize]
            });
            (key, value)
        });
        let by_key: BTreeMap<_, _> = changes.collect();
        RandomCommit(by_key.into_iter().collect(), revision)
    }
}

fn add_to(model: &mut Model, saved: Saved<'_>) {
    model.insert(saved.key.to_owned(), (saved.value.to_vec(), saved.revision));
}

fn contents_of_engine(engine: &Engine) -> (Model, u64) {
    let mut model = Model::new();
    let revision = engine.load(&mut |saved| add_to(&mut model, saved)).unwrap();
    (model, revision)
}

fn contents_of(store: &Store) -> (Model, u64) {
    let mut model = Model::new();
    let revision = store.load(&mut |saved| add_to(&mut model, saved)).unwrap();
    (model, revision)
}
