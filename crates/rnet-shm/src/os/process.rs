//! Settings of this process and its children that `std` offers only as unsafe functions.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::set_parent_process_death_signal;
use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getppid, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// What a child process sets for itself before it executes its program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChildSettings {
    /// The cores that it may run on; empty to inherit those of its parent.
    pub cpus: Vec<usize>,
    /// Limit of its data memory, in bytes.
    pub data_limit_bytes: Option<u64>,
    /// Policy (`libc::SCHED_*`) and priority.
    pub scheduler: Option<(i32, i32)>,
}

impl ChildSettings {
    /// Makes the child of `command` apply these settings. SIGKILL ends the child when its parent exits; a
    /// child whose parent has exited before does not execute its program.
    pub fn apply_to(self, command: &mut Command) {
        let parent = getpid();
        // SAFETY: between fork and exec the child only makes system calls.
        unsafe { command.pre_exec(move || self.apply(parent)) };
    }

    /// Allocates nothing and takes no lock.
    fn apply(&self, parent: Pid) -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent was killed before the child requested its death signal.
        if getppid() != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        if !self.cpus.is_empty() {
            set_affinity(&self.cpus)?;
        }
        if let Some(bytes) = self.data_limit_bytes {
            let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
            setrlimit(Resource::Data, limit)?;
        }
        match self.scheduler {
            Some((policy, priority)) => set_scheduler(policy, priority),
            None => Ok(()),
        }
    }
}

/// Confines the calling thread to those of these cores that the machine has.
///
/// # Errors
/// Errors of `sched_setaffinity(2)`.
pub fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Sets the policy (`libc::SCHED_*`) and priority of the calling thread.
///
/// # Errors
/// Errors of `sched_setscheduler(2)`.
pub fn set_scheduler(policy: i32, priority: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: a local structure, which the call only reads.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const param) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this process has one thread; `false` if the kernel does not report it.
pub fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Sets an environment variable if this process has no other thread that could read the environment
/// meanwhile. Returns whether it did.
pub fn set_env(name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> bool {
    let is_safe = is_single_threaded();
    if is_safe {
        // SAFETY: this is the only thread.
        unsafe { std::env::set_var(name, value) };
    }
    is_safe
}

/// Closes all descriptors above 2, which were inherited. Call it before this process opens any file: it would
/// close the file's descriptor under its owner.
pub fn close_inherited_fds() {
    let number =
        |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let open: Vec<i32> = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries.filter_map(number).collect(),
        // Without /proc, the usual range.
        Err(_) => (3..1024).collect(),
    };
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: by the contract above, this process owns none of the descriptors, and closing an unused
        // number is harmless.
        unsafe { libc::close(fd) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_env_changes_nothing_with_other_threads() {
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!set_env("RNET_TEST_SET_ENV", "1")));
        });
        assert_eq!(std::env::var_os("RNET_TEST_SET_ENV"), None);
    }

    #[test]
    fn child_settings_reach_the_program() {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -d"]);
        let settings = ChildSettings { data_limit_bytes: Some(1 << 30), ..Default::default() };
        settings.apply_to(&mut command);
        let output = command.output().unwrap();
        assert_eq!(output.stdout, b"1048576\n");
    }
}
