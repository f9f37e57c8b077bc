//! The keeper of a node: its parent, which outlives the launcher.
//!
//! A process that is no child cannot be asked how it ended, and a pipe whose reader dies kills its writer. So that the
//! launcher may die and be started again, each node has a parent of its own that does nothing else: it reads the node's
//! output into its log, writes the node's record, and ends the node when it is told to. It alone sends signals to the
//! node, and as long as it has not reaped it, neither the node's number nor its group's can be another's.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rnet::inspect::StopRequest;
use rnet::{NodeName, fail_point};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getppid, kill_process_group, pidfd_open,
    set_parent_process_death_signal, setrlimit, setsid,
};
use serde::{Deserialize, Serialize};

use crate::identity::{Identity, has_ended, session};
use crate::log::Log;
use crate::machine;
use crate::node::{Limits, OWN_PROGRAM, Process};
use crate::place::RunFolder;
use crate::record::{End, Record, lock};
use crate::stop::{self, Step, Stop};

/// What a keeper says when it keeps a node, and when another one does.
const KEEPS: &str = "keeps";
const BUSY: &str = "busy";

/// What the command of a keeper reads from its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeeperOrder {
    /// The node.
    pub node: NodeName,
    /// The file that asks for it.
    pub file: PathBuf,
    /// Its process.
    pub process: Process,
    /// Where its record and its log go.
    pub folder: PathBuf,
    /// As [`Record::restarts`].
    #[serde(default)]
    pub restarts: u32,
    /// Why the launcher could not prepare the node, if it could not: the keeper then only writes that down.
    #[serde(default)]
    pub unprepared: Option<String>,
    /// Whether it is the command of `on_failure` of the node, which is killed when the launcher dies.
    #[serde(default)]
    pub is_on_failure: bool,
}

/// Reads of output between two looks at everything else: a node that writes without end is stopped all the same. More
/// than a pipe holds.
const MAX_READS: usize = 16;

/// Between two attempts to write a record that could not be written.
const NOTE_AGAIN: Duration = Duration::from_secs(1);

/// Between two looks at whether the launcher lives, of a command of `on_failure` that is being stopped. Before that, a
/// signal of the kernel tells.
const LAUNCHER_INTERVAL: Duration = Duration::from_millis(100);

/// Lines and bytes of the output of a node that has failed, which its record holds.
const MAX_LAST_LINES: usize = 10;
const MAX_LAST_BYTES: usize = 2048;

/// Keepers before this one that a record names.
const MAX_TOLD: usize = 3;

/// What became of an order.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is a keeper, and a record.
    Keeps,
    /// Another keeper has this node.
    Busy,
}

impl KeeperOrder {
    /// Starts a keeper by `command`, and waits until it has started the node or failed to: some ms.
    ///
    /// # Errors
    /// The keeper cannot be started, in words.
    pub fn send(&self, mut command: Command) -> Result<(Answer, Child), String> {
        let failed = |why: &dyn std::fmt::Display| format!("cannot start its keeper: {why}");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        fail_point!("launch.spawned");
        let text = serde_json::to_vec(self).map_err(|error| failed(&error))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let mut said = String::new();
        // A keeper that does not read has said why.
        let _ = to.map(|mut to| to.write_all(&text));
        fail_point!("launch.ordered");
        from.map(|mut from| from.read_to_string(&mut said)).transpose().map_err(|e| failed(&e))?;
        let answer = match said.trim() {
            KEEPS => Answer::Keeps,
            BUSY => Answer::Busy,
            other => {
                let _ = child.wait();
                return Err(failed(&if other.is_empty() { "the keeper died" } else { other }));
            }
        };
        Ok((answer, child))
    }
}

/// What tells a keeper and a launcher to stop.
pub trait Signals {
    /// Whether SIGTERM or one of its kind has come.
    fn stopped(&self) -> bool;

    /// Waits until `fd` is readable, such a signal comes, or the time is over. It may return early. One that has come
    /// ends the wait at once, unless the caller `knows` of it.
    ///
    /// # Errors
    /// The system cannot wait.
    fn wait(&self, fd: BorrowedFd<'_>, limit: Option<Duration>, knows: bool)
    -> std::io::Result<()>;
}

/// A node's parent.
pub struct Keeper {
    order: KeeperOrder,
    /// The launcher, if the command dies with it.
    launcher: Option<Pid>,
    folder: RunFolder,
    log: Log,
    record: Record,
    /// The end of what the node has written.
    last_output: Vec<u8>,
    /// Whether the record has something that its file does not: the disk may be full.
    is_unwritten: bool,
}

/// A node that runs.
struct Kept {
    child: Child,
    pid: Pid,
    ended: OwnedFd,
    output: Option<OwnedFd>,
    ready: Option<OwnedFd>,
}

impl Keeper {
    /// What the command of a keeper does: reads its order, says on `answer` that it keeps the node, and returns when the
    /// node has ended.
    ///
    /// # Errors
    /// Why it does not keep the node, in words.
    pub fn run(
        order: KeeperOrder,
        mut answer: impl FnMut(&str),
        signals: &dyn Signals,
    ) -> Result<(), String> {
        let launcher = getppid();
        // Out of the launcher's terminal: neither its Ctrl-C nor its end is the node's.
        setsid().map_err(|error| format!("cannot start a session: {error}"))?;
        if order.process.die_with_launcher {
            let asked = set_parent_process_death_signal(Some(Signal::TERM));
            asked.map_err(|error| format!("cannot set up to die with the launcher: {error}"))?;
            if getppid() != launcher {
                return Err("the launcher has died".into());
            }
        }
        let of_nodes = RunFolder::at(order.folder.clone());
        let path = of_nodes.log(&order.node);
        let folder = if order.is_on_failure { of_nodes.on_failure() } else { of_nodes };
        let Some(_lock) = lock(&folder.lock(&order.node)).map_err(|error| error.to_string())?
        else {
            answer(BUSY);
            return Ok(());
        };
        fail_point!("launch.kept");
        let before = Record::read(&folder, &order.node);
        if before.as_ref().is_some_and(|before| before.keeper().is_some()) {
            // It was killed and is exiting: the kernel has closed its files, and has not killed its node yet.
            answer(BUSY);
            return Ok(());
        }
        let mut told = before.map_or_else(Vec::new, |before| {
            before.end_orphans();
            // Process numbers of an earlier boot are given to others now.
            if before.keeper.is_of_this_boot() { before.told } else { Vec::new() }
        });
        // Numbers are given again: nobody has told this one anything.
        told.retain(|pid| *pid != std::process::id() as i32);
        folder.forget_killed(&order.node);
        told.drain(..told.len().saturating_sub(MAX_TOLD));
        let log = Log::open(&path, order.process.log)
            .map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        let own = Identity::of(std::process::id() as i32).ok_or("/proc is not mounted")?;
        let record = Record {
            node: order.node.clone(),
            file: order.file.clone(),
            process: order.process.clone(),
            keeper: own,
            main: None,
            started_boot_ns: rnet::boot_ns(),
            is_ready: false,
            restarts: order.restarts,
            end: None,
            last_output: Vec::new(),
            told,
        };
        let (last_output, is_unwritten) = (Vec::new(), false);
        let launcher = launcher.filter(|_| order.is_on_failure);
        let mut keeper = Keeper { order, launcher, folder, log, record, last_output, is_unwritten };
        // Before the node: should this process be killed, the record says whose session is to be ended.
        keeper.record.write(&keeper.folder).map_err(|error| error.to_string())?;
        fail_point!("launch.recorded");
        let started = match keeper.order.unprepared.take() {
            Some(why) => Err(why),
            None => keeper.start(),
        };
        match started {
            Ok(kept) => {
                fail_point!("launch.started");
                // It is not reaped yet, so that this is its very process.
                keeper.record.main = Identity::of(kept.pid.as_raw_nonzero().get());
                if let Err(error) = keeper.record.write(&keeper.folder) {
                    // Nobody would find it.
                    let _ = kill_process_group(kept.pid, Signal::KILL);
                    return Err(error.to_string());
                }
                fail_point!("launch.noted");
                answer(KEEPS);
                keeper.keep(kept, signals);
            }
            Err(why) => {
                keeper.log.write(format!("[rnet launch] cannot be started: {why}\n").as_bytes());
                keeper.record.end = Some(End::NotStarted(why));
                keeper.record.write(&keeper.folder).map_err(|error| error.to_string())?;
                answer(KEEPS);
            }
        }
        Ok(())
    }

    fn start(&mut self) -> Result<Kept, String> {
        let Process { command, dir, env, limits, .. } = &self.order.process;
        let words = |error: std::io::Error| {
            let asked = match limits.to_string() {
                none if none.is_empty() => none,
                asked => format!(" (with {asked})"),
            };
            format!("{} in {}{asked}: {error}", command[0], dir.display())
        };
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| words(error.into()));
        let (output, written) = pipe()?;
        let (ready, tells) = pipe()?;
        let prepared = (|| -> rustix::io::Result<OwnedFd> {
            rustix::fs::fcntl_setfl(&output, rustix::fs::OFlags::NONBLOCK)?;
            rustix::fs::fcntl_setfl(&ready, rustix::fs::OFlags::NONBLOCK)?;
            // The one descriptor that the node inherits besides the usual three.
            rustix::io::fcntl_setfd(&tells, rustix::io::FdFlags::empty())?;
            rustix::io::fcntl_dupfd_cloexec(&written, 3)
        })();
        let errors = prepared.map_err(|error| words(error.into()))?;
        let mut child = Command::new(machine::program(&command[0], dir));
        if command[0] == OWN_PROGRAM {
            child.arg0("rnet");
        }
        child.args(&command[1..]).current_dir(dir).envs(env);
        child.env("RNET_READY_FD", tells.as_raw_fd().to_string());
        child.stdin(Stdio::null()).stdout(written).stderr(errors).process_group(0);
        let limits = limits.clone();
        let keeper = rustix::process::getpid();
        // SAFETY: between fork and exec it makes system calls and nothing else; the keeper has one thread, so that no
        // lock is held by another.
        unsafe { child.pre_exec(move || confine(&limits, keeper)) };
        let child = child.spawn().map_err(|error| {
            let told = words(error);
            // The kernel does not say of what it speaks: a directory, a program, the cores.
            let unfit = machine::unfit(&self.order.process);
            unfit.iter().fold(told, |told, u| {
                format!("{told}; {}: expected {}, found {}", u.key, u.expected, u.found)
            })
        })?;
        let pid = Pid::from_child(&child);
        let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| words(error.into()))?;
        Ok(Kept { child, pid, ended, output: Some(output), ready: Some(ready) })
    }

    fn keep(&mut self, mut kept: Kept, signals: &dyn Signals) {
        let mut stop: Option<Stop> = None;
        while !has_ended(&kept.ended) {
            if signals.stopped() && stop.is_none() {
                // Before it ends: whoever sees it end looks here.
                self.record.told.push(self.record.keeper.pid);
                self.note();
                fail_point!("launch.told");
                let Process { interrupt_timeout_ms, stop_timeout_ms, .. } = self.record.process;
                stop = Some(Stop::begin(interrupt_timeout_ms, stop_timeout_ms));
            }
            if let Some(step) = stop.as_mut().and_then(Stop::due) {
                self.send_stop_signal(&kept, step);
                fail_point!("launch.terminated");
            }
            let is_bound = self.launcher.is_some();
            if is_bound && getppid() != self.launcher {
                let _ = kill_process_group(kept.pid, Signal::KILL);
            }
            self.hear(&mut kept);
            let until_signal = stop.as_ref().and_then(Stop::until_next);
            if self.is_unwritten {
                self.note();
            }
            let until_note = self.is_unwritten.then_some(NOTE_AGAIN);
            let is_told = stop.is_some();
            let until_look = (is_bound && is_told).then_some(LAUNCHER_INTERVAL);
            let limit = [until_signal, until_note, until_look].into_iter().flatten().min();
            let all = [Some(&kept.ended), kept.output.as_ref(), kept.ready.as_ref()];
            let waited = any_of(all.into_iter().flatten())
                .and_then(|any| signals.wait(any.as_fd(), limit, is_told));
            if waited.is_err() {
                // Out of descriptors: what can be done without is to look now and then.
                let _ = signals.wait(kept.ended.as_fd(), Some(Duration::from_millis(100)), is_told);
            }
        }
        if stop.is_some() {
            // Others of its session that are killed here were stopped on request, too.
            self.set_stop_request(StopRequest::Kill);
        }
        // What the node has started and left behind would hold its name and its pipe.
        let _ = kill_process_group(kept.pid, Signal::KILL);
        self.record.keeper.kill_session();
        self.hear(&mut kept);
        let status = kept.child.wait().ok();
        fail_point!("launch.reaped");
        let end = status.map_or(End::Unknown, end);
        if end.is_failure() {
            let text = String::from_utf8_lossy(&self.last_output);
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let last = &lines[lines.len().saturating_sub(MAX_LAST_LINES)..];
            self.record.last_output = last.iter().map(ToString::to_string).collect();
        }
        self.record.end = Some(end);
        self.note();
        if self.record.was_told_to_stop() && !self.order.is_on_failure {
            self.record.forget_death();
        }
        fail_point!("launch.closed");
    }

    /// Sends a signal of a stop to the node's group. Until it is killed, the end of the node is a departure to its peers;
    /// then they lose it, and nobody notes that it has died.
    fn send_stop_signal(&mut self, kept: &Kept, Step { signal, after }: Step) {
        self.set_stop_request(match signal {
            Signal::KILL => StopRequest::Kill,
            _ => StopRequest::Stop,
        });
        if let Some((before, ran)) = after {
            let (name, before, ran_s) = (stop::name(signal), stop::name(before), ran.as_secs_f64());
            let text = format!("[rnet launch] {name}: still running {ran_s} s after {before}\n");
            self.log.write(text.as_bytes());
        }
        let _ = kill_process_group(kept.pid, signal);
    }

    /// See [`Location::set_stop_request`](rnet::inspect::Location::set_stop_request).
    fn set_stop_request(&self, request: StopRequest) {
        if let Some(location) = self.record.process.location() {
            let keeper = self.record.keeper.pid;
            let is_ours = |pid: u32| i32::try_from(pid).ok().and_then(session) == Some(keeper);
            location.set_stop_request(is_ours, request);
        }
    }

    /// Writes the record. What cannot be written is told once, and tried again while the node runs: others wait for what
    /// it says.
    fn note(&mut self) {
        let written = self.record.write(&self.folder);
        if let Err(error) = &written
            && !self.is_unwritten
        {
            self.log.write(format!("[rnet launch] {error}\n").as_bytes());
        }
        self.is_unwritten = written.is_err();
    }

    /// Takes what the node has written and said.
    fn hear(&mut self, kept: &mut Kept) {
        let mut bytes = [0; 1 << 16];
        for _ in 0..MAX_READS {
            let Some(output) = &kept.output else { break };
            match rustix::io::read(output, &mut bytes) {
                Ok(0) => kept.output = None,
                Ok(len) => {
                    self.log.write(&bytes[..len]);
                    self.last_output
                        .extend_from_slice(&bytes[len.saturating_sub(MAX_LAST_BYTES)..len]);
                    let excess = self.last_output.len().saturating_sub(MAX_LAST_BYTES);
                    self.last_output.drain(..excess);
                }
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if let Some(ready) = &kept.ready {
            match rustix::io::read(ready, &mut bytes) {
                // Nobody has the other end any more: it will not say so.
                Ok(0) => kept.ready = None,
                Ok(_) => {
                    kept.ready = None;
                    self.record.is_ready = true;
                    self.note();
                }
                Err(_) => {}
            }
        }
    }
}

/// One descriptor that is readable when one of these is.
pub fn any_of<'a>(all: impl Iterator<Item = &'a OwnedFd>) -> std::io::Result<OwnedFd> {
    let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for fd in all {
        epoll::add(&any, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(any)
}

/// Makes this process, which is about to become the node, what its limits say.
pub(crate) fn confine(limits: &Limits, keeper: Pid) -> std::io::Result<()> {
    // A node without its keeper would run unseen, and write into a pipe without a reader.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It was killed before the kernel was asked.
    if getppid() != Some(keeper) {
        return Err(Errno::SRCH.into());
    }
    if !limits.cpus.is_empty() {
        machine::pin(&limits.cpus)?;
    }
    if let Some(mib) = limits.memory_limit_mib {
        let bytes = Some(mib.saturating_mul(1 << 20));
        setrlimit(Resource::Data, Rlimit { current: bytes, maximum: bytes })?;
    }
    machine::schedule(limits)
}

/// How a process has ended, of which the system says this.
pub(crate) fn end(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::Unknown,
    }
}
