//! Commands between hosts: when the cable is cut, the deadline of a receiver follows its own clock.

use crate::common;
use crate::hosts;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::msgs::command_status::State;
use rnet::{Command, Driver, Error, FallbackReason, Node};

const TOPIC: &str = "/cmd_vel";
/// So that no lease ends by itself.
const NEVER: Duration = Duration::from_secs(600);

enum ReceiverAction {
    Applied(u8, Instant),
    FellBack(FallbackReason, Instant),
}

fn receiver(node: &Node, deadline: Duration) -> (Command, mpsc::Receiver<ReceiverAction>) {
    let (did, done) = mpsc::channel();
    let fell = did.clone();
    let command = node
        .command::<[u8]>(TOPIC)
        .deadline(deadline)
        .fallback_handler(move |why| {
            fell.send(ReceiverAction::FellBack(why, Instant::now())).unwrap()
        })
        .apply(move |bytes| did.send(ReceiverAction::Applied(bytes[0], Instant::now())).unwrap())
        .unwrap();
    (command, done)
}

fn driver(node: &Node, priority: i32) -> Driver<[u8]> {
    node.drive(TOPIC).priority(priority).lease(NEVER).timeout(LONG).take().unwrap()
}

#[test]
fn cut_cable_causes_the_fallback() {
    const DEADLINE: Duration = Duration::from_millis(300);
    let hosts = Hosts::new("commands cut", 2);
    let (base, away) = (hosts.node(0, "base"), hosts.node(1, "hand"));
    let (command, did) = receiver(&base, DEADLINE);
    assert!(matches!(did.recv().unwrap(), ReceiverAction::FellBack(FallbackReason::Opened, _)));
    let mut far = driver(&away, 1);
    let mut applied = 0;
    while applied < 20 {
        far.send(&[1]).unwrap();
        std::thread::sleep(Duration::from_millis(5)); // sleep: the period of the commands
        applied += did.try_iter().filter(|did| matches!(did, ReceiverAction::Applied(..))).count();
    }
    hosts.cut(0, 1);
    let mut last = Instant::now();
    let (why, at) = loop {
        let _ = far.send(&[2]);
        match did.recv_timeout(Duration::from_millis(5)) {
            Ok(ReceiverAction::Applied(_, at)) => last = at,
            Ok(ReceiverAction::FellBack(why, at)) => break (why, at),
            Err(_) => {}
        }
    };
    assert_eq!(why, FallbackReason::Deadline);
    println!("{:?} after the last command that was applied", at - last);
    eventually("the lost host has no authority", || command.status().holder.is_empty());
    assert_eq!(command.status().state(), State::Fallback);
    eventually("the driver has lost its authority", || !far.in_force());
    hosts.heal(0, 1);
    assert!(far.send(&[3]).is_err(), "lost authority does not come back by itself");
    drop(far);
    let before = command.stats().applied;
    let mut again = driver(&away, 1);
    eventually("it drives again", || {
        again.send(&[4]).unwrap();
        command.stats().applied > before
    });
    while let Ok(did) = did.try_recv() {
        assert!(
            !matches!(did, ReceiverAction::Applied(2 | 3, _)),
            "an old command was applied after the cut"
        );
    }
}

#[test]
fn failed_renewal_ends_authority_with_the_lease() {
    let hosts = Hosts::new("renewed in vain", 2);
    let (base, away) = (hosts.node(0, "base"), hosts.node(1, "hand"));
    let (_command, did) = receiver(&base, Duration::from_secs(1));
    assert!(matches!(did.recv().unwrap(), ReceiverAction::FellBack(FallbackReason::Opened, _)));
    let lease = Duration::from_millis(100);
    let drive = away.drive::<[u8]>(TOPIC).priority(1).lease(lease);
    let mut far = drive.timeout(LONG).take().unwrap();
    hosts.cut(0, 1);
    // This may include a renewal that was answered right before the cut.
    let begun = Instant::now();
    let why = loop {
        match far.renew() {
            Ok(()) => assert!(begun.elapsed() < LONG, "the cable is cut"),
            Err(why) => break why,
        }
    };
    assert!(matches!(why, Error::NotInForce { .. }), "{why}");
    assert!(!far.in_force());
}

/// The stamp of the command shows its age; the link converts it to the clock of the receiver's host.
#[test]
fn command_in_flight_longer_than_the_deadline_is_late() {
    const DEADLINE: Duration = Duration::from_millis(200);
    let hosts = Hosts::patient("commands late", 2);
    let (base, away) = (hosts.node(0, "base"), hosts.node(1, "hand"));
    let (command, did) = receiver(&base, DEADLINE);
    let mut far = driver(&away, 1);
    eventually("it drives", || {
        far.send(&[1]).unwrap();
        did.try_iter().any(|did| matches!(did, ReceiverAction::Applied(1, _)))
    });
    eventually("the clocks were compared", || hosts.clock_uncertainty(0) < DEADLINE);
    hosts.settle();
    let before = command.stats().late;
    hosts.net().set_delay(3 * DEADLINE);
    far.send(&[2]).unwrap();
    eventually("it is counted", || command.stats().late > before);
    hosts.net().set_delay(Duration::ZERO);
    let mut applied = Vec::new();
    eventually("it drives again", || {
        far.send(&[3]).unwrap();
        let new = did.try_iter().filter_map(|did| match did {
            ReceiverAction::Applied(value, _) => Some(value),
            ReceiverAction::FellBack(..) => None,
        });
        applied.extend(new);
        applied.contains(&3)
    });
    assert!(!applied.contains(&2), "it was late");
}
