//! Identifies a process by its number, its start time, the pid namespace and the boot: none of these alone
//! excludes that the number belongs to another process by now.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The most rounds over the members of a session that is killed.
const KILL_ROUNDS: usize = 8;
/// How long to wait for the exit of a killed process: in the middle of a disk write it takes long.
const KILL_TIMEOUT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

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
    /// The live process with this number; `None` if there is none.
    pub fn of(pid: i32) -> Option<Identity> {
        Some(Identity {
            pid,
            start_ticks: start_ticks(pid)?,
            pid_namespace: rnet::inspect::pid_namespace(),
            boot_id: boot_id()?.to_owned(),
        })
    }

    /// Writes this process into a file that it has locked.
    pub fn write_to(mut file: &File) -> std::io::Result<()> {
        let text = serde_json::to_vec(&Identity::of(std::process::id() as i32))?;
        file.set_len(0)?;
        file.write_all(&text)
    }

    /// The live process that a file identifies.
    pub fn read_living(path: &Path) -> Option<Identity> {
        let noted: Option<Identity> = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        noted.filter(|process| process.open().is_some())
    }

    /// Whether the process that a file identifies may be alive: it is alive, or belongs to another pid
    /// namespace.
    pub fn may_live(path: &Path) -> bool {
        let Ok(text) = std::fs::read(path) else { return false };
        let noted: Option<Identity> = serde_json::from_slice(&text).ok().flatten();
        noted.is_some_and(|noted| noted.is_in_other_namespace() || noted.open().is_some())
    }

    /// Whether it belongs to this boot and to another pid namespace: its exit is not visible from here.
    pub fn is_in_other_namespace(&self) -> bool {
        self.is_of_this_boot() && !self.is_in_this_namespace()
    }

    /// A descriptor of the process, if it still exists. Signals through it reach this process or none.
    pub fn open(&self) -> Option<OwnedFd> {
        if !self.is_in_this_namespace() {
            return None;
        }
        let fd = open_pid(self.pid)?;
        // Checked while the descriptor is open: if the number belongs to another process by now, its start
        // time differs.
        (start_ticks(self.pid)? == self.start_ticks && !has_exited(&fd)).then_some(fd)
    }

    /// Kills all other processes of the session that this one has created, and waits until they have
    /// exited.
    ///
    /// While a session has a member, its number is not reused; if it was reused, the session has no
    /// members.
    pub fn kill_session(&self) {
        let is_another = start_ticks(self.pid).is_some_and(|start| start != self.start_ticks);
        if !self.is_in_this_namespace() || is_another {
            return;
        }
        // They may be about to start others.
        for _ in 0..KILL_ROUNDS {
            let killed: Vec<OwnedFd> =
                pids().filter(|pid| *pid != self.pid).filter_map(|pid| self.kill(pid)).collect();
            if killed.is_empty() {
                return;
            }
            for fd in &killed {
                let mut polled = [PollFd::new(fd, PollFlags::IN)];
                let _ = poll(&mut polled, Some(&KILL_TIMEOUT));
            }
        }
    }

    /// Kills a process if it is in the session that this one has created.
    fn kill(&self, pid: i32) -> Option<OwnedFd> {
        if session(pid) != Some(self.pid) {
            return None;
        }
        let fd = open_pid(pid).filter(|fd| !has_exited(fd))?;
        // Checked again while the descriptor is open.
        let is_member = session(pid) == Some(self.pid) && start_ticks(pid)? >= self.start_ticks;
        (is_member && signal(&fd, Signal::KILL).is_ok()).then_some(fd)
    }

    /// Whether it belonged to this boot, in any pid namespace.
    pub fn is_of_this_boot(&self) -> bool {
        boot_id() == Some(&self.boot_id)
    }

    /// Whether it belonged to this boot and to this pid namespace.
    pub fn is_in_this_namespace(&self) -> bool {
        self.is_of_this_boot() && self.pid_namespace == rnet::inspect::pid_namespace()
    }
}

/// All visible processes.
fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A descriptor of the process that has this number now.
pub fn open_pid(pid: i32) -> Option<OwnedFd> {
    // A file may contain anything.
    let pid = Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Whether the process of a descriptor has exited, reaped or not.
pub fn has_exited(fd: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(fd, PollFlags::IN)];
    let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&no_time)).is_ok_and(|ready| ready > 0)
}

/// Sends a signal to the process of a descriptor; an exited process is not an error.
pub fn signal(fd: &OwnedFd, signal: Signal) -> std::io::Result<()> {
    match pidfd_send_signal(fd, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn start_ticks(pid: i32) -> Option<u64> {
    stat(pid, 19)
}

/// The session number of a process; 0 for a session created outside of the pid namespace.
pub fn session(pid: i32) -> Option<i32> {
    stat(pid, 3)
}

/// A number in `/proc/PID/stat` of a process, counted from its state.
fn stat<T: std::str::FromStr>(pid: i32, field: usize) -> Option<T> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses and may contain any character: the kernel truncates it
    // after 15 bytes, even within a character.
    String::from_utf8_lossy(&stat).rsplit_once(") ")?.1.split(' ').nth(field)?.parse().ok()
}

/// The boot id of this kernel. Read once: it does not change, and each inspection of a robot compares it
/// for every launched node.
fn boot_id() -> Option<&'static str> {
    static ID: OnceLock<String> = OnceLock::new();
    if ID.get().is_none() {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let _ = ID.set(id.trim().to_owned());
    }
    ID.get().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn open_finds_only_the_same_process() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let own = Identity::of(child.id() as i32).unwrap();
        let fd = own.open().unwrap();
        let elder = Identity { start_ticks: own.start_ticks - 1, ..own.clone() };
        assert!(elder.open().is_none(), "its number belongs to another process");
        assert!(Identity { boot_id: "another".into(), ..own.clone() }.open().is_none());
        assert!(Identity { pid: -own.pid, ..own.clone() }.open().is_none());
        assert!(Identity { pid_namespace: 1, ..own.clone() }.open().is_none());
        signal(&fd, Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(has_exited(&fd) && own.open().is_none());
        signal(&fd, Signal::KILL).unwrap();
    }

    #[test]
    fn name_truncated_within_a_character_is_parsed() {
        let name = r"printf 'leg\303' >/proc/$$/comm; echo; read -r end";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let pid = child.id() as i32;
        let comm = std::fs::read(format!("/proc/{pid}/comm")).unwrap();
        assert_eq!(comm, b"leg\xc3\n");
        assert!(Identity::of(pid).is_some_and(|process| process.open().is_some()));
        assert_eq!(session(pid), session(std::process::id() as i32));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
