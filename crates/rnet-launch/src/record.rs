//! What stands of a running node in a file: written by its keeper, read by launchers and by `rnet node`.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rnet::{NodeName, fail_point};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::node::Process;
use crate::run_folder::RunFolder;
use crate::{LaunchError, Result};

/// How long [`lock_if_abandoned`] waits. A machine under load runs a forked child late.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two attempts to take a lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(10);

/// How a node is, and who keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub node: NodeName,
    /// The file that asked for it.
    pub file: PathBuf,
    /// What was started.
    pub process: Process,
    /// Its keeper.
    pub keeper: Identity,
    /// The node's process; `None` before it is started, and if it could not be.
    pub main: Option<Identity>,
    /// When it was started, ns of CLOCK_BOOTTIME.
    pub started_boot_ns: u64,
    /// Whether it has said that it is ready.
    pub is_ready: bool,
    /// How often its launchers have started it again because it had failed or ended.
    #[serde(default)]
    pub restarts: u32,
    /// How it has ended, if it has.
    pub end: Option<End>,
    /// The last lines of its output, if it has failed.
    #[serde(default)]
    pub last_output: Vec<String>,
    /// Keepers of this node that were told to stop it, by their numbers, which are those of the sessions of its processes:
    /// what ends of these has not died by itself. Also one whose node had ended before: see [`Record::mark_stopped`]. The last
    /// few.
    #[serde(default, rename = "told")]
    pub stopped_keepers: Vec<i32>,
}

/// How a process has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It never began: why.
    NotStarted(String),
    /// With its keeper, which could not say how.
    Unknown,
}

impl End {
    /// Whether it is anything but exit code 0.
    pub fn is_failure(&self) -> bool {
        *self != End::Code(0)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Code(code) => write!(f, "exit code {code}"),
            End::Signal(signal) => match *signal {
                libc::SIGKILL => f.write_str("killed by SIGKILL"),
                libc::SIGTERM => f.write_str("terminated by SIGTERM"),
                libc::SIGINT => f.write_str("terminated by SIGINT"),
                libc::SIGSEGV => f.write_str("crashed with SIGSEGV"),
                libc::SIGABRT => f.write_str("crashed with SIGABRT"),
                libc::SIGBUS => f.write_str("crashed with SIGBUS"),
                _ => write!(f, "terminated by signal {signal}"),
            },
            End::NotStarted(why) => write!(f, "cannot be started: {why}"),
            End::Unknown => f.write_str("killed together with its keeper"),
        }
    }
}

impl Record {
    /// The record of a node; `None` if there is none that can be read.
    pub fn read(folder: &RunFolder, node: &NodeName) -> Option<Record> {
        Record::of_file(&folder.record(node))
    }

    /// All of a folder.
    pub fn all(folder: &RunFolder) -> Vec<Record> {
        let entries = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let mut all: Vec<Record> = paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .filter_map(|path| Record::of_file(&path))
            .collect();
        all.sort_by(|a, b| a.node.cmp(&b.node));
        all
    }

    fn of_file(path: &Path) -> Option<Record> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Writes it in place of the one before; a reader sees the one or the other.
    pub fn write(&self, folder: &RunFolder) -> Result<()> {
        let path = folder.record(&self.node);
        let draft = path.with_extension("draft");
        let text = serde_json::to_vec(self).map_err(std::io::Error::from);
        let done = text.and_then(|text| {
            File::create(&draft)?.write_all(&text)?;
            fail_point!("launch.record_drafted");
            std::fs::rename(&draft, &path)
        });
        done.map_err(|why| LaunchError::io("write", &path, why))
    }

    /// Kills what a keeper that was killed has left of its node: the kernel has killed the node's first process alone.
    pub fn kill_leftovers(&self) {
        if self.end.is_none() && self.keeper().is_none() {
            self.keeper.kill_session();
        }
    }

    /// How the node has ended, and what it has written last if it has failed.
    pub(crate) fn into_end(self) -> (End, Vec<String>) {
        (self.end.unwrap_or(End::Unknown), self.last_output)
    }

    /// It has been stopped, so that its death in the domain is none that somebody has to look after.
    pub(crate) fn forget_death(&self) {
        if let Some(location) = self.process.location() {
            location.forget_death(&self.node);
        }
    }

    /// Whether somebody has told the node to stop, since it was started last.
    pub fn was_asked_to_stop(&self) -> bool {
        self.stopped_keepers.contains(&self.keeper.pid)
    }

    /// Whether it is to run and does not, if it has no keeper.
    fn has_unhandled_failure(&self) -> bool {
        !self.was_asked_to_stop() && self.end.as_ref().is_none_or(End::is_failure)
    }

    /// Writes down that a node which does not run is not to run: its launch has been stopped since, its file names it no
    /// more, or somebody has said so. A node that has a keeper is left alone.
    pub fn mark_stopped(folder: &RunFolder, node: &NodeName) -> Result<()> {
        let may_stay = || {
            Record::read(folder, node).is_none_or(|record| {
                let has_keeper = record.keeper().is_some() || record.keeper.is_in_other_namespace();
                has_keeper || !record.has_unhandled_failure()
            })
        };
        let Some(_lock) = lock_if_abandoned(&folder.lock(node), may_stay)? else { return Ok(()) };
        match Record::read(folder, node) {
            Some(mut record) if record.has_unhandled_failure() => {
                record.stopped_keepers.push(record.keeper.pid);
                record.forget_death();
                record.write(folder)
            }
            _ => Ok(()),
        }
    }

    /// A descriptor of the keeper, while it lives and the node has not ended.
    pub fn keeper(&self) -> Option<OwnedFd> {
        self.end.is_none().then(|| self.keeper.open()).flatten()
    }
}

/// A lock that its holder's death opens; `None` if another process has it.
pub fn lock(path: &Path) -> Result<Option<File>> {
    let file = open_lock(path)?;
    Ok(try_lock(&file, path)?.then_some(file))
}

/// The same, of a lock that can outlive its owner for a moment: a process that is killed between fork and exec leaves a
/// child with a copy of the descriptor, until that child executes its program. As long as `has_owner` does not find a living
/// owner, it tries again, for [`ABANDONED_TIMEOUT`] at most.
pub fn lock_if_abandoned(path: &Path, has_owner: impl Fn() -> bool) -> Result<Option<File>> {
    let until = Instant::now() + ABANDONED_TIMEOUT;
    let file = open_lock(path)?;
    while !try_lock(&file, path)? {
        if has_owner() || Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(LOCK_INTERVAL); // sleep: flock has no time limit
    }
    Ok(Some(file))
}

fn open_lock(path: &Path) -> Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    file.map_err(|why| LaunchError::io("lock", path, why))
}

fn try_lock(file: &File, path: &Path) -> Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(LaunchError::io("lock", path, error)),
    }
}
