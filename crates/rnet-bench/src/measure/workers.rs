//! The workers of a run, as the command controls them.
//!
//! They are processes of this program. Each is in its own process group, so that Ctrl-C reaches only the
//! command, which then stops them; if the command is killed, they exit by themselves (see [`super::worker`]).

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::worker::{Order, Worker, WorkerLine};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::bench_dir::BenchDir;
use super::worker::{Job, Role};
use super::worker_link::{Event, WorkerNode};
use rnet_format::{Failure, Outcome};

/// How often a wait checks for a stop request: rarely, because it takes CPU time from the workers.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How long workers may take to start and match.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long they may take beyond the duration of a run: a sender waits 10 s for a reader that makes no
/// progress.
const COMPLETION_MARGIN: Duration = Duration::from_secs(30);
/// How long they may take to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(120);

/// A worker's name, for messages, and its role.
pub type NamedRole = (String, Role);

struct WorkerState {
    name: String,
    worker: Worker,
    ready: bool,
    sent: bool,
    report: Option<Value>,
    /// Its exit was ordered by [`Workers::kill`].
    killed: bool,
}

/// All workers of a run; on drop, the remaining ones are killed, one by one.
pub struct Workers {
    members: Vec<WorkerState>,
    lines: Receiver<WorkerLine>,
    /// Kept for workers that are added later.
    sender: Sender<WorkerLine>,
    bench_dir: PathBuf,
    dir: PathBuf,
    domain: String,
    should_stop: fn() -> bool,
}

impl Workers {
    /// Starts a process for each role in a domain of `dir`, and waits until all are matched.
    pub fn start(
        bench_dir: &BenchDir,
        dir: PathBuf,
        domain: String,
        should_stop: fn() -> bool,
        roles: Vec<NamedRole>,
    ) -> Outcome<Workers> {
        let (sender, lines) = channel();
        let bench_dir = bench_dir.path().to_owned();
        let members = Vec::new();
        let mut workers = Workers { members, lines, sender, bench_dir, dir, domain, should_stop };
        workers.add(false, roles)?;
        Ok(workers)
    }

    /// Adds workers, with `apart` each in its own pid namespace; returns once they are ready, too.
    pub fn add(&mut self, apart: bool, roles: Vec<NamedRole>) -> Outcome {
        for (name, role) in roles {
            self.spawn(name, role, apart)?;
        }
        self.wait_until(START_TIMEOUT, "get ready", |members| {
            first_missing(members, |member| member.killed || member.ready)
        })
    }

    fn spawn(&mut self, name: String, role: Role, apart: bool) -> Outcome {
        let number = self.members.len();
        let (bench_dir, dir, domain) =
            (self.bench_dir.clone(), self.dir.clone(), self.domain.clone());
        let job =
            Job { node: WorkerNode { name: name.replace(' ', "_"), bench_dir, dir, domain }, role };
        let cannot = |e: std::io::Error| Failure::Failed(format!("cannot start {name}: {e}"));
        let program = std::env::current_exe().map_err(cannot)?;
        let mut command =
            if apart { pid_namespace_command(&program) } else { Command::new(program) };
        command.arg("bench-worker");
        if let Some(python) = job.role.python() {
            command = Command::new(python);
            // Python imports modules of its current folder.
            command.args(["-m", "rnet.demo"]).current_dir(&self.bench_dir);
        }
        // Only this machine is measured, regardless of the robot's configuration.
        command.env_remove("RNET_GROUP").env("RNET_NETWORK", "off").process_group(0);
        if apart {
            // If the process that it waits for is killed, unshare prints an unrelated error.
            command.stderr(Stdio::null());
        }
        let worker = Worker::start(number, command, &job, self.sender.clone()).map_err(cannot)?;
        let (ready, sent, report, killed) = (false, false, None, false);
        self.members.push(WorkerState { name, worker, ready, sent, report, killed });
        Ok(())
    }

    /// Kills a worker; returns the time just before, by [`rnet::now_ns`].
    pub fn kill(&mut self, number: usize) -> Outcome<u64> {
        let member = &mut self.members[number];
        let cannot = |e: std::io::Error| Failure::Failed(format!("cannot kill a worker: {e}"));
        member.killed = true;
        let pid = worker_pid(&member.worker).map_err(cannot)?;
        let at_ns = rnet::now_ns();
        // The process is a child that was not waited for, or the only child of such a process, which waits
        // for it only after its death: so the id is still valid.
        kill_process(pid, Signal::KILL).map_err(|e| cannot(e.into()))?;
        member.worker.close_orders();
        Ok(at_ns)
    }

    /// Sends an order to some of the workers.
    pub fn order(&mut self, numbers: impl IntoIterator<Item = usize>, order: Order) -> Outcome {
        for number in numbers {
            // The exit status of an exited worker shows the reason.
            let given = self.members[number].worker.order(&order);
            given.map_err(|_| self.ended(number))?;
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn name(&self, number: usize) -> &str {
        &self.members[number].name
    }

    /// Waits until the first `count` workers have sent everything. `run` is the expected time.
    pub fn wait_until_sent(&mut self, count: usize, run: Duration) -> Outcome {
        self.wait_until(run.saturating_add(COMPLETION_MARGIN), "finish sending", |members| {
            first_missing(&members[..count], |member| member.killed || member.sent)
        })
    }

    /// Waits for the report of a worker. `run` is the expected time of its work.
    pub fn report<R: DeserializeOwned>(&mut self, number: usize, run: Duration) -> Outcome<R> {
        let report =
            self.wait_until(run.saturating_add(COMPLETION_MARGIN), "report", |members| {
                members[number].report.take().ok_or(number)
            })?;
        serde_json::from_value(report).map_err(|e| {
            let name = self.name(number);
            Failure::Failed(format!("cannot read the report of {name}: {e}"))
        })
    }

    /// Waits for this time; a worker that exits meanwhile is an error.
    pub fn run_for(&mut self, time: Duration) -> Outcome {
        let end = Instant::now() + time;
        while self.receive_event(end)? {}
        Ok(())
    }

    /// Waits until `take` returns a value; on a timeout the error names the missing worker.
    fn wait_until<T>(
        &mut self,
        time: Duration,
        what: &str,
        mut take: impl FnMut(&mut [WorkerState]) -> Result<T, usize>,
    ) -> Outcome<T> {
        let end = Instant::now() + time;
        loop {
            let missing = match take(&mut self.members) {
                Ok(found) => return Ok(found),
                Err(missing) => missing,
            };
            if !self.receive_event(end)? {
                let (name, seconds) = (self.name(missing), time.as_secs());
                let why = format!("{name} did not {what} within {seconds} s");
                return Err(Failure::TimedOut(why));
            }
        }
    }

    /// Takes one event; `false` at the end of the time.
    fn receive_event(&mut self, end: Instant) -> Outcome<bool> {
        loop {
            if (self.should_stop)() {
                return Err(Failure::Interrupted);
            }
            let left = end.saturating_duration_since(Instant::now());
            let (number, line) = match self.lines.recv_timeout(left.min(STOP_CHECK_INTERVAL)) {
                Ok(line) => line,
                Err(_) if left.is_zero() => return Ok(false),
                Err(_) => continue,
            };
            let member = &mut self.members[number];
            if member.killed {
                // Its output ends, as expected.
                let _ = member.worker.process().child().wait();
                continue;
            }
            match line.and_then(|line| serde_json::from_str(&line).ok()) {
                Some(Event::Ready) => member.ready = true,
                Some(Event::Sent) => member.sent = true,
                Some(Event::Done { result, .. }) => member.report = Some(result.report),
                Some(Event::Failed { why, timed_out }) => {
                    return Err(self.failed(number, &why, timed_out));
                }
                None => return Err(self.ended(number)),
            }
            return Ok(true);
        }
    }

    /// The error of a failed worker, which may be caused by the exit of another.
    fn failed(&mut self, number: usize, why: &str, timed_out: bool) -> Failure {
        let dead = self.members.iter_mut().position(|member| {
            !member.killed && matches!(member.worker.process().child().try_wait(), Ok(Some(_)))
        });
        let text = format!("{}: {why}", self.name(number));
        match (dead, timed_out) {
            (Some(dead), _) => self.ended(dead),
            (None, true) => Failure::TimedOut(text),
            (None, false) => Failure::Failed(text),
        }
    }

    /// The error of a worker that exited too early.
    fn ended(&mut self, number: usize) -> Failure {
        let member = &mut self.members[number];
        // Its output has ended, so if it still runs, it sends nothing more.
        let child = member.worker.process().child();
        let _ = child.kill();
        let how = child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        let (name, pid) = (&member.name, member.worker.id());
        Failure::Failed(format!(
            "the run is invalid: {name} (process {pid}) exited too early, {how}"
        ))
    }

    /// Makes all workers close their endpoints and exit.
    pub fn stop_all(mut self) -> Outcome {
        let living: Vec<usize> = (0..self.len()).filter(|&n| !self.members[n].killed).collect();
        self.order(living.iter().copied(), Order::stop())?;
        let unknown = |e| Failure::Failed(format!("cannot wait for a worker to exit: {e}"));
        let end = Instant::now() + EXIT_TIMEOUT;
        for number in living {
            let left = end.saturating_duration_since(Instant::now());
            let process = self.members[number].worker.process();
            match process.wait_timeout(left).map_err(unknown)? {
                Some(status) if status.success() => {}
                Some(_) => return Err(self.ended(number)),
                None => {
                    let why = format!("{} does not exit", self.name(number));
                    return Err(Failure::TimedOut(why));
                }
            }
        }
        Ok(())
    }
}

/// The first worker for which `is` is false.
fn first_missing(members: &[WorkerState], is: impl Fn(&WorkerState) -> bool) -> Result<(), usize> {
    members.iter().position(|member| !is(member)).map_or(Ok(()), Err)
}

/// Whether workers can run in their own pid namespaces; the error is the reason if not.
pub fn check_pid_namespaces() -> Outcome {
    let why = match pid_namespace_command(Path::new("true")).output() {
        Ok(out) if out.status.success() => return Ok(()),
        Ok(out) => String::from_utf8_lossy(&out.stderr).trim().to_owned(),
        Err(e) => format!("unshare: {e}"),
    };
    Err(Failure::Failed(format!("cannot create pid namespaces here; omit --apart: {why}")))
}

/// A command that starts `program` in its own pid namespace, and kills it when the command is killed.
fn pid_namespace_command(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    command.arg(program);
    command
}

/// The process id of the worker itself; the started process may only wait for it.
fn worker_pid(worker: &Worker) -> std::io::Result<Pid> {
    let pid = worker.id();
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let only = children.split_whitespace().next().map_or(Ok(pid as i32), str::parse);
    let only = only.ok().and_then(Pid::from_raw);
    only.ok_or_else(|| std::io::Error::other(format!("not a process id: {children:?}")))
}
