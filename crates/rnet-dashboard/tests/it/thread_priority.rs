//! Threads that observe have a lower priority than the nodes of a robot; threads that operate the robot do
//! not.

use crate::util;

use std::fs;
use std::time::Instant;

use serde_json::json;
use util::{HANG, Page, TestDomain, what};

/// `SCHED_OTHER` and `SCHED_BATCH`, and the nice value.
const NORMAL: (i32, i32) = (0, 0);
const BATCH: (i32, i32) = (3, 0);
const BATCH_NICE_19: (i32, i32) = (3, 19);

/// Policy and nice value of each thread with this name in this process.
fn threads(name: &str) -> Vec<(i32, i32)> {
    let of_task = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (before, rest) = stat.rsplit_once(") ")?;
        // From the third field of proc_pid_stat(5) on: the nice value is the 19th, the policy the 41st.
        let field = |number: usize| rest.split(' ').nth(number - 3)?.trim().parse().ok();
        (before.split_once('(')?.1 == name).then_some((field(41)?, field(19)?))
    };
    fs::read_dir("/proc/self/task").unwrap().flatten().filter_map(of_task).collect()
}

fn until(name: &str, count: usize) -> Vec<(i32, i32)> {
    let end = Instant::now() + HANG;
    loop {
        let found = threads(name);
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < end, "{name}: {found:?}");
        std::thread::sleep(std::time::Duration::from_millis(5)); // sleep: between two reads of /proc
    }
}

/// Tests may be started at a low priority, which a process keeps: this thread and what it starts run at the
/// normal one. Raising it needs a right.
fn raise_to_normal_priority(test: &str) -> bool {
    let raised = rustix::process::setpriority_process(None, 0).is_ok();
    if !raised {
        eprintln!(
            "NOT RUN: {test}: it was started at a low priority, which this user may not raise"
        );
    }
    raised
}

#[test]
fn only_observing_threads_have_lower_priority() {
    if !raise_to_normal_priority("only_observing_threads_have_lower_priority") {
        return;
    }
    let place = TestDomain::new();
    let arm = place.node("arm");
    arm.state().unwrap().set("/arm/angle", 1).unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    // The observing thread is the first that needs the node, for the state.
    let state = page.sub(what("state"));
    page.data(state, |data| data["entries"].as_array().filter(|all| !all.is_empty()).cloned());
    assert_eq!(until("rnet-dash-tick", 1), [BATCH_NICE_19]);
    assert_eq!(until("rnet-dash-read", 1), [BATCH]);
    // The thread of the arm, and that of the dashboard, with which commands are taken.
    assert_eq!(until("rnet-control", 2), [NORMAL; 2]);
    assert_eq!(until("rnet-dashboard", 1), [NORMAL]);
    // Changes are made by threads with normal priority, which exist by now.
    page.ask(json!({"op": "state.set", "key": "/arm/angle", "value": 2}));
    assert!(until("rnet-dash-job", 1).iter().all(|is| *is == NORMAL));
}
