//! The power is cut after every operation of a run of random commits, and the disk fails at each operation:
//! acknowledged commits are kept, and none is half-written.

use std::panic::Location;

use super::super::engine::{Engine, Fault};
use super::disk::{Disk, Fate, Op, cut};
use super::{Model, RandomCommit, TestRng, contents_of_engine};

const COMMITS: u64 = 24;
const SEEDS: [u64; 3] = [7, 0x5eed, 0x00c0_ffee];

/// A run: the operations on the disk, and the range of operations of each commit.
struct Run {
    before: Vec<u8>,
    ops: Vec<Op>,
    /// Number of operations at the start of the commit and at its acknowledgement.
    commits: Vec<(usize, usize)>,
    /// The content of the store after this many commits.
    models: Vec<Model>,
}

fn empty_store() -> Vec<u8> {
    let disk = Disk::default();
    drop(Engine::create(disk.clone()).unwrap());
    disk.image()
}

fn run(seed: u64) -> Run {
    let before = empty_store();
    let disk = Disk::of(before.clone());
    let mut rng = TestRng(seed);
    let mut engine = Engine::open(disk.clone()).unwrap();
    let (mut commits, mut models) = (Vec::new(), vec![Model::new()]);
    for revision in 1..=COMMITS {
        let step = rng.step(revision);
        let begun = disk.count();
        engine.commit(&step.changes(), revision).unwrap();
        commits.push((begun, disk.count()));
        let mut model = models.last().unwrap().clone();
        step.apply(&mut model);
        models.push(model);
    }
    drop(engine);
    Run { before, ops: disk.ops(), commits, models }
}

impl Run {
    /// Opens the store after a power cut and compares its content.
    #[track_caller]
    fn check(&self, image: Vec<u8>, at: usize, fate: Fate) {
        let line = Location::caller().line();
        let acknowledged = self.commits.iter().filter(|(_, done)| *done <= at).count();
        let begun = self.commits.iter().filter(|(begun, _)| *begun < at).count();
        let engine = Engine::open(Disk::of(image))
            .unwrap_or_else(|e| panic!("cut at {at}, {fate:?}, line {line}: {e:?}"));
        let (held, revision) = contents_of_engine(&engine);
        let fits = (acknowledged..=begun).any(|i| held == self.models[i] && revision == i as u64);
        assert!(
            fits,
            "cut at {at}, {fate:?}, line {line}: revision {revision}, {acknowledged} acknowledged, {begun} begun"
        );
    }
}

#[test]
fn a_power_cut_anywhere_loses_nothing_acknowledged() {
    for seed in SEEDS {
        let run = run(seed);
        assert!(run.ops.len() > 5 * COMMITS as usize, "commits write");
        assert!(run.models.last().unwrap().len() > 3, "the run ends with keys");
        for at in 0..=run.ops.len() {
            let torn = (0..6).map(|i| Fate::Torn(seed + (at * 8 + i) as u64));
            for fate in [Fate::Lost, Fate::Kept].into_iter().chain(torn) {
                run.check(cut(&run.before, &run.ops[..at], fate), at, fate);
            }
        }
    }
}

/// Recovery writes too, and the power may be cut again meanwhile.
#[test]
fn power_cut_during_recovery_loses_nothing() {
    let run = run(SEEDS[0]);
    for at in (0..=run.ops.len()).step_by(7) {
        let first = Fate::Torn(at as u64 + 1);
        let image = cut(&run.before, &run.ops[..at], first);
        let disk = Disk::of(image.clone());
        drop(Engine::open(disk.clone()).unwrap());
        let ops = disk.ops();
        for again in 0..=ops.len() {
            for fate in [Fate::Lost, Fate::Kept, Fate::Torn(again as u64 + 1)] {
                run.check(cut(&image, &ops[..again], fate), at, fate);
            }
        }
    }
}

/// The disk is full, or fails, at each operation in turn. The commit returns the error; acknowledged commits
/// are present when the store is opened again, and it works.
#[test]
fn disk_failure_is_reported_and_loses_nothing_acknowledged() {
    for errno in [libc::ENOSPC, libc::EIO, libc::EROFS] {
        let mut failed = 0;
        for after in 0.. {
            let disk = Disk::of(empty_store());
            let mut rng = TestRng(3);
            let mut engine = Engine::open(disk.clone()).unwrap();
            let mut model = Model::new();
            disk.fail_after(after, errno);
            let mut doubtful: Option<RandomCommit> = None;
            for revision in 1..=6 {
                let step = rng.step(revision);
                match engine.commit(&step.changes(), revision) {
                    Ok(()) => step.apply(&mut model),
                    Err(Fault::Io(error)) => {
                        assert_eq!(error.raw_os_error(), Some(errno), "after {after}: {error}");
                        doubtful = Some(step);
                        break;
                    }
                    Err(fault) => panic!("after {after}: {fault:?}"),
                }
            }
            let Some(doubtful) = doubtful else { break };
            failed += 1;
            // Closing cannot write, and must not damage anything.
            drop(engine);
            let disk = Disk::of(disk.image());
            let mut engine = Engine::open(disk).unwrap();
            let (held, _) = contents_of_engine(&engine);
            let mut with = model.clone();
            doubtful.apply(&mut with);
            assert!(held == model || held == with, "after {after}");
            engine.commit(&doubtful.changes(), 100).unwrap();
            assert_eq!(contents_of_engine(&engine).0, with, "after {after}");
        }
        assert!(failed > 10, "{failed} operations failed");
    }
}
