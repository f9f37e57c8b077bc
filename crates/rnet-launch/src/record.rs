//! The record of a running node, in a file: its keeper writes it, and launchers and `rnet node` read it.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rnet::NodeName;
use rnet_shm::ring::fail_point;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::node::Process;
use crate::run_folder::RunFolder;
use crate::{LaunchError, Result};

/// How long [`lock_if_abandoned`] waits. A machine under load runs a forked child late.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between two attempts to take a lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(10);
/// Records are padded to multiples of this, so that the next one fits in the blocks of an earlier one.
const RECORD_ALIGN_BYTES: usize = 4096;
/// How often a record is read again that its writer may have overwritten meanwhile.
const READ_TRIES: u32 = 5;

/// The state of a node, and its keeper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub node: NodeName,
    /// The file that requested it.
    pub file: PathBuf,
    /// The started process.
    pub process: Process,
    /// Its keeper.
    pub keeper: Identity,
    /// The node's process; `None` before it is started, and if that failed.
    pub main: Option<Identity>,
    /// When it was started, ns of CLOCK_BOOTTIME.
    pub started_boot_ns: u64,
    /// Whether it has reported that it is ready.
    pub is_ready: bool,
    /// How often its launchers have restarted it after a failure or an exit.
    #[serde(default)]
    pub restarts: u32,
    /// How it has ended, if it has.
    pub end: Option<End>,
    /// The last lines of its output, if it has failed.
    #[serde(default)]
    pub last_output: Vec<String>,
    /// The numbers of this node's keepers that were asked to stop it, which are the numbers of its
    /// processes' sessions: their ends do not count as deaths. It includes a keeper whose node had exited
    /// before: see [`Record::mark_stopped`]. Only the last few.
    #[serde(default)]
    pub stopped_keepers: Vec<i32>,
}

/// How a process has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It exited with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It was never started; the reason.
    NotStarted(String),
    /// Together with its keeper, so the cause is unknown.
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
    /// The record of a node; `None` if it does not exist or cannot be read.
    pub fn read(folder: &RunFolder, node: &NodeName) -> Option<Record> {
        Record::of_file(&folder.record(node))
    }

    /// All records of a folder.
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
        let read = || {
            let mut text = Vec::new();
            let mut file = File::open(path).ok()?;
            file.read_to_end(&mut text).ok()?;
            let inode = |metadata: Metadata| metadata.ino();
            // Another file is there now: this one may be the draft of the next record.
            let is_current = file.metadata().ok().map(inode) == path.metadata().ok().map(inode);
            Some((is_current, serde_json::from_slice(&text).ok()))
        };
        (0..READ_TRIES)
            .map_while(|_| read())
            .find_map(|(is_current, record)| record.filter(|_| is_current))
    }

    /// Replaces the previous record atomically, which becomes the next draft: so a node can be restarted and
    /// stopped on a full disk.
    pub fn write(&self, folder: &RunFolder) -> Result<()> {
        let path = folder.record(&self.node);
        let draft = path.with_extension("draft");
        let text = serde_json::to_vec(self).map_err(std::io::Error::from);
        let done = text.and_then(|text| {
            let draft_len = write_draft(&draft, text)?;
            fail_point!("launch.record_drafted");
            if renameat_with(CWD, &draft, CWD, &path, RenameFlags::EXCHANGE).is_err() {
                // The first record, or a file system that cannot exchange files.
                std::fs::rename(&draft, &path)?;
                let _ = write_draft(&draft, vec![b' '; draft_len]);
            }
            Ok(())
        });
        done.map_err(|why| LaunchError::io("write", &path, why))
    }

    /// Kills the remaining processes of a node whose keeper was killed: the kernel has killed only the
    /// node's first process.
    pub fn kill_leftovers(&self) {
        if self.end.is_none() && self.keeper().is_none() {
            self.keeper.kill_session();
        }
    }

    /// How the node has ended, and its last output if it has failed.
    pub(crate) fn into_end(self) -> (End, Vec<String>) {
        (self.end.unwrap_or(End::Unknown), self.last_output)
    }

    /// Removes its death from the domain, because it was stopped and nobody has to investigate it.
    pub(crate) fn forget_death(&self) {
        if let Some(location) = self.process.location() {
            location.forget_death(&self.node);
        }
    }

    /// Whether the node was asked to stop since its last start.
    pub fn was_asked_to_stop(&self) -> bool {
        self.stopped_keepers.contains(&self.keeper.pid)
    }

    /// Whether it failed, or its end is unknown, without a stop request. Call it only if it has no keeper.
    fn has_unhandled_failure(&self) -> bool {
        !self.was_asked_to_stop() && self.end.as_ref().is_none_or(End::is_failure)
    }

    /// Records that a node without a keeper is stopped: its launch was stopped, its file no longer has it,
    /// or a user has stopped it. A node with a keeper is left alone.
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

    /// A descriptor of the keeper, while it lives and the node has not exited.
    pub fn keeper(&self) -> Option<OwnedFd> {
        self.end.is_none().then(|| self.keeper.open()).flatten()
    }
}

/// Writes a record into the blocks of an earlier one, if there is one; returns its length with the padding.
fn write_draft(path: &Path, mut text: Vec<u8>) -> std::io::Result<usize> {
    let mut file = File::options().create(true).truncate(false).write(true).open(path)?;
    let len = text.len().max(file.metadata()?.len() as usize);
    text.resize(len.next_multiple_of(RECORD_ALIGN_BYTES), b' ');
    file.write_all(&text)?;
    Ok(text.len())
}

/// Takes a lock that its holder's death releases; `None` if another process has it.
pub fn lock(path: &Path) -> Result<Option<File>> {
    let file = open_lock(path)?;
    Ok(try_lock(&file, path)?.then_some(file))
}

/// Takes a lock that can outlive its owner for a moment: a process that is killed between fork and exec
/// leaves a child with a copy of the descriptor, until that child executes its program. While `has_owner`
/// finds no live owner, it retries, for [`ABANDONED_TIMEOUT`] at most.
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
