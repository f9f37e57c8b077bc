//! One round: a domain, processes that use its state and are killed, and the check of their replies.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::state::State;
use rnet_survival::LONG;

use crate::check::{Verdict, check};
use crate::facts::Facts;
use crate::history::{Call, Key, Operation};
use crate::log::{self, Log};
use crate::slots::Slot;
use crate::watcher::Watcher;
use crate::workload::{KEYS, Workload, key_of, number_of};

/// An error that prevents a round.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Processes at a time.
pub const SLOTS: u32 = 4;
/// The most lives of one process, so that each has a unique number.
pub(crate) const MAX_LIVES: u32 = 1000;
/// The pause of the slow watch, after a number of changes ([`crate::watcher`]).
const SLOW: Duration = Duration::from_millis(3);

/// The parameters of a round.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Determines the operations of the processes and their deaths.
    pub seed: u64,
    /// How often each of the [`SLOTS`] is killed or exits.
    pub lives: u32,
    /// The longest life of a process.
    pub life: Duration,
    /// The most operations of a process.
    pub operations: u32,
    /// Fail points at which some of them are killed, or stopped for a while.
    pub points: Vec<String>,
}

/// The result of a round.
#[derive(Debug, Default)]
pub struct Report {
    /// Operations.
    pub operations: usize,
    /// Unanswered operations.
    pub open: usize,
    /// Processes killed.
    pub killed: u32,
    /// Those of them that a fail point killed.
    pub at_points: u32,
    /// Processes that were stopped in the middle of an operation.
    pub stood_still: u32,
    /// Changes that the watches reported.
    pub changes: usize,
    /// Wills that were carried out.
    pub wills: usize,
    /// The violations.
    pub wrong: Vec<String>,
}

/// A directory in shared memory, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("/dev/shm/rnet-state-{}-{count}", std::process::id()));
        std::fs::create_dir(&dir)?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A node of a round's domain.
///
/// # Errors
/// The errors of opening one.
pub fn node(dir: &Path, name: &str) -> rnet::Result<Node> {
    Node::builder(name).domain("s").dir(dir).state_dir(dir.join("disk")).open()
}

/// Runs a round with `binary` for its processes.
///
/// # Errors
/// Errors that prevent the round; violations of the state are in the report.
pub fn run(binary: &Path, plan: &Plan) -> Outcome<(Report, Vec<Operation>)> {
    let mut round = Round::begin()?;
    let dir = round.scratch.0.clone();
    let slots = std::thread::scope(|scope| {
        let slots: Vec<_> = (0..SLOTS)
            .map(|slot| {
                let dir = dir.as_path();
                scope.spawn(move || Slot::new(binary, dir, plan, slot).run())
            })
            .collect();
        slots.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    for slot in slots {
        let slot = slot.map_err(|_| "a slot panicked")??;
        round.report.killed += slot.killed;
        round.report.at_points += slot.at_points;
        round.report.stood_still += slot.stood_still;
        round.report.wrong.extend(slot.wrong);
        for (process, path) in slot.logs {
            round.add(&path, process)?;
        }
    }
    round.end(plan.seed)
}

/// The same with threads instead of processes, each with its own node; none is killed.
///
/// # Errors
/// As for [`run`].
pub fn run_threads(plan: &Plan) -> Outcome<(Report, Vec<Operation>)> {
    let mut round = Round::begin()?;
    let dir = round.scratch.0.clone();
    let path = |process: u32| dir.join(format!("log.{process}"));
    let use_it = |process: u32| -> Result<(), Box<dyn std::error::Error>> {
        let node = node(&dir, &format!("t{process}"))?;
        let (state, seed) = (node.state()?, plan.seed ^ u64::from(process));
        let mut workload = Workload::new(&state, Log::create(&path(process))?, process, seed);
        workload.leave()?;
        (0..plan.operations).try_for_each(|_| workload.step())
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let use_it = &use_it;
        let threads: Vec<_> = (1..=SLOTS)
            .map(|process| scope.spawn(move || use_it(process).map_err(|e| e.to_string())))
            .collect();
        let joined = threads.into_iter().map(|t| t.join().unwrap_or(Err("a panic".to_owned())));
        joined.filter_map(Result::err).collect()
    });
    round.report.wrong.extend(wrong);
    for process in 1..=SLOTS {
        round.add(&path(process), process)?;
    }
    round.end(plan.seed)
}

/// A round in progress.
struct Round {
    watchers: [Watcher; 2],
    state: State,
    history: Vec<Operation>,
    report: Report,
    _judge: Node,
    scratch: Scratch,
}

impl Round {
    fn begin() -> Outcome<Round> {
        let scratch = Scratch::new()?;
        let judge = node(&scratch.0, "judge")?;
        let state = judge.state()?;
        let watchers = [Watcher::start(&state, None)?, Watcher::start(&state, Some(SLOW))?];
        let (history, report) = (Vec::new(), Report::default());
        Ok(Round { watchers, state, history, report, _judge: judge, scratch })
    }

    /// Adds the log of a process that has exited.
    fn add(&mut self, path: &Path, process: u32) -> Outcome {
        let content = log::read(path, process)?;
        self.history.extend(content.operations);
        self.report.wrong.extend(content.wrong);
        Ok(())
    }

    /// Checks everything, after all other processes have exited.
    fn end(mut self, seed: u64) -> Outcome<(Report, Vec<Operation>)> {
        wait_for_wills(&self.state, &self.history, &mut self.report)?;
        let path = self.scratch.0.join("log.judge");
        let looked = Workload::new(&self.state, Log::create(&path)?, 0, seed).look();
        self.add(&path, 0)?;
        looked.map_err(|error| format!("the final read: {error}"))?;
        judge_all(&self.state, self.watchers, &self.history, &mut self.report)?;
        Ok((self.report, self.history))
    }
}

/// Waits for the wills of dead processes: no key has a value that its dead writer's will replaces.
fn wait_for_wills(state: &State, history: &[Operation], report: &mut Report) -> Outcome {
    let wills = history.iter().filter_map(|op| match op.call {
        Call::Will { key, of, .. } => Some((key, of)),
        _ => None,
    });
    let wills: HashSet<(Key, i64)> = wills.collect();
    let undone = || -> Outcome<Vec<String>> {
        let mut undone = Vec::new();
        for (key, name) in KEYS.iter().enumerate() {
            if let Some(entry) = state.entry(name)?
                && wills.contains(&(key as Key, number_of(&entry.value)?))
            {
                undone.push(format!("{name} at revision {}", entry.revision));
            }
        }
        Ok(undone)
    };
    let until = Instant::now() + LONG;
    while !undone()?.is_empty() {
        if Instant::now() > until {
            report.wrong.push(format!("wills were not carried out: {:?}", undone()?));
            break;
        }
        pause();
    }
    Ok(())
}

fn judge_all(
    state: &State,
    watchers: [Watcher; 2],
    history: &[Operation],
    report: &mut Report,
) -> Outcome {
    let facts = Facts::of(history);
    let mut stands = BTreeMap::new();
    for (name, entry) in state.snapshot("/t")?.entries {
        let key = key_of(&name).ok_or_else(|| format!("a key that no process wrote: {name}"))?;
        stands.insert(key, entry.revision);
        if facts.is_kept(key) {
            let (least, most) = (facts.least_writes(key), facts.most_writes(key));
            if !(least..=most).contains(&entry.version) {
                report.wrong.push(format!(
                    "{name} has version {}, and was written {least} to {most} times",
                    entry.version
                ));
            }
        }
    }
    for watcher in watchers {
        let until = Instant::now() + LONG;
        while !watcher.is_up_to_date(&stands) && Instant::now() < until {
            pause();
        }
        if !watcher.is_up_to_date(&stands) {
            report.wrong.push(format!("a watch has not reached the current state: {stands:?}"));
        }
        let (changes, wrong) = watcher.end(&facts);
        report.changes += changes;
        report.wrong.extend(wrong);
    }
    report.operations = history.len();
    report.open = history.iter().filter(|op| op.reply.is_none()).count();
    report.wills = carried_out(history);
    match check(history) {
        Verdict::Linearizable => {}
        Verdict::Wrong(stuck) => report.wrong.push(format!("not linearizable: {stuck}")),
        Verdict::Undecided(stuck) => report.wrong.push(format!("undecided: {stuck}")),
    }
    Ok(())
}

/// The number of wills whose effect was seen.
fn carried_out(history: &[Operation]) -> usize {
    let revisions = crate::infer::infer(history).revisions;
    let wills =
        history.iter().zip(revisions).filter(|(op, _)| matches!(op.call, Call::Will { .. }));
    wills.filter(|(_, revision)| revision.is_some()).count()
}

/// Waits between two checks of a condition.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_micros(300)); // sleep: interval between two checks
}
