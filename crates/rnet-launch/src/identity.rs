//! Which process a number means. A process is its number, its start, the namespace of numbers and the boot: none of these
//! alone says that it is not another one by now.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// A process that was seen alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it was started, in ticks since the boot.
    start_ticks: u64,
    pid_namespace: u64,
    boot_id: String,
}

impl Identity {
    /// The living process of this number; `None` if there is none.
    pub fn of(pid: i32) -> Option<Identity> {
        Some(Identity {
            pid,
            start_ticks: start_ticks(pid)?,
            pid_namespace: rnet::inspect::pid_namespace(),
            boot_id: boot_id()?,
        })
    }

    /// A descriptor of the process, if it is there still. Signals through it reach this process or nobody.
    pub fn open(&self) -> Option<OwnedFd> {
        if self.pid_namespace != rnet::inspect::pid_namespace()
            || Some(&self.boot_id) != boot_id().as_ref()
        {
            return None;
        }
        let fd = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Looked at while the descriptor holds: if the number is another process's by now, its start is another.
        (start_ticks(self.pid)? == self.start_ticks && !has_ended(&fd)).then_some(fd)
    }
}

/// Whether the process of a descriptor has ended; it may not have been reaped.
pub fn has_ended(fd: &OwnedFd) -> bool {
    let mut polled = [rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)];
    let no_time = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut polled, Some(&no_time)).is_ok_and(|ready| ready > 0)
}

/// Sends a signal to the process of a descriptor; that it has ended is no error.
pub fn signal(fd: &OwnedFd, signal: Signal) -> std::io::Result<()> {
    match pidfd_send_signal(fd, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn start_ticks(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses, and may hold any.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_process_is_opened() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let own = Identity::of(child.id() as i32).unwrap();
        let fd = own.open().unwrap();
        let elder = Identity { start_ticks: own.start_ticks - 1, ..own.clone() };
        assert!(elder.open().is_none(), "its number was given to another");
        assert!(Identity { boot_id: "another".into(), ..own.clone() }.open().is_none());
        assert!(Identity { pid_namespace: 1, ..own.clone() }.open().is_none());
        signal(&fd, Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(has_ended(&fd) && own.open().is_none());
        signal(&fd, Signal::KILL).unwrap();
    }
}
