//! `rnet node kill`, `stop` and `restart`: for launched nodes, and for all other nodes of this host.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rnet::NodeName;
use rnet::inspect::{NodeInfo, StopRequest};
use rnet_launch::{LaunchedNode, StopOutcome};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::launch::{self, ProcessSignals, keeper_command, run_folder};
use crate::signal;
use crate::snapshot::{not_found, take_snapshot};

/// Time between SIGINT and SIGTERM for a node that was not launched: the default of a launched one.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub fn kill(context: &mut Context, node: &NodeName) -> Outcome {
    if let Some(control) = LaunchedNode::find(run_folder(context)?, node)
        && control.kill().map_err(launch::failure)?
    {
        return report(context, node, "killed");
    }
    let process = find_process(context, node)?;
    // This exit counts as a death, also after a stop request that the process ignored.
    context.location()?.set_stop_request(|pid| pid == process.pid, StopRequest::None);
    send_signal(node, &process.fd, Signal::KILL)?;
    report(context, node, "killed")
}

pub fn stop(context: &mut Context, node: &NodeName) -> Outcome {
    if let Some(control) = LaunchedNode::find(run_folder(context)?, node) {
        let stopped = control.stop(&ProcessSignals).map_err(launch::failure)?;
        if stopped != StopOutcome::NotRunning
            || context.domain()?.snapshot()?.node(node.as_str()).is_none()
        {
            return report_stop_result(context, node, stopped, "stopped");
        }
    }
    let process = find_process(context, node)?;
    let location = context.location()?;
    location.set_stop_request(|pid| pid == process.pid, StopRequest::Stop);
    let done = stop_process(node, &process);
    if !rnet_launch::has_exited(&process.fd) {
        // A later exit of this process counts as a death again.
        context.location()?.set_stop_request(|pid| pid == process.pid, StopRequest::None);
    }
    done?;
    report(context, node, "stopped")
}

/// Stops a process without a launcher, with SIGINT and then SIGTERM.
///
/// # Errors
/// `Interrupted` if a signal arrives meanwhile; `Failed` if the process ignores both.
fn stop_process(node: &NodeName, process: &Process) -> Outcome {
    for signal in [Signal::INT, Signal::TERM] {
        send_signal(node, &process.fd, signal)?;
        signal::wait_readable_for(process.fd.as_fd(), Some(STOP_TIMEOUT), false)?;
        signal::check()?;
        if rnet_launch::has_exited(&process.fd) {
            return Ok(());
        }
    }
    Err(Failure::Failed(format!(
        "the process of {node} (pid {}) is still running {} s after SIGTERM; kill it with rnet node kill {node}",
        process.pid,
        STOP_TIMEOUT.as_secs()
    )))
}

pub fn restart(context: &mut Context, node: &NodeName) -> Outcome {
    let control = find_launched(context, node)?;
    let mut command = keeper_command(context);
    command.arg(node.as_str()).env("RNET_CONFIG", &control.record().file);
    let stopped = control.restart(command, &ProcessSignals).map_err(launch::failure)?;
    let stopped = if stopped == StopOutcome::NotRunning { StopOutcome::Exited } else { stopped };
    report_stop_result(context, node, stopped, "restarted")
}

/// Reports the action on a node.
fn report(context: &mut Context, node: &NodeName, done: &str) -> Outcome {
    match context.json() {
        true => context.document(&json!({"node": node, "done": done})),
        false => context.line(format_args!("{done} {node}")),
    }
}

fn report_stop_result(
    context: &mut Context,
    node: &NodeName,
    stopped: StopOutcome,
    done: &str,
) -> Outcome {
    match stopped {
        StopOutcome::Exited => report(context, node, done),
        StopOutcome::NotRunning if context.json() => report(context, node, "does not run"),
        StopOutcome::NotRunning => context.line(format_args!("{node} is not running")),
        StopOutcome::Interrupted => Err(Failure::Interrupted),
        StopOutcome::StillRunning => Err(Failure::Failed(format!(
            "{node} is still running after the stop request; kill it with rnet node kill {node}"
        ))),
    }
}

/// A node that rnet launch has started in this domain.
pub fn find_launched(context: &Context, node: &NodeName) -> Outcome<LaunchedNode> {
    LaunchedNode::find(run_folder(context)?, node).ok_or_else(|| {
        Failure::Failed(format!("{node} was not started by rnet launch in this domain"))
    })
}

/// The process of a node that was not launched.
struct Process {
    pid: u32,
    fd: OwnedFd,
}

fn find_process(context: &mut Context, name: &NodeName) -> Outcome<Process> {
    let (mut domain, snapshot) = take_snapshot(context)?;
    let Some(node) = snapshot.node(name.as_str()) else {
        let names = snapshot.nodes.iter().map(|node| node.meta.name.as_str());
        return Err(not_found("node", domain.id(), name.as_str(), names));
    };
    if !node.meta.is_in_our_pid_namespace() {
        return Err(node_failure(name, "its process runs in another container; stop it there"));
    }
    let pid = Pid::from_raw(node.meta.pid as i32);
    let pid = pid.ok_or_else(|| node_failure(name, "it has no process id"))?;
    let fd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| node_failure(name, error))?;
    // The node existed when the descriptor was opened, so the descriptor refers to its process and not to a
    // later one.
    let is_same = |later: &NodeInfo| later.incarnation == node.incarnation;
    if !domain.snapshot()?.node(name.as_str()).is_some_and(is_same) {
        return Err(node_failure(name, "it has just exited"));
    }
    Ok(Process { pid: node.meta.pid, fd })
}

fn send_signal(name: &NodeName, process: &OwnedFd, signal: Signal) -> Outcome {
    rnet_launch::signal(process, signal).map_err(|error| node_failure(name, error))
}

fn node_failure(name: &NodeName, why: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("{name}: {why}"))
}
