//! The processes of a round: some slots run one process after the other, each of which ends in its own way.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rnet_survival::LONG;
use rnet_survival::rng::{Rng, mix_bits};
use rnet_survival::world::Process;

use crate::round::{MAX_LIVES, Outcome, Plan, pause};

/// How long a stopped process is stopped.
const PAUSE: Duration = Duration::from_millis(8);

/// One process after the other.
pub struct Slot<'a> {
    binary: &'a Path,
    dir: &'a Path,
    plan: &'a Plan,
    slot: u32,
    rng: Rng,
    done: SlotReport,
}

/// The results of a slot's processes.
#[derive(Default)]
pub struct SlotReport {
    /// Their numbers and their logs.
    pub logs: Vec<(u32, PathBuf)>,
    /// How many were killed.
    pub killed: u32,
    /// How many of those by a fail point.
    pub at_points: u32,
    /// How many were stopped in the middle of an operation.
    pub stood_still: u32,
    /// The violations.
    pub wrong: Vec<String>,
}

/// How a process ends.
enum End {
    /// It is killed at some time.
    Killed,
    /// It is stopped at some time, and killed later.
    Still,
    /// It is asked to exit.
    Told,
    /// A fail point kills it.
    Point(String),
    /// It is stopped at a fail point, and killed later.
    StillAt(String),
}

impl<'a> Slot<'a> {
    /// Slot number `slot` of a round.
    pub fn new(binary: &'a Path, dir: &'a Path, plan: &'a Plan, slot: u32) -> Slot<'a> {
        let rng = Rng::new(mix_bits(plan.seed ^ u64::from(slot)));
        Slot { binary, dir, plan, slot, rng, done: SlotReport::default() }
    }

    /// Runs all its processes, one after the other.
    ///
    /// # Errors
    /// Errors that prevent them from running.
    pub fn run(mut self) -> Outcome<SlotReport> {
        for life in 0..self.plan.lives.min(MAX_LIVES) {
            let process = 1 + self.slot * MAX_LIVES + life;
            self.live(process).map_err(|error| format!("process {process}: {error}"))?;
        }
        Ok(self.done)
    }

    fn end(&mut self) -> End {
        let points = &self.plan.points;
        let point = points.get(self.rng.below(points.len() as u64) as usize);
        // Few points are passed often in a short life.
        let most = 1 << self.rng.below(7);
        let pass = 1 + self.rng.below(most);
        match (self.rng.below(10), point) {
            (0..4, Some(point)) => End::Point(format!("{point}@{pass}")),
            (4..6, Some(point)) => End::StillAt(format!("{point}@{pass}=stop")),
            (6, _) => End::Told,
            (7, _) => End::Still,
            _ => End::Killed,
        }
    }

    fn spawn(&mut self, process: u32, end: &End) -> Outcome<Process> {
        let path = self.dir.join(format!("log.{process}"));
        let name = format!("t{}", self.slot);
        let mut command = Command::new(self.binary);
        command.arg("mix").arg(self.dir).arg(&name).arg(&path).arg(process.to_string());
        command.arg(self.rng.below(u64::MAX).to_string()).arg(self.plan.operations.to_string());
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
        // A process that reaches its fail point while it joins prints nothing.
        let ready = child.ready();
        if ready.is_err() && !matches!(end, End::Point(_) | End::StillAt(_)) {
            return Err(format!("{ready:?}").into());
        }
        let life = Duration::from_micros(self.rng.below(self.plan.life.as_micros() as u64));
        let until = Instant::now() + life;
        let mut died = None;
        while Instant::now() < until && died.is_none() {
            if let End::StillAt(_) = end
                && stands_still(&child)
            {
                self.done.stood_still += 1;
                std::thread::sleep(PAUSE); // sleep: the others meet its unfinished operation
                child.resume().map_err(|e| e.to_string())?;
                break;
            }
            died = child.child.try_wait()?;
            pause();
        }
        if matches!(end, End::Still) && died.is_none() {
            let pid = rustix::process::Pid::from_child(&child.child);
            rustix::process::kill_process(pid, rustix::process::Signal::STOP)?;
            std::thread::sleep(PAUSE); // sleep: the others meet its unfinished operation
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
            self.done.wrong.push(format!("{}: exited by itself: {status:?}", child.name));
        }
        Ok(())
    }
}

fn stands_still(child: &Process) -> bool {
    let stat = format!("/proc/{}/stat", child.child.id());
    std::fs::read_to_string(stat).is_ok_and(|s| s.contains(") T "))
}
