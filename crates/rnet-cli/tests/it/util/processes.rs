//! Leftovers of a command, and of the processes that it started.

use std::fs;
use std::time::{Duration, Instant};

use super::TestEnv;

/// Asserts that the test environment has no file, and that no process started in it remains.
#[track_caller]
pub fn assert_nothing_left(env: &TestEnv) {
    let left: Vec<_> = fs::read_dir(&env.dir).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let processes = processes_of(env);
    assert!(processes.is_empty(), "{processes:?}");
}

/// Processes other than this one whose environment names the test environment.
pub fn processes_of(env: &TestEnv) -> Vec<u32> {
    let setting = format!("RNET_DIR={}", env.dir.display()).into_bytes();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let started_here = |pid: &u32| {
        // The environment of an exited process is unreadable; a zombie has none.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|variable| variable == setting)
    };
    pids.filter(started_here).collect()
}

/// The workers of a running bench: its processes except the command itself.
pub fn workers_of(env: &TestEnv) -> Vec<u32> {
    let is_worker = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).any(|word| word == b"bench-worker")
    };
    processes_of(env).into_iter().filter(is_worker).collect()
}

/// Polls until the condition holds. The timeout is a guard against hangs.
#[track_caller]
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + super::TEST_TIMEOUT;
    while !so() {
        assert!(Instant::now() < end, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(5)); // sleep: polling interval
    }
}
