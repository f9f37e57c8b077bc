//! The `on_failure` commands. Each has a keeper, like a node: it writes the output into the log of the
//! node, and kills the command and its children when the launcher dies. Stopping a launch stops them, too.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rnet::NodeName;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::Launcher;
use crate::identity::{has_exited, open_pid};
use crate::keeper::{self, KeeperReply, KeeperRequest};
use crate::node::{Limits, LogLimits, Process};
use crate::record::{End, Record};
use crate::requirements;
use crate::run_folder::RunFolder;
use crate::slot::NodeState;
use crate::stop::StopSequence;

/// A running command.
pub(super) struct FailureCommand {
    node: NodeName,
    program: String,
    pid: i32,
    /// Its keeper; without one, the command itself.
    child: Child,
    has_keeper: bool,
    interrupt_timeout_ms: u64,
    stop_timeout_ms: u64,
    stop: Option<StopSequence>,
}

impl FailureCommand {
    /// Stops it: through its keeper, or with the signals that a keeper would send.
    fn stop(&mut self) {
        let is_first = self.stop.is_none();
        let begin = || StopSequence::begin(self.interrupt_timeout_ms, self.stop_timeout_ms);
        let step = self.stop.get_or_insert_with(begin).next_due();
        // The child is not reaped, so the number is its own.
        let pid = Pid::from_child(&self.child);
        let _ = match step {
            _ if self.has_keeper && is_first => kill_process(pid, Signal::TERM),
            Some(step) if !self.has_keeper => kill_process_group(pid, step.signal),
            _ => Ok(()),
        };
    }

    /// How it has ended, if it has.
    fn end(&mut self, folder: &RunFolder) -> Option<End> {
        if !self.has_keeper && open_pid(self.pid).is_some_and(|process| has_exited(&process)) {
            // Kills its children with it. It is not reaped yet, so the number is its own.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) if !self.has_keeper => Some(keeper::end_of(status)),
            _ if !self.has_keeper => Some(End::Unknown),
            _ => {
                let record = Record::read(folder, &self.node);
                Some(record.map_or(End::Unknown, |record| record.into_end().0))
            }
        }
    }
}

fn spawn_without_keeper(process: &Process) -> std::io::Result<Child> {
    let Some((program, arguments)) = process.command.split_first() else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(requirements::program_path(program, &process.dir));
    command.args(arguments).current_dir(&process.dir).envs(&process.env).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    keeper::settings_of(&Limits::default()).apply_to(&mut command);
    command.spawn()
}

impl Launcher<'_> {
    /// Runs `on_failure` of a node.
    pub(super) fn run_on_failure(&mut self, at: usize) {
        let node = &self.slots[at].node;
        let Some(program) = node.on_failure.first().cloned() else { return };
        let name = node.name.clone();
        let process = Process {
            command: node.on_failure.clone(),
            env: BTreeMap::from([("RNET_FAILED_NODE".to_owned(), name.to_string())]),
            params: BTreeMap::new(),
            limits: Limits::default(),
            die_with_launcher: true,
            // Its node may write again, and only the node's keeper rotates the log.
            log: LogLimits { max_len_bytes: u64::MAX, files: 1 },
            ..node.process.clone()
        };
        let (interrupt_timeout_ms, stop_timeout_ms) =
            (process.interrupt_timeout_ms, process.stop_timeout_ms);
        match self.start_failure_command(&name, process) {
            Ok((pid, child, has_keeper)) => {
                self.context.event(&name, "on-failure", &format!("{program} started, pid {pid}"));
                self.failure_commands.push(FailureCommand {
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
                self.context.event(&name, "on-failure", &detail);
                self.slots[at].why += &format!("; on_failure: {detail}");
            }
        }
    }

    /// The process of the keeper or of the command, and whether it is a keeper.
    fn start_failure_command(
        &self,
        node: &NodeName,
        process: Process,
    ) -> Result<(i32, Child, bool), String> {
        let folder = self.folder.on_failure();
        let request = KeeperRequest {
            node: node.clone(),
            file: self.plan.file.clone(),
            process: process.clone(),
            folder: self.folder.path().to_owned(),
            restarts: 0,
            setup_error: None,
            is_on_failure: true,
        };
        let created = folder.create().map_err(|error| error.to_string());
        match created.and_then(|()| request.send(self.context.keeper(node))) {
            Ok((KeeperReply::Started, keeper)) => {
                let record = Record::read(&folder, node);
                let main = record.as_ref().and_then(|record| record.main.as_ref());
                main.map(|main| (main.pid, keeper, true)).ok_or_else(|| {
                    record.map_or(End::Unknown, |record| record.into_end().0).to_string()
                })
            }
            Ok((KeeperReply::Busy, mut keeper)) => {
                let _ = keeper.wait();
                Err("is still running from an earlier start".to_owned())
            }
            // A full disk has no space for a keeper's files. The command still runs, without a keeper.
            Err(why) => {
                let child = spawn_without_keeper(&process)
                    .map_err(|_| format!("cannot be started: {why}"))?;
                Ok((Pid::from_child(&child).as_raw_nonzero().get(), child, false))
            }
        }
    }

    /// Reports commands that have exited; if the launch is being stopped, stops those that run.
    pub(super) fn check_failure_commands(&mut self) {
        let commands = std::mem::take(&mut self.failure_commands);
        for mut command in commands {
            let Some(end) = command.end(&self.folder.on_failure()) else {
                if self.is_stopping {
                    command.stop();
                }
                self.failure_commands.push(command);
                continue;
            };
            let detail = format!("{}: {end}", command.program);
            self.context.event(&command.node, "on-failure", &detail);
            // Unless the node was started again meanwhile.
            let slot = self.slots.iter_mut().find(|slot| slot.node.name == command.node);
            let slot = slot.filter(|slot| slot.state == NodeState::GivenUp && end.is_failure());
            if let Some(slot) = slot {
                slot.why += &format!("; on_failure: {detail}");
            }
        }
    }

    /// The commands that still run, and what happens to them.
    pub(super) fn running_failure_commands(&self) -> impl Iterator<Item = (NodeName, String)> {
        self.failure_commands.iter().map(|FailureCommand { node, program, pid, .. }| {
            let fate = format!("its on_failure {program}, pid {pid}, exits with the launcher");
            (node.clone(), fate)
        })
    }
}
