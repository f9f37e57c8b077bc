//! What a node requires of the machine: its program, its directory, its cores, its scheduler and its
//! memory.
//!
//! A file is valid or invalid on all hosts, and [`load`](crate::load) decides which. Whether a program
//! exists depends on the machine, and on the time: an earlier node may install it. So `rnet launch --check`
//! reports settings that do not fit the machine and fails, while the start and the reload of a launch
//! report them and continue. If the system refuses to start a node, its keeper checks once more, to report
//! the reason in terms of the file: the system reports only that something does not exist.

use std::collections::BTreeMap;
use std::env::split_paths;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rnet_shm::os::process::{set_affinity, set_scheduler};
use rustix::fs::{Access, access};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, CpuSet, capabilities, sched_getaffinity};

use crate::node::{Limits, Process, Scheduler};

/// The system's search path if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A setting that does not fit the machine.
#[derive(Debug, PartialEq, Eq)]
pub struct RequirementError {
    /// The key of the node.
    pub key: &'static str,
    /// What would fit, and what to do.
    pub expected: String,
    /// The value in the file.
    pub found: String,
}

/// The file of a program: a name with a '/' is relative to the directory of the node; any other is searched
/// in `PATH`.
pub fn program_path(word: &str, dir: &Path) -> PathBuf {
    if word.contains('/') { dir.join(word) } else { PathBuf::from(word) }
}

/// The settings of a process that do not fit this machine.
pub fn requirement_errors(process: &Process) -> Vec<RequirementError> {
    let dir = dir_reason(&process.dir).map(|expected| RequirementError {
        key: "dir",
        expected,
        found: format!("{:?}", process.dir.display().to_string()),
    });
    // Nothing exists below a missing directory.
    let is_below = process.command.first().is_some_and(|word| is_relative(word));
    let program = match dir.is_some() && is_below {
        true => None,
        false => program_error("command", &process.command, &process.dir, &process.env),
    };
    dir.into_iter().chain(program).chain(limit_errors(&process.limits)).collect()
}

/// Whether a program is relative to the directory of its node.
fn is_relative(word: &str) -> bool {
    word.contains('/') && !word.starts_with('/')
}

/// Checks that the program of a command exists and is executable.
pub fn program_error(
    key: &'static str,
    command: &[String],
    dir: &Path,
    env: &BTreeMap<String, String>,
) -> Option<RequirementError> {
    let word = command.first()?;
    let path = program_path(word, dir);
    let expected = match word.contains('/') {
        true => program_reason(&path)?,
        false => {
            let of_node = env.get("PATH").map(OsString::from);
            let dirs = of_node.or_else(|| std::env::var_os("PATH"));
            let dirs = dirs.unwrap_or_else(|| DEFAULT_PATH.into());
            let mut files = split_paths(&dirs).map(|below| dir.join(below).join(word));
            if files.any(|file| program_reason(&file).is_none()) {
                return None;
            }
            let dirs = dirs.to_string_lossy();
            format!(
                "a program in one of the PATH directories, {dirs} (install it, or give its full path)"
            )
        }
    };
    Some(RequirementError { key, expected, found: format!("{word:?}") })
}

fn program_reason(file: &Path) -> Option<String> {
    let shown = file.display();
    if file.is_dir() {
        return Some(format!("a program: {shown} is a directory"));
    }
    if !file.exists() {
        return Some(format!(
            "a program: {shown} does not exist (install it, or correct the path)"
        ));
    }
    access(file, Access::EXEC_OK).err().map(|_| {
        format!("a program: {shown} is not executable (chmod +x, or give its interpreter as the first element)")
    })
}

fn dir_reason(dir: &Path) -> Option<String> {
    if !dir.exists() {
        return Some("an existing directory (create it, or correct the path)".into());
    }
    if !dir.is_dir() {
        return Some("a directory, not a file".into());
    }
    let entered = access(dir, Access::EXEC_OK);
    entered.err().map(|_| "a directory that this user may enter (chmod, chown)".into())
}

fn limit_errors(limits: &Limits) -> Vec<RequirementError> {
    let mut errors = Vec::new();
    let cores = if limits.cpus.is_empty() { None } else { allowed_cpus() };
    if let Some(cores) = cores {
        let missing: Vec<usize> =
            limits.cpus.iter().copied().filter(|cpu| !cores.contains(cpu)).collect();
        if !missing.is_empty() {
            let expected = format!("cores that nodes may use on this machine, {}", ranges(&cores));
            errors.push(RequirementError { key: "cpus", expected, found: ranges(&missing) });
        }
    }
    let tried = scheduler_of(limits)
        .map(|(policy, priority)| in_thread(move || set_scheduler(policy, priority)));
    if let Some(Err(error)) = tried {
        let asked = Limits { cpus: Vec::new(), memory_limit_mib: None, ..limits.clone() };
        errors.push(RequirementError {
            key: "scheduler",
            expected: format!(
                "a scheduler that this user may use (see rnet doctor --realtime): {error}"
            ),
            found: asked.to_string(),
        });
    }
    let hard = getrlimit(Resource::Data).maximum;
    if let (Some(mib), Some(hard)) = (limits.memory_limit_mib, hard)
        && mib.saturating_mul(1 << 20) > hard
        && !capabilities(None).is_ok_and(|c| c.effective.contains(CapabilitySet::SYS_RESOURCE))
    {
        let mib_of_user = hard >> 20;
        let expected =
            format!("at most this user's limit, {mib_of_user} MiB (raise it: ulimit -H -d)");
        errors.push(RequirementError { key: "memory_limit_mib", expected, found: mib.to_string() });
    }
    errors
}

/// The cores that a process may choose here. A thread requests all possible cores, and the kernel keeps the
/// existing ones; `taskset` on this process does not bind a node.
fn allowed_cpus() -> Option<Vec<usize>> {
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).collect();
    let given = in_thread(|| {
        set_affinity(&all)?;
        Ok(sched_getaffinity(None)?)
    });
    let given = given.ok()?;
    Some(all.into_iter().filter(|cpu| given.is_set(*cpu)).collect())
}

/// Tries an operation that changes its thread in a separate thread.
fn in_thread<T: Send>(try_it: impl Fn() -> io::Result<T> + Sync) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, &try_it)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread has panicked")))
    })
}

/// Policy and priority of the limits, for the kernel.
pub fn scheduler_of(limits: &Limits) -> Option<(i32, i32)> {
    let scheduler = limits.scheduler?;
    let policy = match scheduler {
        Scheduler::Other => libc::SCHED_OTHER,
        Scheduler::Batch => libc::SCHED_BATCH,
        Scheduler::Idle => libc::SCHED_IDLE,
        Scheduler::Fifo => libc::SCHED_FIFO,
        Scheduler::Rr => libc::SCHED_RR,
    };
    Some((policy, if scheduler.is_real_time() { limits.priority } else { 0 }))
}

/// Sorted numbers, as `0-3,6`.
fn ranges(numbers: &[usize]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let groups = numbers.chunk_by(|one, next| one + 1 == *next);
    let shown: Vec<String> = groups
        .map(|group| match group {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    shown.join(",")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn numbers_are_formatted_as_ranges() {
        assert_eq!(ranges(&[3, 0, 1, 2, 6, 6]), "0-3,6");
        assert_eq!(ranges(&[1023]), "1023");
    }

    #[test]
    fn trial_in_a_thread_does_not_bind_its_process() {
        let before = sched_getaffinity(None).unwrap();
        let cores = allowed_cpus().unwrap();
        assert!((0..CpuSet::MAX_CPU).any(|cpu| before.is_set(cpu) && cores.contains(&cpu)));
        in_thread(|| set_affinity(&cores[..1])).unwrap();
        assert!(sched_getaffinity(None).unwrap() == before);
        assert!(in_thread(|| set_affinity(&[CpuSet::MAX_CPU - 1])).is_err());
    }

    #[test]
    fn program_is_searched_like_the_system_does() {
        let dir = std::env::temp_dir().join(format!("rnet-machine-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("bin")).unwrap();
        let arm = dir.join("bin/arm");
        std::fs::write(&arm, "#!/bin/sh\n").unwrap();
        let execute =
            |mode| std::fs::set_permissions(&arm, PermissionsExt::from_mode(mode)).unwrap();
        let mut env = BTreeMap::new();
        let is_fit = |env: &BTreeMap<_, _>, word: &str| {
            program_error("command", &[word.to_owned()], &dir, env).is_none()
        };
        execute(0o644);
        assert!(!is_fit(&env, "bin/arm") && !is_fit(&env, "./bin"));
        execute(0o755);
        assert!(is_fit(&env, "bin/arm") && is_fit(&env, arm.to_str().unwrap()));
        assert!(is_fit(&env, "sh") && !is_fit(&env, "arm"));
        // The node's own PATH counts, relative to the node's directory.
        env.insert("PATH".into(), "bin".into());
        assert!(is_fit(&env, "arm") && !is_fit(&env, "sh"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
