//! The keeper of a node: its parent, which outlives the launcher.
//!
//! Only a parent can learn how a process ended, and a pipe whose reader dies kills its writer. So that the
//! launcher may die and be restarted, each node has its own parent process: it copies the node's output to
//! its log, writes the node's record, and stops the node on request. Only the keeper sends signals to the
//! node. Until it reaps the node, the numbers of the node and of its group are not reused.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rnet::NodeName;
use rnet::inspect::StopRequest;
use rnet_shm::os::process::ChildSettings;
use rnet_shm::ring::fail_point;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, kill_process_group, pidfd_open,
    set_parent_process_death_signal, setsid,
};
use serde::{Deserialize, Serialize};

use crate::identity::{Identity, has_exited, session};
use crate::log::NodeLog;
use crate::node::{Limits, OWN_PROGRAM, Process};
use crate::record::{End, Record, lock};
use crate::requirements;
use crate::run_folder::RunFolder;
use crate::stop::{self, StopSequence, StopStep};

/// The answers of a keeper: it keeps the node, or another keeper does.
const KEEPS: &str = "keeps";
const BUSY: &str = "busy";

/// The request that a keeper reads from its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeeperRequest {
    /// The node.
    pub node: NodeName,
    /// The file that requests it.
    pub file: PathBuf,
    /// Its process.
    pub process: Process,
    /// The folder of its record and its log.
    pub folder: PathBuf,
    /// Like [`Record::restarts`].
    #[serde(default)]
    pub restarts: u32,
    /// Why the launcher could not prepare the node, if it failed: the keeper then only records that.
    #[serde(default)]
    pub setup_error: Option<String>,
    /// Whether it is the `on_failure` command of the node, which is killed when the launcher dies.
    #[serde(default)]
    pub is_on_failure: bool,
}

/// Reads of output between two checks of everything else, so that a node with endless output can still be
/// stopped. More than a pipe holds.
const MAX_OUTPUT_READS: usize = 16;

/// The interval between two attempts to write a record.
const RECORD_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The interval between two checks of the launcher while an `on_failure` command is being stopped. Before
/// that, the kernel sends a signal.
const LAUNCHER_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Lines and bytes of a failed node's output that its record holds.
const MAX_LAST_LINES: usize = 10;
const MAX_LAST_BYTES: usize = 2048;

/// Earlier keepers that a record names.
const MAX_STOPPED_KEEPERS: usize = 3;

/// The reply to a request.
#[derive(Debug, PartialEq, Eq)]
pub enum KeeperReply {
    /// A keeper and a record exist.
    Started,
    /// Another keeper has this node.
    Busy,
}

impl KeeperRequest {
    /// Starts a keeper by `command`, and waits until it has started the node or failed to: some ms.
    ///
    /// # Errors
    /// The keeper cannot be started; the reason as text.
    pub fn send(&self, mut command: Command) -> Result<(KeeperReply, Child), String> {
        let failed = |why: &dyn std::fmt::Display| format!("cannot start its keeper: {why}");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        fail_point!("launch.spawned");
        let text = serde_json::to_vec(self).map_err(|error| failed(&error))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let mut said = String::new();
        // A keeper that does not read has reported why.
        let _ = to.map(|mut to| to.write_all(&text));
        fail_point!("launch.requested");
        from.map(|mut from| from.read_to_string(&mut said)).transpose().map_err(|e| failed(&e))?;
        let answer = match said.trim() {
            KEEPS => KeeperReply::Started,
            BUSY => KeeperReply::Busy,
            other => {
                let _ = child.wait();
                return Err(failed(&if other.is_empty() { "the keeper died" } else { other }));
            }
        };
        Ok((answer, child))
    }
}

/// The stop signals of a keeper or a launcher.
pub trait StopSignals {
    /// Whether SIGTERM or a similar signal has come.
    fn stop_requested(&self) -> bool;

    /// Waits until `fd` is readable, until such a signal comes, or until the time is over. It may return
    /// early. An earlier signal ends the wait at once, unless the caller `knows` of it.
    ///
    /// # Errors
    /// The system cannot wait.
    fn wait(&self, fd: BorrowedFd<'_>, limit: Option<Duration>, knows: bool)
    -> std::io::Result<()>;
}

/// A node's parent.
pub struct Keeper {
    request: KeeperRequest,
    /// The launcher, if the command dies with it.
    launcher: Option<Pid>,
    folder: RunFolder,
    log: NodeLog,
    record: Record,
    /// The end of the node's output.
    last_output: Vec<u8>,
    /// Whether the record has changes that its file lacks: the disk may be full.
    is_record_dirty: bool,
}

/// A running node.
struct RunningNode {
    child: Child,
    pid: Pid,
    ended: OwnedFd,
    output: Option<OwnedFd>,
    ready: Option<OwnedFd>,
}

impl Keeper {
    /// Runs a keeper: reads its request, confirms on `answer` that it keeps the node, and returns when the
    /// node has exited.
    ///
    /// # Errors
    /// Why it does not keep the node, as text.
    pub fn run(
        request: KeeperRequest,
        mut answer: impl FnMut(&str),
        signals: &dyn StopSignals,
    ) -> Result<(), String> {
        let launcher = getppid();
        // Leaves the launcher's terminal: neither its Ctrl-C nor its end may reach the node.
        setsid().map_err(|error| format!("cannot start a session: {error}"))?;
        if request.process.die_with_launcher {
            let asked = set_parent_process_death_signal(Some(Signal::TERM));
            asked.map_err(|error| format!("cannot set up to die with the launcher: {error}"))?;
            if getppid() != launcher {
                return Err("the launcher has died".into());
            }
        }
        let of_nodes = RunFolder::at(request.folder.clone());
        let path = of_nodes.log(&request.node);
        let folder = if request.is_on_failure { of_nodes.on_failure() } else { of_nodes };
        let Some(_lock) = lock(&folder.lock(&request.node)).map_err(|error| error.to_string())?
        else {
            answer(BUSY);
            return Ok(());
        };
        fail_point!("launch.locked");
        let before = Record::read(&folder, &request.node);
        if before.as_ref().is_some_and(|before| before.keeper().is_some()) {
            // It was killed and is exiting: the kernel has closed its files, and has not killed its node
            // yet.
            answer(BUSY);
            return Ok(());
        }
        let mut stopped_keepers = before.map_or_else(Vec::new, |before| {
            before.kill_leftovers();
            // Process numbers of an earlier boot belong to other processes now.
            if before.keeper.is_of_this_boot() { before.stopped_keepers } else { Vec::new() }
        });
        // Numbers are reused: this process has not been asked to stop.
        stopped_keepers.retain(|pid| *pid != std::process::id() as i32);
        folder.forget_killed(&request.node);
        stopped_keepers.drain(..stopped_keepers.len().saturating_sub(MAX_STOPPED_KEEPERS));
        let log = NodeLog::open(&path, request.process.log)
            .map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        let own = Identity::of(std::process::id() as i32).ok_or("/proc is not mounted")?;
        let record = Record {
            node: request.node.clone(),
            file: request.file.clone(),
            process: request.process.clone(),
            keeper: own,
            main: None,
            started_boot_ns: rnet::boot_ns(),
            is_ready: false,
            restarts: request.restarts,
            end: None,
            last_output: Vec::new(),
            stopped_keepers,
        };
        let (last_output, is_record_dirty) = (Vec::new(), false);
        let launcher = launcher.filter(|_| request.is_on_failure);
        let mut keeper =
            Keeper { request, launcher, folder, log, record, last_output, is_record_dirty };
        // Before the node starts: if this process is killed, the record identifies the session to kill.
        keeper.record.write(&keeper.folder).map_err(|error| error.to_string())?;
        fail_point!("launch.recorded");
        let started = match keeper.request.setup_error.take() {
            Some(why) => Err(why),
            None => keeper.start(),
        };
        match started {
            Ok(running) => {
                fail_point!("launch.started");
                // It is not reaped yet, so the number is its own.
                keeper.record.main = Identity::of(running.pid.as_raw_nonzero().get());
                if let Err(error) = keeper.record.write(&keeper.folder) {
                    // Without an identity no process would find it.
                    let _ = kill_process_group(running.pid, Signal::KILL);
                    return Err(error.to_string());
                }
                fail_point!("launch.process_recorded");
                answer(KEEPS);
                keeper.supervise(running, signals);
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

    fn start(&mut self) -> Result<RunningNode, String> {
        let Process { command, dir, env, limits, .. } = &self.request.process;
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
            // The only descriptor that the node inherits besides the usual three.
            rustix::io::fcntl_setfd(&tells, rustix::io::FdFlags::empty())?;
            rustix::io::fcntl_dupfd_cloexec(&written, 3)
        })();
        let errors = prepared.map_err(|error| words(error.into()))?;
        let mut child = Command::new(requirements::program_path(&command[0], dir));
        if command[0] == OWN_PROGRAM {
            child.arg0("rnet");
        }
        child.args(&command[1..]).current_dir(dir).envs(env);
        child.env("RNET_READY_FD", tells.as_raw_fd().to_string());
        child.stdin(Stdio::null()).stdout(written).stderr(errors).process_group(0);
        settings_of(limits).apply_to(&mut child);
        let child = child.spawn().map_err(|error| {
            let text = words(error);
            // The kernel does not name the cause: a directory, a program, the cores.
            let errors = requirements::requirement_errors(&self.request.process);
            errors.iter().fold(text, |text, u| {
                format!("{text}; {}: expected {}, found {}", u.key, u.expected, u.found)
            })
        })?;
        let pid = Pid::from_child(&child);
        let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| words(error.into()))?;
        Ok(RunningNode { child, pid, ended, output: Some(output), ready: Some(ready) })
    }

    fn supervise(&mut self, mut running: RunningNode, signals: &dyn StopSignals) {
        let mut stop: Option<StopSequence> = None;
        while !has_exited(&running.ended) {
            if signals.stop_requested() && stop.is_none() {
                // Before it exits: processes that see its exit read this.
                self.record.stopped_keepers.push(self.record.keeper.pid);
                self.write_record();
                fail_point!("launch.stop_recorded");
                let Process { interrupt_timeout_ms, stop_timeout_ms, .. } = self.record.process;
                stop = Some(StopSequence::begin(interrupt_timeout_ms, stop_timeout_ms));
            }
            if let Some(step) = stop.as_mut().and_then(StopSequence::next_due) {
                self.send_stop_signal(&running, step);
                fail_point!("launch.terminated");
            }
            let is_bound = self.launcher.is_some();
            if is_bound && getppid() != self.launcher {
                let _ = kill_process_group(running.pid, Signal::KILL);
            }
            self.read_pipes(&mut running);
            let until_signal = stop.as_ref().and_then(StopSequence::until_next);
            if self.is_record_dirty {
                self.write_record();
            }
            let until_retry = self.is_record_dirty.then_some(RECORD_RETRY_INTERVAL);
            let is_stopping = stop.is_some();
            let until_look = (is_bound && is_stopping).then_some(LAUNCHER_CHECK_INTERVAL);
            let limit = [until_signal, until_retry, until_look].into_iter().flatten().min();
            let all = [Some(&running.ended), running.output.as_ref(), running.ready.as_ref()];
            let waited = epoll_any(all.into_iter().flatten())
                .and_then(|any| signals.wait(any.as_fd(), limit, is_stopping));
            if waited.is_err() {
                // Out of descriptors: fall back to checks at intervals.
                let _ = signals.wait(
                    running.ended.as_fd(),
                    Some(Duration::from_millis(100)),
                    is_stopping,
                );
            }
        }
        if stop.is_some() {
            // Other processes of its session that are killed here were stopped on request, too.
            self.set_stop_request(StopRequest::Kill);
        }
        // Processes that the node has left behind would hold its name and its pipe.
        let _ = kill_process_group(running.pid, Signal::KILL);
        self.record.keeper.kill_session();
        self.read_pipes(&mut running);
        let status = running.child.wait().ok();
        fail_point!("launch.reaped");
        let end = status.map_or(End::Unknown, end_of);
        if end.is_failure() {
            let text = String::from_utf8_lossy(&self.last_output);
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let last = &lines[lines.len().saturating_sub(MAX_LAST_LINES)..];
            self.record.last_output = last.iter().map(ToString::to_string).collect();
        }
        self.record.end = Some(end);
        self.write_record();
        if self.record.was_asked_to_stop() && !self.request.is_on_failure {
            self.record.forget_death();
        }
        fail_point!("launch.end_recorded");
    }

    /// Sends a stop signal to the node's group. Until SIGKILL, peers see the exit of the node as a
    /// departure; after it, they lose the node, and its death is not recorded.
    fn send_stop_signal(&mut self, running: &RunningNode, StopStep { signal, after }: StopStep) {
        self.set_stop_request(match signal {
            Signal::KILL => StopRequest::Kill,
            _ => StopRequest::Stop,
        });
        if let Some((before, ran)) = after {
            let (name, before, ran_s) =
                (stop::signal_name(signal), stop::signal_name(before), ran.as_secs_f64());
            let text = format!("[rnet launch] {name}: still running {ran_s} s after {before}\n");
            self.log.write(text.as_bytes());
        }
        let _ = kill_process_group(running.pid, signal);
    }

    /// See [`Location::set_stop_request`](rnet::inspect::Location::set_stop_request).
    fn set_stop_request(&self, request: StopRequest) {
        if let Some(location) = self.record.process.location() {
            let keeper = self.record.keeper.pid;
            let is_ours = |pid: u32| i32::try_from(pid).ok().and_then(session) == Some(keeper);
            location.set_stop_request(is_ours, request);
        }
    }

    /// Writes the record. A failure is reported once, and retried while the node runs: other processes wait
    /// for the record.
    fn write_record(&mut self) {
        let written = self.record.write(&self.folder);
        if let Err(error) = &written
            && !self.is_record_dirty
        {
            self.log.write(format!("[rnet launch] {error}\n").as_bytes());
        }
        self.is_record_dirty = written.is_err();
    }

    /// Reads the node's output and its readiness report.
    fn read_pipes(&mut self, running: &mut RunningNode) {
        let mut bytes = [0; 1 << 16];
        for _ in 0..MAX_OUTPUT_READS {
            let Some(output) = &running.output else { break };
            match rustix::io::read(output, &mut bytes) {
                Ok(0) => running.output = None,
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
        if let Some(ready) = &running.ready {
            match rustix::io::read(ready, &mut bytes) {
                // No process has the other end any more: readiness will not be reported.
                Ok(0) => running.ready = None,
                Ok(_) => {
                    running.ready = None;
                    self.record.is_ready = true;
                    self.write_record();
                }
                Err(_) => {}
            }
        }
    }
}

/// One descriptor that is readable when one of these is.
pub fn epoll_any<'a>(all: impl Iterator<Item = &'a OwnedFd>) -> std::io::Result<OwnedFd> {
    let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for fd in all {
        epoll::add(&any, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(any)
}

/// The settings of a process with these limits. It ends with its keeper: without one it would run unseen, and
/// write into a pipe without a reader.
pub(crate) fn settings_of(limits: &Limits) -> ChildSettings {
    ChildSettings {
        cpus: limits.cpus.clone(),
        data_limit_bytes: limits.memory_limit_mib.map(|mib| mib.saturating_mul(1 << 20)),
        scheduler: requirements::scheduler_of(limits),
    }
}

/// Converts the exit status of a process.
pub(crate) fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::Unknown,
    }
}
