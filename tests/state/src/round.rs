//! One round: a domain of its own, processes that use its state and are killed, and the judgement of
//! what they were told.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::state::State;
use rnet_survival::LONG;
use rnet_survival::dice::{Dice, mix};
use rnet_survival::world::Process;

use crate::check::{Verdict, check};
use crate::facts::Facts;
use crate::history::{Call, Key, Operation};
use crate::log::{self, Log};
use crate::mix::{KEYS, Mix, key_of, number_of};
use crate::watcher::Watcher;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Processes at a time.
pub const SLOTS: u32 = 4;
/// Lives of one process at most, so that each has a number of its own.
const MAX_LIVES: u32 = 1000;
/// A process that stands still does so for this long.
const STILL: Duration = Duration::from_millis(8);
/// The slow watch pauses for this long.
const SLOW: Duration = Duration::from_millis(2);

/// What a round is.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Says what the processes do and when they die.
    pub seed: u64,
    /// How often each of the [`SLOTS`] is killed, or ends.
    pub lives: u32,
    /// A process lives for at most this long.
    pub life: Duration,
    /// Operations after which a process does no more.
    pub operations: u32,
    /// Fail points at which some of them are killed, or stand still for a while.
    pub points: Vec<String>,
}

/// What came of a round.
#[derive(Debug, Default)]
pub struct Report {
    /// Operations.
    pub operations: usize,
    /// Those that were not answered.
    pub open: usize,
    /// Processes killed.
    pub killed: u32,
    /// Those of them that a fail point killed.
    pub at_points: u32,
    /// Processes that stood still in the middle of something.
    pub stood_still: u32,
    /// Changes that the watches were told.
    pub told: usize,
    /// Wills that were carried out.
    pub wills: usize,
    /// What must not be.
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
/// Those of opening one.
pub fn node(dir: &Path, name: &str) -> rnet::Result<Node> {
    Node::builder(name).domain("s").dir(dir).open()
}

/// Runs a round with `binary` for its processes.
///
/// # Errors
/// What keeps the round from being run; what is wrong with the state is in the report.
pub fn run(binary: &Path, plan: &Plan) -> Outcome<(Report, Vec<Operation>)> {
    let scratch = Scratch::new()?;
    let dir = scratch.0.as_path();
    let judge = node(dir, "judge")?;
    let state = judge.state()?;
    let watchers = [Watcher::start(&state, None)?, Watcher::start(&state, Some(SLOW))?];
    let mut report = Report::default();
    let slots = std::thread::scope(|scope| {
        let slots: Vec<_> = (0..SLOTS)
            .map(|slot| scope.spawn(move || Slot::new(binary, dir, plan, slot).run()))
            .collect();
        slots.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut history = Vec::new();
    for slot in slots {
        let slot = slot.map_err(|_| "a slot panicked")??;
        report.killed += slot.killed;
        report.at_points += slot.at_points;
        report.stood_still += slot.stood_still;
        report.wrong.extend(slot.wrong);
        for (process, path) in slot.logs {
            let told = log::read(&path, process)?;
            history.extend(told.operations);
            report.wrong.extend(told.wrong);
        }
    }
    wait_for_wills(&state, &history, &mut report)?;
    let path = dir.join("log.judge");
    let looked = Mix::new(&state, Log::create(&path)?, 0, plan.seed).look();
    let told = log::read(&path, 0)?;
    history.extend(told.operations);
    report.wrong.extend(told.wrong);
    looked.map_err(|error| format!("the last look: {error}"))?;
    judge_all(&state, watchers, &history, &mut report)?;
    Ok((report, history))
}

/// The dead have left wills: no key is what a dead process said that it should not stay.
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
        let key = key_of(&name).ok_or_else(|| format!("a key that nobody wrote: {name}"))?;
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
            report.wrong.push(format!("a watch has not come to what stands: {stands:?}"));
        }
        let (told, wrong) = watcher.end(&facts);
        report.told += told;
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

/// How many wills somebody has seen the effect of.
fn carried_out(history: &[Operation]) -> usize {
    let told = crate::infer::infer(history).revisions;
    let wills = history.iter().zip(told).filter(|(op, _)| matches!(op.call, Call::Will { .. }));
    wills.filter(|(_, revision)| revision.is_some()).count()
}

fn pause() {
    std::thread::sleep(Duration::from_micros(300)); // sleep: between two looks at a condition
}

/// One process after the other.
struct Slot<'a> {
    binary: &'a Path,
    dir: &'a Path,
    plan: &'a Plan,
    slot: u32,
    dice: Dice,
    done: Lives,
}

/// What became of them.
#[derive(Default)]
struct Lives {
    logs: Vec<(u32, PathBuf)>,
    killed: u32,
    at_points: u32,
    stood_still: u32,
    wrong: Vec<String>,
}

/// How a process ends.
enum End {
    /// It is killed at some time.
    Killed,
    /// It stands still at some time, and is killed later.
    Still,
    /// It is told to end.
    Told,
    /// A fail point kills it.
    Point(String),
    /// It stands still at a fail point, and is killed later.
    StillAt(String),
}

impl<'a> Slot<'a> {
    fn new(binary: &'a Path, dir: &'a Path, plan: &'a Plan, slot: u32) -> Slot<'a> {
        let dice = Dice::new(mix(plan.seed ^ u64::from(slot)));
        Slot { binary, dir, plan, slot, dice, done: Lives::default() }
    }

    fn run(mut self) -> Outcome<Lives> {
        for life in 0..self.plan.lives.min(MAX_LIVES) {
            let process = 1 + self.slot * MAX_LIVES + life;
            self.live(process).map_err(|error| format!("process {process}: {error}"))?;
        }
        Ok(self.done)
    }

    fn end(&mut self) -> End {
        let points = &self.plan.points;
        let point = points.get(self.dice.below(points.len() as u64) as usize);
        let pass = 1 + self.dice.below(40);
        match (self.dice.below(10), point) {
            (0..4, Some(point)) => End::Point(format!("{point}@{pass}")),
            (4..6, Some(point)) => End::StillAt(format!("{point}@{pass}=stop")),
            (7, _) => End::Told,
            (8, _) => End::Still,
            _ => End::Killed,
        }
    }

    fn spawn(&mut self, process: u32, end: &End) -> Outcome<Process> {
        let path = self.dir.join(format!("log.{process}"));
        let name = format!("t{}", self.slot);
        let mut command = Command::new(self.binary);
        command.arg("mix").arg(self.dir).arg(&name).arg(&path).arg(process.to_string());
        command.arg(self.dice.below(u64::MAX).to_string()).arg(self.plan.operations.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove("RNET_FAIL_POINT");
        if let End::Point(point) | End::StillAt(point) = end {
            command.env("RNET_FAIL_POINT", point);
        }
        self.done.logs.push((process, path));
        Ok(Process { child: command.spawn()?, name: format!("{name} as process {process}") })
    }

    fn live(&mut self, process: u32) -> Outcome {
        let end = self.end();
        let mut child = self.spawn(process, &end)?;
        // One that meets its fail point while it joins says nothing.
        let ready = child.ready();
        if ready.is_err() && !matches!(end, End::Point(_) | End::StillAt(_)) {
            return Err(format!("{ready:?}").into());
        }
        let life = Duration::from_micros(self.dice.below(self.plan.life.as_micros() as u64));
        let until = Instant::now() + life;
        let mut died = None;
        while Instant::now() < until && died.is_none() {
            if let End::StillAt(_) = end
                && stands_still(&child)
            {
                self.done.stood_still += 1;
                std::thread::sleep(STILL); // sleep: the others meet what it has begun
                child.resume().map_err(|e| e.to_string())?;
                break;
            }
            died = child.child.try_wait()?;
            pause();
        }
        if matches!(end, End::Still) && died.is_none() {
            let pid = rustix::process::Pid::from_child(&child.child);
            rustix::process::kill_process(pid, rustix::process::Signal::STOP)?;
            std::thread::sleep(STILL); // sleep: the others meet what it has begun
            self.done.stood_still += 1;
            child.resume().map_err(|e| e.to_string())?;
        }
        if matches!(end, End::Told) {
            drop(child.child.stdin.take());
            match child.ended(LONG).map_err(|e| e.to_string())? {
                Some(status) if status.success() => {}
                status => self.done.wrong.push(format!("{}: ended with {status:?}", child.name)),
            }
            return Ok(());
        }
        child.child.kill()?;
        let status = child.child.wait()?;
        let by_kill = std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
        self.done.killed += u32::from(by_kill);
        self.done.at_points += u32::from(by_kill && died.is_some());
        if !by_kill {
            self.done.wrong.push(format!("{}: ended by itself: {status:?}", child.name));
        }
        Ok(())
    }
}

fn stands_still(child: &Process) -> bool {
    let stat = format!("/proc/{}/stat", child.child.id());
    std::fs::read_to_string(stat).is_ok_and(|s| s.contains(") T "))
}
