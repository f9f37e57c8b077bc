//! The commands of `on_failure`: what they print stands in the log of their node, their ends are told, and a launch that
//! is stopped stops them, too.

use std::io::{PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet::NodeName;
use rustix::process::{Pid, Signal, kill_process_group};

use super::Launcher;
use crate::keeper;
use crate::log::Log;
use crate::machine;
use crate::node::Node;

/// After its end, output may come of processes that it has started. It is waited for so long.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// A command that runs.
pub(super) struct Helper {
    node: NodeName,
    program: String,
    child: Child,
    /// Writes its output to the log; none where that cannot be opened.
    output: Option<JoinHandle<()>>,
    stop_timeout: Duration,
    /// When it is killed; not before it was told to stop.
    kill_at: Option<Instant>,
    ended_at: Option<Instant>,
}

impl Launcher<'_> {
    /// Runs `on_failure` of a node.
    pub(super) fn help(&mut self, at: usize) {
        let Node { name, process, on_failure, .. } = &self.slots[at].node;
        let Some((program, arguments)) = on_failure.split_first() else { return };
        let mut command = Command::new(machine::program(program, &process.dir));
        command.args(arguments).current_dir(&process.dir).env("RNET_FAILED_NODE", name.as_str());
        command.stdin(Stdio::null()).process_group(0);
        let log = Log::open(&self.folder.log(name), process.log);
        let started = std::io::pipe().and_then(|(reader, writer)| {
            command.stdout(writer.try_clone()?).stderr(writer);
            Ok((command.spawn()?, reader))
        });
        // It holds ends of the pipe, whose other end would never see that the command has ended.
        drop(command);
        let (name, program) = (name.clone(), program.clone());
        let stop_timeout = Duration::from_millis(process.stop_timeout_ms);
        match started {
            Ok((child, reader)) => {
                let detail = format!("{program} runs, pid {}", child.id());
                self.around.event(&name, "on-failure", &detail);
                let output = log.ok().and_then(|log| copy(reader, log).ok());
                let (node, kill_at, ended_at) = (name, None, None);
                self.helpers.push(Helper {
                    node,
                    program,
                    child,
                    output,
                    stop_timeout,
                    kill_at,
                    ended_at,
                });
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
        for helper in &mut self.helpers {
            if helper.ended_at.is_some() {
                continue;
            }
            if let Ok(Some(status)) = helper.child.try_wait() {
                helper.ended_at = Some(Instant::now());
                let end = keeper::end(status);
                let detail = format!("{}: {end}", helper.program);
                self.around.event(&helper.node, "on-failure", &detail);
                let slot = self.slots.iter_mut().find(|slot| slot.node.name == helper.node);
                if let Some(slot) = slot.filter(|_| end.is_failure()) {
                    slot.why += &format!("; on_failure: {detail}");
                }
            } else if self.is_stopping {
                helper.stop();
            }
        }
        self.helpers.retain(|helper| !helper.is_over());
    }

    /// Those that run still, and what becomes of them.
    pub(super) fn helpers_left(&self) -> impl Iterator<Item = (NodeName, String)> {
        let running = self.helpers.iter().filter(|helper| helper.ended_at.is_none());
        running.map(|helper| {
            let (program, pid) = (&helper.program, helper.child.id());
            (
                helper.node.clone(),
                format!("its on_failure {program} runs on, pid {pid}, told to stop"),
            )
        })
    }
}

impl Helper {
    /// SIGTERM, and SIGKILL when its time is over: to all that it has started.
    fn stop(&mut self) {
        let now = Instant::now();
        let signal = match self.kill_at {
            None => {
                self.kill_at = Some(now + self.stop_timeout);
                Signal::TERM
            }
            Some(at) if now >= at => Signal::KILL,
            Some(_) => return,
        };
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }

    /// Whether it has ended, and all that it has printed is written.
    fn is_over(&self) -> bool {
        let written = self.output.as_ref().is_none_or(JoinHandle::is_finished);
        self.ended_at.is_some_and(|at| written || at.elapsed() > LAST_OUTPUT)
    }
}

fn copy(mut from: PipeReader, mut to: Log) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("on-failure".into()).spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            to.write(&bytes[..len]);
        }
    })
}
