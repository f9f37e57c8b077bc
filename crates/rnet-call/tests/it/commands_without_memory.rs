//! If the process of a command receiver has no memory left, the fallback still runs and is reported.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::allocator::{IS_REFUSED, NONE_LEFT};
use common::{LONG, Net, eventually};
use rnet::FallbackReason;
use rnet::msgs::command_event::Kind;
use rnet::msgs::command_status::State;
use rnet::msgs::{CommandEvent, Twist};

/// A refused allocation aborts the process, so the test cannot pass by luck.
#[test]
fn fallback_runs_at_the_deadline_without_memory() {
    let net = Net::new("no_memory");
    let (base, hand) = (net.node("base"), net.node("hand"));
    let fell = Arc::new(AtomicU64::new(0));
    let count = fell.clone();
    let command = base
        .command::<Twist>("/cmd_vel")
        .deadline(Duration::from_millis(50))
        .fallback_handler(move |why| {
            count.fetch_add(u64::from(why == FallbackReason::Deadline), Ordering::SeqCst);
        })
        .apply(|_| IS_REFUSED.set(true))
        .unwrap();
    let audit = "/_rnet/command/cmd_vel/log";
    let mut audit = hand.subscriber::<CommandEvent>(audit).keep_all().open().unwrap();
    audit.wait_for_publishers_timeout(1, LONG).unwrap();
    let driver = hand.drive::<Twist>("/cmd_vel").lease(Duration::from_secs(600));
    let mut driver = driver.timeout(LONG).take().unwrap();
    for round in 1..=3 {
        let before = command.stats().applied;
        driver.send(&Twist::default()).unwrap();
        eventually("the command is applied", || command.stats().applied > before);
        NONE_LEFT.store(true, Ordering::SeqCst);
        eventually("the fallback ran", || fell.load(Ordering::SeqCst) == round);
        eventually("the fallback is reported", || command.status().state() == State::Fallback);
        // The driver still exists: one more command is applied, and another fallback follows.
        driver.send(&Twist::default()).unwrap();
        eventually("the command is applied", || command.stats().applied > before + 1);
        NONE_LEFT.store(false, Ordering::SeqCst);
        loop {
            let event = audit.recv_timeout(LONG).unwrap();
            if event.kind() == Kind::Fallback {
                assert!(event.text.contains("no command came"), "{}", event.text);
                assert_eq!(event.node, "/hand");
                break;
            }
        }
        eventually("the fallback ran again", || fell.load(Ordering::SeqCst) > round);
        fell.store(round, Ordering::SeqCst);
        while audit.try_recv().unwrap().is_some() {}
    }
}
