//! Detects whether a process is idle: all of its threads sleep at the same time.
//!
//! The kernel reports the state of one thread at a time, and meanwhile that thread may have woken another. So
//! all threads are checked twice. The context switch count of a thread grows with each of its sleeps. If no
//! count and no thread has changed, and all slept at both checks, then each slept throughout, and all slept
//! at the same time between the checks. A woken thread is runnable at once, however long it waits for a core.

use std::fs;
use std::io;

/// Result of a check of a process.
pub enum ProcessState {
    /// The process has exited.
    Exited,
    /// One of its threads, with this name, runs or waits for a disk.
    Running(String),
    /// All threads sleep; the id and the number of context switches of each.
    Sleeping(Vec<(u32, u64)>),
}

/// Checks each thread once.
pub fn inspect_process(pid: u32) -> io::Result<ProcessState> {
    let tasks = match fs::read_dir(format!("/proc/{pid}/task")) {
        Ok(tasks) => tasks,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ProcessState::Exited),
        Err(error) => return Err(error),
    };
    let mut threads = Vec::new();
    for task in tasks {
        let Ok(task) = task else { return Ok(ProcessState::Exited) };
        let Some(id) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A thread that has just exited was awake a moment ago.
        let Ok(status) = fs::read_to_string(task.path().join("status")) else {
            return Ok(ProcessState::Running("a thread that is exiting".to_owned()));
        };
        let thread = ThreadStatus::of(&status);
        match thread.state {
            'S' => threads.push((id, thread.switches)),
            'Z' | 'X' => return Ok(ProcessState::Exited),
            _ => return Ok(ProcessState::Running(thread.name.to_owned())),
        }
    }
    threads.sort_unstable();
    match threads.is_empty() {
        true => Ok(ProcessState::Exited),
        false => Ok(ProcessState::Sleeping(threads)),
    }
}

/// Fields of `/proc/PID/task/TID/status`.
struct ThreadStatus<'a> {
    name: &'a str,
    state: char,
    switches: u64,
}

impl ThreadStatus<'_> {
    fn of(status: &str) -> ThreadStatus<'_> {
        let mut thread = ThreadStatus { name: "", state: '?', switches: 0 };
        for (key, value) in status.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match key {
                "Name" => thread.name = value,
                "State" => thread.state = value.chars().next().unwrap_or('?'),
                "voluntary_ctxt_switches" | "nonvoluntary_ctxt_switches" => {
                    thread.switches += value.parse().unwrap_or(0);
                }
                _ => {}
            }
        }
        thread
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn distinguishes_working_process_from_waiting_one() {
        // The thread of this test is running.
        assert!(matches!(inspect_process(std::process::id()).unwrap(), ProcessState::Running(_)));
        let mut cat =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            // Idle from one check to the next.
            if let (ProcessState::Sleeping(a), ProcessState::Sleeping(b)) =
                (inspect_process(cat.id()).unwrap(), inspect_process(cat.id()).unwrap())
                && a == b
            {
                break;
            }
            assert!(Instant::now() < end, "cat waits for its input");
        }
        drop(cat.stdin.take());
        cat.wait().unwrap();
        assert!(matches!(inspect_process(cat.id()).unwrap(), ProcessState::Exited));
    }

    #[test]
    fn detects_sleep_between_two_checks() {
        let (sender, receiver) = mpsc::channel();
        let (work, has_work) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            sender.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
            while has_work.recv().is_ok() {
                sender.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
            }
        });
        let id = receiver.recv().unwrap();
        let switches = || {
            let path = format!("/proc/self/task/{id}/status");
            loop {
                let status = fs::read_to_string(&path).unwrap();
                let thread = ThreadStatus::of(&status);
                if thread.state == 'S' {
                    return thread.switches;
                }
            }
        };
        let before = switches();
        work.send(()).unwrap();
        receiver.recv().unwrap();
        assert!(switches() > before);
        drop(work);
        thread.join().unwrap();
    }
}
