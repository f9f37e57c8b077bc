//! Earlier holders of a role, which lost it because they are stopped.

use std::path::PathBuf;

use rnet::bridge::HeldRole;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long to wait for their exit: on a loaded host a killed process may take seconds to exit.
const EXIT_TIMEOUT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Kills them. Each would exit as soon as it continued; until then it would keep the ports that its successor
/// needs. The last holder may have been stopped before it killed its own predecessor, so there may be several.
pub fn kill_stopped(held: &HeldRole) {
    held.stopped_predecessors().into_iter().for_each(kill);
}

fn kill(pid: u32) {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let open = |number| pidfd_open(number, PidfdFlags::empty()).ok();
    let Some(process) = number.and_then(open) else { return };
    // The number may be of another container's process.
    let comm = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/comm")));
    if pid == std::process::id() || !comm.is_ok_and(|name| name.trim_end() == "rnet-link") {
        return;
    }
    if pidfd_send_signal(&process, Signal::KILL).is_err() {
        // The process of another user, or it has exited.
        return;
    }
    // Ready when the last of its threads has ended and its files are closed; the first thread may end long
    // before.
    let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&EXIT_TIMEOUT));
}
