//! What the system has run out of, by name: which limit it is, how high, and what to do.
//!
//! Everything here is off the message path, and careful with the very thing that is short: it
//! reads files through a buffer on the stack, and does without those that cannot be opened.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rnet_core::Error;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

pub use crate::os::files::io_error;

/// Memory maps that may be missing from the count: other threads come and go meanwhile.
const MAPS_SLACK: usize = 16;

/// Whether an error says that something is short for now, so that trying again later makes sense.
pub fn is_transient(error: &Error) -> bool {
    matches!(error, Error::OutOfMemory { .. } | Error::LimitReached { .. })
}

/// The error for `errno` if it says that the system ran out of something: of what, for whom
/// (`topic`, or the file where there is none), and how many bytes it was to be.
pub fn error_for(
    doing: &str,
    path: &Path,
    topic: Option<&str>,
    needed_bytes: u64,
    errno: Errno,
) -> Option<Error> {
    let place = format!("{doing} {}", path.display());
    match errno {
        Errno::MFILE => Some(Error::LimitReached {
            what: format!("open files in this process ({place})"),
            limit: limit_of(Resource::Nofile).map_or(0, |n| n as usize),
            hint: "raise `ulimit -n` (RLIMIT_NOFILE), or close some".to_owned(),
        }),
        Errno::NFILE => Some(Error::LimitReached {
            what: format!("open files on this machine ({place})"),
            // Who may open no file cannot look up how many the machine allows.
            limit: number_in("/proc/sys/fs/file-max").unwrap_or(0),
            hint: "raise fs.file-max (sysctl fs.file-max shows it), or stop the processes that hold them"
                .to_owned(),
        }),
        Errno::NOSPC | Errno::DQUOT => Some(no_space(&place, path, topic, needed_bytes, errno)),
        Errno::NOMEM => Some(no_memory(&place, path, topic, needed_bytes)),
        _ => None,
    }
}

fn who(path: &Path, topic: Option<&str>) -> String {
    topic.map_or_else(|| path.display().to_string(), str::to_owned)
}

fn no_space(
    place: &str,
    path: &Path,
    topic: Option<&str>,
    needed_bytes: u64,
    errno: Errno,
) -> Error {
    // The file itself may not have come into being.
    let there = path.ancestors().find_map(|path| rustix::fs::statvfs(path).ok());
    let (total, free, files, files_free) = there.map_or((0, 0, 0, 0), |s| {
        (s.f_blocks * s.f_frsize, s.f_bavail * s.f_frsize, s.f_files, s.f_ffree)
    });
    if errno == Errno::NOSPC && files > 0 && files_free == 0 {
        return Error::LimitReached {
            what: format!("files on this file system ({place})"),
            limit: files as usize,
            hint: "remove some, mount it with a larger nr_inodes, or set RNET_DIR to another tmpfs"
                .to_owned(),
        };
    }
    let why = if errno == Errno::DQUOT {
        let user = rustix::process::geteuid().as_raw();
        format!("{place}: the quota of user {user} is used up; remove files or raise the quota")
    } else {
        format!(
            "{place}: its file system is full ({free} of {total} bytes free); remove files from it \
             or set RNET_DIR to a larger tmpfs"
        )
    };
    Error::OutOfMemory { topic: who(path, topic), needed_bytes, limit_bytes: total, why }
}

fn no_memory(place: &str, path: &Path, topic: Option<&str>, needed_bytes: u64) -> Error {
    let most = number_in("/proc/sys/vm/max_map_count");
    if let Some(limit) = most.filter(|most| maps_of_this_process() + MAPS_SLACK >= *most) {
        return Error::LimitReached {
            what: format!("memory maps in this process ({place})"),
            limit,
            hint:
                "raise vm.max_map_count (sysctl), or use fewer publishers, subscribers and large \
                   messages in one process"
                    .to_owned(),
        };
    }
    let (limit_bytes, why) = match limit_of(Resource::As) {
        Some(limit) => (
            limit,
            format!("{place}: the address space of this process is limited; raise `ulimit -v`"),
        ),
        None => (
            group_file("memory.max").and_then(number_in).or_else(memory_of_machine).unwrap_or(0)
                as u64,
            format!(
                "{place}: the machine, or this process's control group, has no memory left; free \
                 memory or raise memory.max"
            ),
        ),
    };
    Error::OutOfMemory { topic: who(path, topic), needed_bytes, limit_bytes, why }
}

/// The error for a thread that could not be started.
pub fn no_thread(name: &str, source: &std::io::Error) -> Error {
    if source.raw_os_error() != Some(Errno::AGAIN.raw_os_error()) {
        return Error::io("cannot start the thread", name, source);
    }
    // Which of the limits it was, the system does not say. That of the user does not hold for root.
    let user = rustix::process::geteuid();
    let of_user = limit_of(Resource::Nproc).filter(|_| !user.is_root()).map(|n| n as usize);
    let of_group = group_file("pids.max").and_then(number_in);
    let of_machine = number_in("/proc/sys/kernel/threads-max");
    let limit = of_user.into_iter().chain(of_group).chain(of_machine).min();
    Error::LimitReached {
        what: format!("threads of user {} (cannot start {name})", user.as_raw()),
        limit: limit.unwrap_or(0),
        hint: "raise `ulimit -u` (RLIMIT_NPROC), pids.max of the control group or container, or \
               `ulimit -v` if it is set; or stop some threads"
            .to_owned(),
    }
}

fn limit_of(resource: Resource) -> Option<u64> {
    getrlimit(resource).current
}

/// A file of this process's control group (version 2).
fn group_file(name: &str) -> Option<PathBuf> {
    let mut buf = [0u8; 1024];
    let text = head_of("/proc/self/cgroup", &mut buf)?;
    let group = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new("/sys/fs/cgroup").join(group).join(name))
}

fn number_in(path: impl AsRef<Path>) -> Option<usize> {
    let mut buf = [0u8; 64];
    head_of(path, &mut buf)?.trim().parse().ok()
}

fn head_of(path: impl AsRef<Path>, buf: &mut [u8]) -> Option<&str> {
    let len = File::open(path).and_then(|mut file| file.read(buf)).ok()?;
    std::str::from_utf8(buf.get(..len)?).ok()
}

fn memory_of_machine() -> Option<usize> {
    let mut buf = [0u8; 256];
    let text = head_of("/proc/meminfo", &mut buf)?;
    let kib: usize = text.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

fn maps_of_this_process() -> usize {
    let Ok(mut file) = File::open("/proc/self/maps") else { return 0 };
    let (mut buf, mut lines) = ([0u8; 4096], 0);
    while let Ok(len @ 1..) = file.read(&mut buf) {
        lines += buf[..len].iter().filter(|byte| **byte == b'\n').count();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shortage_names_its_limit_and_what_to_do() {
        let path = Path::new("/dev/shm/of-nobody/p1");
        let text = |errno| {
            error_for("cannot create", path, Some("/t"), 4096, errno).map(|e| e.to_string())
        };
        let has = |errno, words: &[&str]| {
            let text = text(errno).unwrap();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        };
        has(Errno::MFILE, &["open files in this process", "ulimit -n", "cannot create"]);
        has(Errno::NFILE, &["open files on this machine", "fs.file-max"]);
        has(Errno::NOSPC, &["/t", "4096 bytes needed", "RNET_DIR", "bytes free"]);
        has(Errno::DQUOT, &["/t", "quota of user"]);
        has(Errno::NOMEM, &["/t", "cannot create /dev/shm/of-nobody/p1"]);
        assert!(memory_of_machine() > Some(1 << 20));
        assert_eq!(text(Errno::NOENT), None);
        assert!(maps_of_this_process() > MAPS_SLACK);
        let again = std::io::Error::from_raw_os_error(Errno::AGAIN.raw_os_error());
        let error = no_thread("rnet-bulk", &again);
        assert!(matches!(error, Error::LimitReached { limit: 1.., .. }), "{error}");
    }
}
