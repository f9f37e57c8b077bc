//! The commands of `on_failure`: each has a keeper, as a node has, which writes what they print into the log of their node
//! and kills them with all that they have started when the launcher dies. A launch that is stopped stops them, too.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rnet::NodeName;
use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

use super::Launcher;
use crate::identity::{has_ended, open_pid};
use crate::keeper::{self, Answer, KeeperOrder};
use crate::machine;
use crate::node::{Limits, LogLimits, Process};
use crate::place::RunFolder;
use crate::record::{End, Record};
use crate::slot::State;
use crate::stop::Stop;

/// A command that runs.
pub(super) struct Helper {
    node: NodeName,
    program: String,
    pid: i32,
    /// Its keeper; without one, the command itself.
    child: Child,
    has_keeper: bool,
    interrupt_timeout_ms: u64,
    stop_timeout_ms: u64,
    stop: Option<Stop>,
}

impl Helper {
    /// Stops it: by its keeper, or by the signals that a keeper would send.
    fn stop(&mut self) {
        let is_first = self.stop.is_none();
        let begin = || Stop::begin(self.interrupt_timeout_ms, self.stop_timeout_ms);
        let step = self.stop.get_or_insert_with(begin).due();
        // The child is not reaped, so that the number is its own.
        let pid = Pid::from_child(&self.child);
        let _ = match step {
            _ if self.has_keeper && is_first => kill_process(pid, Signal::TERM),
            Some(step) if !self.has_keeper => kill_process_group(pid, step.signal),
            _ => Ok(()),
        };
    }

    /// How it has ended, if it has.
    fn end(&mut self, folder: &RunFolder) -> Option<End> {
        if !self.has_keeper && open_pid(self.pid).is_some_and(|process| has_ended(&process)) {
            // Its children end with it. It is not reaped yet, so that the number is its own.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) if !self.has_keeper => Some(keeper::end(status)),
            _ if !self.has_keeper => Some(End::Unknown),
            _ => {
                let record = Record::read(folder, &self.node);
                Some(record.map_or(End::Unknown, |record| record.into_end().0))
            }
        }
    }
}

fn unkept(process: &Process) -> std::io::Result<Child> {
    let Some((program, arguments)) = process.command.split_first() else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(machine::program(program, &process.dir));
    command.args(arguments).current_dir(&process.dir).envs(&process.env).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let launcher = getpid();
    // SAFETY: between fork and exec it makes system calls and nothing else: there are no limits.
    unsafe { command.pre_exec(move || keeper::confine(&Limits::default(), launcher)) };
    command.spawn()
}

impl Launcher<'_> {
    /// Runs `on_failure` of a node.
    pub(super) fn help(&mut self, at: usize) {
        let node = &self.slots[at].node;
        let Some(program) = node.on_failure.first().cloned() else { return };
        let name = node.name.clone();
        let process = Process {
            command: node.on_failure.clone(),
            env: BTreeMap::from([("RNET_FAILED_NODE".to_owned(), name.to_string())]),
            params: BTreeMap::new(),
            limits: Limits::default(),
            die_with_launcher: true,
            // Its node may write again, and the one that moves the log is the node's keeper.
            log: LogLimits { max_len_bytes: u64::MAX, files: 1 },
            ..node.process.clone()
        };
        let (interrupt_timeout_ms, stop_timeout_ms) =
            (process.interrupt_timeout_ms, process.stop_timeout_ms);
        match self.keep_helper(&name, process) {
            Ok((pid, child, has_keeper)) => {
                self.around.event(&name, "on-failure", &format!("{program} started, pid {pid}"));
                self.helpers.push(Helper {
                    node: name,
                    program,
                    pid,
                    child,
                    has_keeper,
                    interrupt_timeout_ms,
                    stop_timeout_ms,
                    stop: None,
                });
            }
            Err(why) => {
                let detail = format!("{program} {why}");
                self.around.event(&name, "on-failure", &detail);
                self.slots[at].why += &format!("; on_failure: {detail}");
            }
        }
    }

    /// Its process, its keeper or itself, and whether that is a keeper.
    fn keep_helper(&self, node: &NodeName, process: Process) -> Result<(i32, Child, bool), String> {
        let folder = self.folder.on_failure();
        let order = KeeperOrder {
            node: node.clone(),
            file: self.plan.file.clone(),
            process: process.clone(),
            folder: self.folder.path().to_owned(),
            restarts: 0,
            unprepared: None,
            is_on_failure: true,
        };
        let created = folder.create().map_err(|error| error.to_string());
        match created.and_then(|()| order.send(self.around.keeper(node))) {
            Ok((Answer::Keeps, keeper)) => {
                let record = Record::read(&folder, node);
                let main = record.as_ref().and_then(|record| record.main.as_ref());
                main.map(|main| (main.pid, keeper, true)).ok_or_else(|| {
                    record.map_or(End::Unknown, |record| record.into_end().0).to_string()
                })
            }
            Ok((Answer::Busy, mut keeper)) => {
                let _ = keeper.wait();
                Err("is still running from an earlier start".to_owned())
            }
            // A full disk has no room for what a keeper writes. The command runs all the same, unseen.
            Err(why) => {
                let unkept = unkept(&process).map_err(|_| format!("cannot be started: {why}"))?;
                Ok((Pid::from_child(&unkept).as_raw_nonzero().get(), unkept, false))
            }
        }
    }

    /// Tells who has ended; of a launch that is stopped, stops those that run.
    pub(super) fn look_after_helpers(&mut self) {
        let helpers = std::mem::take(&mut self.helpers);
        for mut helper in helpers {
            let Some(end) = helper.end(&self.folder.on_failure()) else {
                if self.is_stopping {
                    helper.stop();
                }
                self.helpers.push(helper);
                continue;
            };
            let detail = format!("{}: {end}", helper.program);
            self.around.event(&helper.node, "on-failure", &detail);
            // Unless the node has been started again meanwhile.
            let slot = self.slots.iter_mut().find(|slot| slot.node.name == helper.node);
            let slot = slot.filter(|slot| slot.state == State::GivenUp && end.is_failure());
            if let Some(slot) = slot {
                slot.why += &format!("; on_failure: {detail}");
            }
        }
    }

    /// Those that run still, and what becomes of them.
    pub(super) fn helpers_left(&self) -> impl Iterator<Item = (NodeName, String)> {
        self.helpers.iter().map(|Helper { node, program, pid, .. }| {
            let fate = format!("its on_failure {program}, pid {pid}, exits with the launcher");
            (node.clone(), fate)
        })
    }
}
