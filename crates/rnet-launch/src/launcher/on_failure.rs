//! The commands of `on_failure`: what they print stands in the log of their node, their ends are told, and a launch that
//! is stopped stops them, too.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rnet::NodeName;
use rustix::process::{Pid, kill_process_group};

use super::Launcher;
use crate::keeper;
use crate::machine;
use crate::node::Node;
use crate::record::End;
use crate::slot::State;
use crate::stop::Stop;

/// A command that runs.
pub(super) struct Helper {
    node: NodeName,
    program: String,
    child: Child,
    /// How long it has after SIGINT and after SIGTERM, in ms: as long as its node.
    timeouts_ms: (u64, u64),
    /// Its stop, once it was told.
    stop: Option<Stop>,
}

impl Launcher<'_> {
    /// Runs `on_failure` of a node.
    pub(super) fn help(&mut self, at: usize) {
        let Node { name, process, on_failure, .. } = &self.slots[at].node;
        let Some((program, arguments)) = on_failure.split_first() else { return };
        let mut command = Command::new(machine::program(program, &process.dir));
        command.args(arguments).current_dir(&process.dir).env("RNET_FAILED_NODE", name.as_str());
        command.stdin(Stdio::null()).process_group(0);
        // The file itself, and no pipe to this process: whoever goes on without it would die at its next line.
        let log = File::options().append(true).create(true).open(self.folder.log(name));
        let output = log.and_then(|log| Ok((log.try_clone()?, log)));
        let (stdout, stderr) = match output {
            Ok((one, other)) => (one.into(), other.into()),
            Err(_) => (Stdio::null(), Stdio::null()),
        };
        command.stdout(stdout).stderr(stderr);
        let launcher = rustix::process::getpid();
        // SAFETY: between fork and exec it makes system calls and nothing else.
        unsafe { command.pre_exec(move || keeper::die_with_parent(launcher)) };
        let (name, program) = (name.clone(), program.clone());
        let timeouts_ms = (process.interrupt_timeout_ms, process.stop_timeout_ms);
        match command.spawn() {
            Ok(child) => {
                let detail = format!("{program} runs, pid {}", child.id());
                self.around.event(&name, "on-failure", &detail);
                let (node, stop) = (name, None);
                self.helpers.push(Helper { node, program, child, timeouts_ms, stop });
            }
            Err(error) => {
                let detail = format!("{program} cannot be started: {error}");
                self.around.event(&name, "on-failure", &detail);
                self.slots[at].why += &format!("; on_failure: {detail}");
            }
        }
    }

    /// Tells who has ended; of a launch that is stopped, stops those that run.
    pub(super) fn look_after_helpers(&mut self) {
        let helpers = std::mem::take(&mut self.helpers);
        for mut helper in helpers {
            let end = match helper.child.try_wait() {
                Ok(None) => {
                    if self.is_stopping {
                        helper.stop();
                    }
                    self.helpers.push(helper);
                    continue;
                }
                Ok(Some(status)) => keeper::end(status),
                // Somebody has set that children are not waited for.
                Err(_) => End::Unknown,
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
        self.helpers.iter().map(|helper| {
            let (program, pid) = (&helper.program, helper.child.id());
            (
                helper.node.clone(),
                format!("its on_failure {program}, pid {pid}, dies with the launcher"),
            )
        })
    }
}

impl Helper {
    /// Stops it and those that it has started: sends the signal that is due.
    fn stop(&mut self) {
        let (interrupt_ms, stop_ms) = self.timeouts_ms;
        let stop = self.stop.get_or_insert_with(|| Stop::begin(interrupt_ms, stop_ms));
        if let Some(step) = stop.due() {
            let _ = kill_process_group(Pid::from_child(&self.child), step.signal);
        }
    }
}
