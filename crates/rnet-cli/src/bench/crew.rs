//! The workers of a run, as the command sees them.
//!
//! They are this same program, started again. Each is in a process group of its own, so that Ctrl-C
//! reaches the command alone, which then ends them; when the command is killed they end themselves
//! (see [`super::link`]).

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rnet_bench::worker::{Line, Order, Worker};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::job::{Event, Job, WorkerNode};
use super::place::Place;
use super::roles::Role;
use crate::failure::{Failure, Outcome};
use crate::signal;

/// How often a wait looks whether somebody said stop: seldom, as it takes time from the workers.
const STEP: Duration = Duration::from_millis(50);
/// How long workers may take to start and meet.
const START: Duration = Duration::from_secs(30);
/// How long they may take beyond the time of a run: a sender waits 10 s for a reader that stands
/// still.
const GRACE: Duration = Duration::from_secs(30);
/// How long they may take to leave.
const LEAVE: Duration = Duration::from_secs(120);

/// What a worker is asked to be: its name, for messages, and its role.
pub type Post = (String, Role);

#[derive(Default)]
struct Heard {
    ready: bool,
    sent: bool,
    report: Option<Value>,
}

struct Member {
    name: String,
    worker: Worker,
    heard: Heard,
    /// Its end was ordered, by [`Crew::kill`].
    killed: bool,
}

/// All workers of a run; those that are left are killed on drop, one by one.
pub struct Crew {
    members: Vec<Member>,
    lines: Receiver<Line>,
    /// Kept for workers that come later.
    sender: Sender<Line>,
    place: PathBuf,
    dir: PathBuf,
    domain: String,
}

impl Crew {
    /// Starts a process for each post, in a domain of `place` that no other run uses, and waits
    /// until all have met.
    pub fn start(place: &Place, run: u32, posts: Vec<Post>) -> Outcome<Crew> {
        Crew::start_in(place, place.path().to_owned(), format!("run{run}"), posts)
    }

    /// The same in a domain of `dir`.
    pub fn start_in(
        place: &Place,
        dir: PathBuf,
        domain: String,
        posts: Vec<Post>,
    ) -> Outcome<Crew> {
        let (sender, lines) = channel();
        let place = place.path().to_owned();
        let mut crew = Crew { members: Vec::new(), lines, sender, place, dir, domain };
        crew.add(posts)?;
        Ok(crew)
    }

    /// More workers; returns once they are ready, too.
    pub fn add(&mut self, posts: Vec<Post>) -> Outcome {
        self.add_in(false, posts)
    }

    /// More workers, each `apart` in a pid namespace of its own.
    pub fn add_in(&mut self, apart: bool, posts: Vec<Post>) -> Outcome {
        for (name, role) in posts {
            self.spawn(name, role, apart)?;
        }
        self.listen(START, "ready", |heard| heard.ready)
    }

    fn spawn(&mut self, name: String, role: Role, apart: bool) -> Outcome {
        let number = self.members.len();
        let (place, dir, domain) = (self.place.clone(), self.dir.clone(), self.domain.clone());
        let job =
            Job { node: WorkerNode { name: name.replace(' ', "_"), place, dir, domain }, role };
        let cannot =
            |e: std::io::Error| Failure::Failed(format!("cannot start {}: {e}", job.node.name));
        let program = std::env::current_exe().map_err(cannot)?;
        let mut command = if apart { apart_from_us(&program) } else { Command::new(program) };
        command.arg("bench-worker");
        if let Some(python) = job.role.python() {
            command = Command::new(python);
            // Python imports what stands in its current folder.
            command.args(["-m", "rnet.demo"]).current_dir(&self.place);
        }
        // What is measured here is this machine, whatever the robot's configuration says.
        command.env_remove("RNET_GROUP").env("RNET_NETWORK", "off").process_group(0);
        if apart {
            // Where the process that it waits for is killed, unshare complains of something else.
            command.stderr(Stdio::null());
        }
        let worker = Worker::start(number, command, &job, self.sender.clone()).map_err(cannot)?;
        self.members.push(Member { name, worker, heard: Heard::default(), killed: false });
        Ok(())
    }

    /// Kills a worker; returns the time just before, by [`rnet::now_ns`].
    pub fn kill(&mut self, number: usize) -> Outcome<u64> {
        let member = &mut self.members[number];
        let cannot = |e: std::io::Error| Failure::Failed(format!("cannot kill a worker: {e}"));
        member.killed = true;
        let pid = worker_pid(&member.worker).map_err(cannot)?;
        let at_ns = rnet::now_ns();
        // SAFETY: the call takes no pointers. The process is a child that was not waited for, or
        // the one child of such a one, which it waits for only once the child is dead.
        if unsafe { libc::kill(pid, libc::SIGKILL) } != 0 {
            return Err(cannot(std::io::Error::last_os_error()));
        }
        member.worker.hang_up();
        Ok(at_ns)
    }

    /// Gives an order to some of the workers.
    pub fn order(&mut self, numbers: impl IntoIterator<Item = usize>, order: Order) -> Outcome {
        for number in numbers {
            // One that has ended tells why by its exit status.
            let told = self.members[number].worker.order(&order);
            told.map_err(|_| self.ended(number))?;
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn name(&self, number: usize) -> &str {
        &self.members[number].name
    }

    /// Waits until all have sent everything.
    pub fn until_sent(&mut self, run: Duration) -> Outcome {
        self.listen(run.saturating_add(GRACE), "done with sending", |heard| heard.sent)
    }

    /// Waits for this worker's report. `run` is how long its work takes.
    pub fn report<R: DeserializeOwned>(&mut self, number: usize, run: Duration) -> Outcome<R> {
        let until = Instant::now() + run.saturating_add(GRACE);
        loop {
            if let Some(report) = self.members[number].heard.report.take() {
                return serde_json::from_value(report).map_err(|e| {
                    let name = self.name(number);
                    Failure::Failed(format!("{name} has sent a report that cannot be read: {e}"))
                });
            }
            if !self.hear(until)? {
                let name = self.name(number);
                return Err(Failure::TimedOut(format!("{name} has not reported in time")));
            }
        }
    }

    /// Looks at the time for this long, while no worker may end.
    pub fn watch(&mut self, time: Duration) -> Outcome {
        let until = Instant::now() + time;
        while self.hear(until)? {}
        Ok(())
    }

    fn listen(&mut self, time: Duration, what: &str, there: fn(&Heard) -> bool) -> Outcome {
        let until = Instant::now() + time;
        loop {
            let living = self.members.iter().filter(|m| !m.killed);
            let Some(missing) = living.into_iter().find(|m| !there(&m.heard)) else {
                return Ok(());
            };
            let name = missing.name.clone();
            if !self.hear(until)? {
                let seconds = time.as_secs();
                return Err(Failure::TimedOut(format!("{name} was not {what} in {seconds} s")));
            }
        }
    }

    /// Hears one word; `false` when the time is over.
    fn hear(&mut self, until: Instant) -> Outcome<bool> {
        loop {
            if signal::stopped() {
                return Err(Failure::Interrupted);
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(STEP)) {
                Ok((number, line)) => {
                    if self.members[number].killed {
                        // Its output ends, as it has to.
                        let _ = self.members[number].worker.process().child().wait();
                        continue;
                    }
                    let heard = &mut self.members[number].heard;
                    match line.and_then(|line| serde_json::from_str(&line).ok()) {
                        Some(Event::Ready) => heard.ready = true,
                        Some(Event::Sent) => heard.sent = true,
                        Some(Event::Done { result, .. }) => heard.report = Some(result.report),
                        Some(Event::Failed { why, timed_out }) => {
                            // It may have failed because another has died.
                            let mut members = self.members.iter_mut();
                            let dead = members.position(|m| {
                                !m.killed
                                    && matches!(m.worker.process().child().try_wait(), Ok(Some(_)))
                            });
                            if let Some(dead) = dead {
                                return Err(self.ended(dead));
                            }
                            let text = format!("{}: {why}", self.name(number));
                            return Err(match timed_out {
                                true => Failure::TimedOut(text),
                                false => Failure::Failed(text),
                            });
                        }
                        None => return Err(self.ended(number)),
                    }
                    return Ok(true);
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(false),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Failed("no worker can be heard any more".to_owned()));
                }
            }
        }
    }

    /// Why a worker is not there that should be.
    fn ended(&mut self, number: usize) -> Failure {
        let member = &mut self.members[number];
        // Its output has ended, so if it has not ended it will not say anything either.
        let child = member.worker.process().child();
        let _ = child.kill();
        let how = child.wait().map_or_else(|e| e.to_string(), |status| words_of(&status));
        let (name, pid) = (&member.name, member.worker.id());
        Failure::Failed(format!("the run is void: {name} (process {pid}) {how} in the middle"))
    }

    /// Lets all leave in good order.
    pub fn dismiss(mut self) -> Outcome {
        let living: Vec<usize> = (0..self.len()).filter(|&n| !self.members[n].killed).collect();
        self.order(living.iter().copied(), Order::stop())?;
        let unknown = |e| Failure::Failed(format!("the end of a worker cannot be waited for: {e}"));
        let until = Instant::now() + LEAVE;
        for number in living {
            let left = until.saturating_duration_since(Instant::now());
            let process = self.members[number].worker.process();
            let Some(status) = process.ended_within(left).map_err(unknown)? else {
                let name = self.name(number);
                return Err(Failure::TimedOut(format!("{name} does not leave")));
            };
            if !status.success() {
                return Err(self.ended(number));
            }
        }
        Ok(())
    }
}

/// Whether workers can be apart; if not, why.
pub fn can_be_apart() -> Outcome {
    let why = match apart_from_us(std::path::Path::new("true")).output() {
        Ok(out) if out.status.success() => return Ok(()),
        Ok(out) => String::from_utf8_lossy(&out.stderr).trim().to_owned(),
        Err(e) => format!("unshare: {e}"),
    };
    Err(Failure::Failed(format!("no pid namespaces can be made here, leave --apart out: {why}")))
}

/// A command that starts `program` in a pid namespace of its own, and kills it when it is killed.
fn apart_from_us(program: &std::path::Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    command.arg(program);
    command
}

/// The worker itself, where the process that was started only waits for it.
fn worker_pid(worker: &Worker) -> std::io::Result<libc::pid_t> {
    let pid = worker.id();
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let only = children.split_whitespace().next().map_or(Ok(pid as i32), str::parse);
    only.map_err(|e| std::io::Error::other(format!("{children:?}: {e}")))
}

fn words_of(status: &ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
