//! The process that held the role before and has lost it because it stands still.

use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long its end is waited for: on a loaded host a process that is killed may take seconds to end.
const EXIT_TIMEOUT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Ends it. It has lost the role for ever, would end as soon as it went on, and until then would keep the ports on
/// which its successor has to listen.
pub fn kill(pid: u32) {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let open = |number| pidfd_open(number, PidfdFlags::empty()).ok();
    let Some(process) = number.and_then(open) else { return };
    let comm = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/comm")));
    if pid == std::process::id() || !comm.is_ok_and(|name| name.trim_end() == "rnet-link") {
        return;
    }
    let _ = pidfd_send_signal(&process, Signal::KILL);
    // Ready when the last of its threads has ended, and with it what they have open; the first may end long before.
    let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&EXIT_TIMEOUT));
}
