//! The process that held the role before and has lost it because it stands still.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long its end is waited for.
const LIMIT: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);

/// Ends it. It has lost the role for ever, would end as soon as it went on, and until then would keep the ports on
/// which its successor has to listen.
pub fn end(pid: u32) {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    let is_link = || comm(pid).is_some_and(|name| name.trim_end() == "rnet-link");
    if pid == std::process::id() || !is_link() {
        return;
    }
    let _ = kill_process(process, Signal::KILL);
    let begun = Instant::now();
    while is_link() && begun.elapsed() < LIMIT {
        std::thread::sleep(LOOK);
    }
}

/// The name of a living process; none of one whose descriptors are closed and that only waits for its parent.
fn comm(pid: u32) -> Option<String> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let status = std::fs::read_to_string(place.join("status")).ok()?;
    let is_zombie = status.lines().any(|line| line.starts_with("State:\tZ"));
    if is_zombie { None } else { std::fs::read_to_string(place.join("comm")).ok() }
}
