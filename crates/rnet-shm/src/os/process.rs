//! This process and its children: what `std` offers as unsafe functions only.

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
    /// The cores that it may run on; empty for those of its parent.
    pub cpus: Vec<usize>,
    /// Limit of its data memory, in bytes.
    pub data_limit_bytes: Option<u64>,
    /// Policy (`libc::SCHED_*`) and priority.
    pub scheduler: Option<(i32, i32)>,
}

impl ChildSettings {
    /// Has the child of `command` apply these. SIGKILL ends the child when its parent ends; a child whose
    /// parent has ended before executes nothing.
    pub fn apply_to(self, command: &mut Command) {
        let parent = getpid();
        // SAFETY: between fork and exec the child makes system calls and nothing else.
        unsafe { command.pre_exec(move || self.apply(parent)) };
    }

    /// Allocates nothing and takes no lock.
    fn apply(&self, parent: Pid) -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It was killed before the kernel was asked.
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

/// Confines the calling thread to these cores, as far as the machine has them.
///
/// # Errors
/// Those of `sched_setaffinity(2)`.
pub fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Gives the calling thread this policy (`libc::SCHED_*`) and priority.
///
/// # Errors
/// Those of `sched_setscheduler(2)`.
pub fn set_scheduler(policy: i32, priority: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: a structure of this function, which the call only reads.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const param) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this process has one thread; `false` where the kernel does not tell.
pub fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Sets a variable of the environment, if no other thread could read the environment meanwhile. Returns
/// whether it did.
pub fn set_env(name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> bool {
    let is_safe = is_single_threaded();
    if is_safe {
        // SAFETY: this is the only thread.
        unsafe { std::env::set_var(name, value) };
    }
    is_safe
}

/// Closes all descriptors above 2, which the starting process has left open. Call it before this process
/// opens anything: a descriptor of its own would be closed under its owner.
pub fn close_inherited_fds() {
    let number =
        |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let open: Vec<i32> = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries.filter_map(number).collect(),
        // Without /proc, the usual ones.
        Err(_) => (3..1024).collect(),
    };
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: by the contract above nothing of this process is behind the number, and closing a number
        // that is not open does no harm.
        unsafe { libc::close(fd) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_run_in_threads_so_the_environment_stays() {
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
