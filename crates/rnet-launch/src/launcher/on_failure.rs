//! The commands of `on_failure`: each has a keeper, as a node has, which writes what they print into the log of their node
//! and kills them with all that they have started when the launcher dies. A launch that is stopped stops them, too.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rnet::NodeName;
use rustix::process::{Pid, Signal, kill_process};

use super::Launcher;
use crate::keeper::{Answer, KeeperOrder};
use crate::machine;
use crate::node::{Limits, LogLimits, Process};
use crate::record::{End, Record};
use crate::slot::State;

/// A command that runs.
pub(super) struct Helper {
    node: NodeName,
    program: String,
    pid: i32,
    keeper: Child,
    /// Whether its keeper was told to stop it.
    is_told: bool,
}

fn unkept(process: &Process) -> std::io::Result<Child> {
    let Some((program, arguments)) = process.command.split_first() else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(machine::program(program, &process.dir));
    command.args(arguments).current_dir(&process.dir).envs(&process.env).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
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
        match self.keep_helper(&name, process) {
            Ok((pid, keeper)) => {
                self.around.event(&name, "on-failure", &format!("{program} started, pid {pid}"));
                self.helpers.push(Helper { node: name, program, pid, keeper, is_told: false });
            }
            Err(why) => {
                let detail = format!("{program} {why}");
                self.around.event(&name, "on-failure", &detail);
                self.slots[at].why += &format!("; on_failure: {detail}");
            }
        }
    }

    /// Its process and its keeper.
    fn keep_helper(&self, node: &NodeName, process: Process) -> Result<(i32, Child), String> {
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
                main.map(|main| (main.pid, keeper)).ok_or_else(|| {
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
                Ok((Pid::from_child(&unkept).as_raw_nonzero().get(), unkept))
            }
        }
    }

    /// Tells who has ended; of a launch that is stopped, stops those that run.
    pub(super) fn look_after_helpers(&mut self) {
        let helpers = std::mem::take(&mut self.helpers);
        for mut helper in helpers {
            if let Ok(None) = helper.keeper.try_wait() {
                if self.is_stopping && !helper.is_told {
                    // It is not reaped, so that the number is its own.
                    let told = kill_process(Pid::from_child(&helper.keeper), Signal::TERM);
                    helper.is_told = told.is_ok();
                }
                self.helpers.push(helper);
                continue;
            }
            let record = Record::read(&self.folder.on_failure(), &helper.node);
            let end = record.map_or(End::Unknown, |record| record.into_end().0);
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
