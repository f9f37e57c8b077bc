//! Requests to nodes that `rnet launch` has started.

use std::io::{Read, Seek, SeekFrom};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use rnet::NodeName;
use rnet_launch::{LaunchError, LaunchedNode, RunFolder, StopOutcome, StopSignals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::operator_node::OperatorNode;
use crate::wire::{Answer, Refusal, fields_of};

/// Maximum number of bytes of a log that are read for its last lines.
const MAX_LOG_LEN_BYTES: u64 = 256 << 10;
/// Maximum interval between two checks whether the dashboard shuts down.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl From<LaunchError> for Refusal {
    fn from(error: LaunchError) -> Refusal {
        Refusal::failed(error.to_string())
    }
}

#[derive(Deserialize)]
struct Node {
    node: String,
    #[serde(default = "some")]
    lines: usize,
}

fn some() -> usize {
    200
}

fn find_control(operator: &OperatorNode, node: &str) -> Result<LaunchedNode, Refusal> {
    let node = NodeName::new(node)?;
    let path = operator.app.options.location.path();
    let folder = RunFolder::of_domain(path, &|name| std::env::var_os(name))?;
    LaunchedNode::find(folder, &node).ok_or_else(|| {
        Refusal::not_found(format!("{node} was not started by rnet launch in this domain"))
    })
}

/// `launch.stop`, `launch.restart` and `launch.kill`.
pub fn order(operator: &OperatorNode, op: &str, fields: Json) -> Answer {
    let Node { node, .. } = fields_of(fields)?;
    let control = find_control(operator, &node)?;
    let until_end = UntilEnd(operator);
    let stopped = match op {
        "launch.kill" => {
            let runs = control.kill()?;
            if runs { StopOutcome::Exited } else { StopOutcome::NotRunning }
        }
        "launch.stop" => control.stop(&until_end)?,
        _ => {
            let Some(keeper) = &operator.app.options.keeper else {
                return Err(Refusal::new("refused", "this dashboard cannot start nodes"));
            };
            let mut command = keeper();
            command.arg(&node).env("RNET_CONFIG", &control.record().file);
            match control.restart(command, &until_end)? {
                // It is running now.
                StopOutcome::NotRunning => StopOutcome::Exited,
                stopped => stopped,
            }
        }
    };
    match stopped {
        StopOutcome::Exited => Ok(json!({})),
        StopOutcome::NotRunning => Err(Refusal::new("refused", format!("{node} is not running"))),
        StopOutcome::Interrupted => {
            Err(Refusal::new("cancelled", "the dashboard is shutting down"))
        }
        StopOutcome::StillRunning => {
            Err(Refusal::failed(format!("{node} still runs after the request to stop; kill it")))
        }
    }
}

/// `launch.logs`.
pub fn logs(operator: &OperatorNode, fields: Json) -> Answer {
    let Node { node, lines } = fields_of(fields)?;
    let control = find_control(operator, &node)?;
    let newest = control.logs().pop();
    let text = match newest {
        Some(path) => tail(&path)
            .map_err(|why| Refusal::failed(format!("{} cannot be read: {why}", path.display())))?,
        None => String::new(),
    };
    let all: Vec<&str> = text.lines().collect();
    let last = &all[all.len().saturating_sub(lines)..];
    Ok(json!({"text": last.join("\n")}))
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(MAX_LOG_LEN_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG_LEN_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // The first line may be incomplete.
    let cut = len > MAX_LOG_LEN_BYTES;
    Ok(if cut {
        text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned())
    } else {
        text
    })
}

/// Aborts a request when the dashboard shuts down.
struct UntilEnd<'a>(&'a OperatorNode);

impl StopSignals for UntilEnd<'_> {
    fn stop_requested(&self) -> bool {
        self.0.app.is_stopped()
    }

    fn wait(
        &self,
        fd: BorrowedFd<'_>,
        limit: Option<Duration>,
        _knows: bool,
    ) -> std::io::Result<()> {
        let step = limit.map_or(STOP_CHECK_INTERVAL, |limit| limit.min(STOP_CHECK_INTERVAL));
        let step = Timespec { tv_sec: 0, tv_nsec: step.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&step)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
