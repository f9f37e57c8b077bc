//! Scheduling of the command receiver's thread.

use crate::common;

use std::sync::mpsc;

use common::{LONG, Net};
use rnet::Node;
use rnet::msgs::command_event::Kind;
use rnet::msgs::{CommandEvent, Twist};

const TOPIC: &str = "/cmd";

/// Text of the audit event for the opening.
fn opened_text(node: &Node) -> String {
    let log = format!("/_rnet/command{TOPIC}/log");
    let mut log = node
        .subscriber::<CommandEvent>(&log)
        .lane(rnet::Lane::Urgent)
        .transient_local()
        .keep_all()
        .open()
        .unwrap();
    loop {
        let event = log.recv_timeout(LONG).unwrap().into_message();
        if event.kind() == Kind::Opened {
            return event.text;
        }
    }
}

/// Scheduling policy of the calling thread.
fn policy() -> i32 {
    // SAFETY: the call queries only the calling thread.
    unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK }
}

/// Sets the scheduling policy of the calling thread. Returns whether the system permits it.
fn set_policy(policy: i32, priority: i32) -> bool {
    // SAFETY: `sched_param` is plain data; all zeros are a valid value.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority;
    // SAFETY: the call changes only the calling thread, and reads `param` only during the call.
    unsafe { libc::sched_setscheduler(0, policy, &param) == 0 }
}

#[test]
fn receiver_runs_in_real_time_or_reports_that_it_may_not() {
    let allowed = std::thread::spawn(|| set_policy(libc::SCHED_FIFO, 1)).join().unwrap();
    for opener in [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE] {
        let net = Net::new("urgent");
        let node = net.node("base");
        let (tell, receiver) = mpsc::channel();
        let opened = node.clone();
        // The receiver's threads inherit the policy of the thread that opens it.
        let command = std::thread::spawn(move || {
            assert!(set_policy(opener, 0));
            let opening = opened.command::<Twist>(TOPIC);
            opening.fallback_handler(move |_| tell.send(policy()).unwrap()).apply(|_| {}).unwrap()
        });
        let command = command.join().unwrap();
        let text = opened_text(&node);
        let runs_by = receiver.recv().unwrap();
        if allowed {
            assert_eq!((runs_by, text.as_str()), (libc::SCHED_FIFO, ""), "opened by {opener}");
        } else {
            assert_eq!(runs_by, opener);
            assert!(text.contains("rtprio"), "{text}");
        }
        drop(command);
    }
    if !allowed {
        common::not_run("it may not be scheduled in real time here");
    }
}
