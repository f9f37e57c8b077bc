//! The earlier holder of the role, which lost it because it is stopped.

use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long to wait for its exit: on a loaded host a killed process may take seconds to exit.
const EXIT_TIMEOUT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Kills it. It has lost the role and would exit as soon as it continued; until then it would keep the
/// ports that its successor needs.
pub fn kill(pid: u32) {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let open = |number| pidfd_open(number, PidfdFlags::empty()).ok();
    let Some(process) = number.and_then(open) else { return };
    let comm = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/comm")));
    if pid == std::process::id() || !comm.is_ok_and(|name| name.trim_end() == "rnet-link") {
        return;
    }
    let _ = pidfd_send_signal(&process, Signal::KILL);
    // Ready when the last of its threads has ended and its files are closed; the first thread may end long
    // before.
    let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&EXIT_TIMEOUT));
}
