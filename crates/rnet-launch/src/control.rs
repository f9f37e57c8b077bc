//! Controls a launched node from any process, with or without its launcher.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rnet::NodeName;
use rustix::process::Signal;

use crate::identity::{Identity, has_exited, signal};
use crate::keeper::{KeeperReply, KeeperRequest, StopSignals};
use crate::log::rotated_path;
use crate::record::{End, Record, lock_if_abandoned};
use crate::run_folder::RunFolder;
use crate::{LaunchError, Result};

/// Extra time of a keeper beyond its node's own time to stop.
const KEEPER_MARGIN: Duration = Duration::from_secs(10);
/// How long a launcher may take to start a node that it was asked to restart.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between two looks whether it has.
const START_INTERVAL: Duration = Duration::from_millis(20);

/// A launched node to control.
pub struct LaunchedNode {
    folder: RunFolder,
    record: Record,
}

/// The result of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    /// The node has exited.
    Exited,
    /// The node did not run.
    NotRunning,
    /// The caller was stopped first.
    Interrupted,
    /// The node still runs, although its keeper was asked to stop it.
    StillRunning,
}

impl LaunchedNode {
    /// The node with this name; `None` if it was not launched.
    pub fn find(folder: RunFolder, node: &NodeName) -> Option<LaunchedNode> {
        let record = Record::read(&folder, node)?;
        Some(LaunchedNode { folder, record })
    }

    /// Its record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its logs, the oldest first.
    pub fn logs(&self) -> Vec<PathBuf> {
        let path = self.folder.log(&self.record.node);
        let older =
            (1..self.record.process.log.files).rev().map(|number| rotated_path(&path, number));
        older.filter(|path| path.exists()).chain([path.clone()]).collect()
    }

    /// Whether its launcher runs.
    fn has_launcher(&self) -> bool {
        let path = self.folder.launcher_lock(&self.record.file);
        lock_if_abandoned(&path, || Identity::may_live(&path)).is_ok_and(|lock| lock.is_none())
    }

    /// Kills it with SIGKILL, like a crash: its launcher reacts as to a crash. `false` if it does not run.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn kill(&self) -> Result<bool> {
        let main = self.record.keeper().and_then(|_| self.record.main.as_ref()?.open());
        let Some(main) = main else { return Ok(false) };
        self.folder.note_killed(&self.record.node, self.record.keeper.pid);
        self.send(&main, Signal::KILL).map(|()| true)
    }

    /// Stops it and waits for its exit. Its launcher leaves it stopped, and an earlier failure does not
    /// count any more.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn stop(&self, signals: &dyn StopSignals) -> Result<StopOutcome> {
        let keeper = self.record.keeper();
        self.folder.write_request(&self.record.node, "stop")?;
        self.stop_keeper(keeper, signals)
    }

    /// Stops and starts it: through its launcher, or with a keeper of `command` if the launcher is gone.
    ///
    /// # Errors
    /// The system does not allow it, the node cannot be started, or its launcher has not started it within
    /// 10 s.
    pub fn restart(&self, command: Command, signals: &dyn StopSignals) -> Result<StopOutcome> {
        if self.record.process.die_with_launcher && !self.has_launcher() {
            return Err(LaunchError::Refused(format!(
                "{} runs only with its launcher, which has exited; start it with rnet launch {}",
                self.record.node,
                self.record.file.display()
            )));
        }
        let keeper = self.record.keeper();
        self.folder.write_request(&self.record.node, "restart")?;
        let ended = self.stop_keeper(keeper, signals)?;
        if matches!(ended, StopOutcome::Interrupted | StopOutcome::StillRunning) {
            return Ok(ended);
        }
        let until = Instant::now() + START_TIMEOUT;
        let had_launcher = self.has_launcher();
        while self.has_launcher() {
            let now = Record::read(&self.folder, &self.record.node);
            if let Some(now) = now.filter(|now| now.keeper != self.record.keeper) {
                return self.started(ended, now.end);
            }
            if signals.stop_requested() {
                return Ok(StopOutcome::Interrupted);
            }
            if Instant::now() >= until {
                return Err(LaunchError::Refused(format!(
                    "{} is stopped, and its launcher has not started it within {} s: it waits for another node, or \
                     does not respond. Continue or kill the launcher if it is stopped",
                    self.record.node,
                    START_TIMEOUT.as_secs()
                )));
            }
            std::thread::sleep(START_INTERVAL); // sleep: between two reads of a file
        }
        // A launcher that was killed leaves the request. One that has taken it and exited stops its nodes.
        let is_taken = self.folder.read_request(&self.record.node).is_none();
        if had_launcher && (is_taken || self.record.process.die_with_launcher) {
            return Err(LaunchError::Refused(format!(
                "{} is stopped, and its launcher has exited",
                self.record.node
            )));
        }
        self.folder.remove_request(&self.record.node);
        let request = KeeperRequest {
            node: self.record.node.clone(),
            file: self.record.file.clone(),
            process: self.record.process.clone(),
            folder: self.folder.path().to_owned(),
            restarts: self.record.restarts,
            setup_error: None,
            is_on_failure: false,
        };
        match request.send(command) {
            Ok((KeeperReply::Started, _)) => {}
            Ok((KeeperReply::Busy, mut child)) => {
                let _ = child.wait();
            }
            Err(why) => return Err(LaunchError::Refused(format!("{}: {why}", self.record.node))),
        }
        let end = Record::read(&self.folder, &self.record.node).and_then(|record| record.end);
        self.started(ended, end)
    }

    /// The result of a restart after which the record has this end.
    fn started(&self, stopped: StopOutcome, end: Option<End>) -> Result<StopOutcome> {
        match end {
            Some(end @ End::NotStarted(_)) => {
                Err(LaunchError::Refused(format!("{}: {end}", self.record.node)))
            }
            _ => Ok(stopped),
        }
    }

    /// Stops the keeper that was found before the request was written. The launcher may have done so since,
    /// and the node has run all the same.
    fn stop_keeper(
        &self,
        keeper: Option<OwnedFd>,
        signals: &dyn StopSignals,
    ) -> Result<StopOutcome> {
        let Some(keeper) = keeper else {
            self.record.kill_leftovers();
            Record::mark_stopped(&self.folder, &self.record.node)?;
            return Ok(StopOutcome::NotRunning);
        };
        self.send(&keeper, Signal::TERM)?;
        let time = self.record.process.stop_time() + KEEPER_MARGIN;
        let until = Instant::now() + time;
        while !has_exited(&keeper) {
            if signals.stop_requested() {
                return Ok(StopOutcome::Interrupted);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(StopOutcome::StillRunning);
            }
            let waited = signals.wait(keeper.as_fd(), Some(left), false);
            waited.map_err(|why| LaunchError::io("wait for", Path::new("the keeper"), why))?;
        }
        Ok(StopOutcome::Exited)
    }

    fn send(&self, to: &OwnedFd, what: Signal) -> Result<()> {
        let refused = |why| {
            LaunchError::Refused(format!("cannot send a signal to {}: {why}", self.record.node))
        };
        signal(to, what).map_err(refused)
    }
}
