//! Recorders that run: how they tell that they are going ([`told`](mod@told)), and what they write, as the kernel shows it.
//!
//! A recorder takes no part in the domain, so nobody in it knows of one. But it holds a file among the domain's observers,
//! and its recording, for as long as it runs. The files of other users' processes are not seen.

mod told;

use std::fs;
use std::path::{Path, PathBuf};

pub use told::{CAUSES, Recorder, judge, told};

use crate::findings::Findings;
use crate::health;

const EXTENSION: &str = "mcap";
/// `O_WRONLY` or `O_RDWR`, in `proc_pid_fdinfo(5)`.
const WRITES: u32 = 0o3;

/// A recording that a process writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The process.
    pub pid: u32,
    /// The file.
    pub file: PathBuf,
}

/// The recordings that are written of the domain in this directory.
pub fn recordings(domain: &Path) -> Vec<Recording> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<Recording> = pids.flat_map(|pid| of_process(pid, domain)).collect();
    found.sort_by(|a, b| (a.pid, &a.file).cmp(&(b.pid, &b.file)));
    found.dedup();
    found
}

fn of_process(pid: u32, domain: &Path) -> Vec<Recording> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let open: Vec<(PathBuf, PathBuf)> = fs::read_dir(place.join("fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.path(), fs::read_link(entry.path()).ok()?)))
        .collect();
    let observers = domain.join("observers");
    if !open.iter().any(|(_, file)| file.starts_with(&observers)) {
        return Vec::new();
    }
    let is_written = |(fd, file): &&(PathBuf, PathBuf)| {
        file.extension().is_some_and(|extension| extension == EXTENSION)
            && fd.file_name().is_some_and(|fd| writes(&place.join("fdinfo").join(fd)))
    };
    open.iter().filter(is_written).map(|(_, file)| Recording { pid, file: file.clone() }).collect()
}

fn writes(fdinfo: &Path) -> bool {
    let info = fs::read_to_string(fdinfo).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|f| f & WRITES != 0)
}

/// What is known of each: how large it is, how much room it has, and what it has lost so far.
pub fn check(findings: &mut Findings, domain: &Path) {
    judge(findings, None, &told(domain), rnet::now_ns());
    for Recording { pid, file } in recordings(domain) {
        let what = format!("the recording that process {pid} writes, {}", file.display());
        match fs::metadata(&file) {
            Ok(there) => {
                findings.ok("recorder", format!("{what}: {} MiB so far", there.len() >> 20));
            }
            Err(error) => findings.problem(
                "recorder",
                format!("{what}, is not there any more: {error}"),
                "somebody has removed or moved it; end the recorder, and begin another recording",
            ),
        }
        if let Some(folder) = file.parent() {
            health::disk(findings, &format!("the recording of process {pid}"), folder);
        }
    }
}
