//! Commands between hosts: they are messages on topics and a service, and the link has no code for them.

use crate::common;
use crate::hosts;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::{Error, Node};

const TOPIC: &str = "/cmd";
/// So that no lease ends by itself.
const NEVER: Duration = Duration::from_secs(600);

/// Like Stop of the dashboard and `rnet command take` without a message: it has priority, sends nothing,
/// and does not end with its program or the cable.
fn stop(node: &Node) -> rnet::Result<rnet::Driver<[u8]>> {
    let stop = node.drive::<[u8]>(TOPIC).priority(100).lease(NEVER);
    stop.outlasts_driver(true).timeout(LONG).take()
}

fn take(node: &Node, priority: i32) -> rnet::Result<rnet::Driver<[u8]>> {
    node.drive::<[u8]>(TOPIC).priority(priority).lease(NEVER).timeout(LONG).take()
}

#[test]
fn remote_driver_is_obeyed_and_a_cut_cable_causes_the_fallback() {
    let hosts = Hosts::new("commands", 2);
    let (base, far, near) = (hosts.node(0, "base"), hosts.node(1, "far"), hosts.node(0, "near"));
    let applied = Arc::new(Mutex::new(Vec::new()));
    let wheels = applied.clone();
    let command = base.command::<[u8]>(TOPIC).deadline(NEVER).fallback(b"stop");
    let command = command.apply(move |bytes| wheels.lock().unwrap().push(bytes.to_vec())).unwrap();
    let last = || applied.lock().unwrap().last().cloned().unwrap_or_default();
    let mut driver = take(&far, 1).unwrap();
    driver.send(b"go").unwrap();
    eventually("it is applied", || last() == b"go");
    assert_eq!(command.status().holder, "@host1/far");
    // The fleet has one receiver and one driver.
    let second = far.command::<[u8]>(TOPIC).fallback(b"stop").apply(|_| {}).map(drop).unwrap_err();
    assert!(
        matches!(&second, Error::ReceiverExists { node, .. } if node == "@host0/base"),
        "{second}"
    );
    let refused = take(&near, 1).map(drop).unwrap_err();
    assert!(
        matches!(&refused, Error::NotInForce { why, .. } if why.contains("@host1/far")),
        "{refused}"
    );
    hosts.cut(0, 1);
    // Not by the deadline, which is far away: the host is known to be gone.
    eventually("it falls back", || last() == b"stop");
    eventually("no driver has authority", || command.status().holder.is_empty());
    eventually("the driver has lost its authority", || !driver.in_force());
    let mut here = take(&near, 1).unwrap();
    here.send(b"home").unwrap();
    eventually("a driver of this host is obeyed", || last() == b"home");
    hosts.heal(0, 1);
    // The old driver cannot send any more.
    assert!(driver.send(b"go").is_err());
    let mut driver = take(&far, 2).unwrap();
    driver.send(b"on").unwrap();
    eventually("a higher priority takes over", || last() == b"on");
    eventually("the driver of this host has lost its authority", || !here.in_force());
    drop(driver);
    eventually("the authority was released", || last() == b"stop");
    let expected: [&[u8]; 7] = [b"stop", b"go", b"stop", b"home", b"stop", b"on", b"stop"];
    assert_eq!(*applied.lock().unwrap(), expected);
}

#[test]
fn remote_stop_persists_after_its_cable_is_cut() {
    let hosts = Hosts::new("stop", 2);
    let (base, near, far) = (hosts.node(0, "base"), hosts.node(0, "near"), hosts.node(1, "far"));
    let applied = Arc::new(Mutex::new(Vec::new()));
    let wheels = applied.clone();
    let command = base.command::<[u8]>(TOPIC).deadline(Duration::from_secs(1)).fallback(b"stop");
    let command = command.apply(move |bytes| wheels.lock().unwrap().push(bytes.to_vec())).unwrap();
    let last = || applied.lock().unwrap().last().cloned().unwrap_or_default();
    let mut pilot = take(&near, 10).unwrap();
    pilot.send(b"go").unwrap();
    eventually("it is applied", || last() == b"go");
    let mut stopped = stop(&far).unwrap();
    assert_eq!(command.status().holder, "@host1/far");
    // The pilot learns of it with its next command, which is not applied.
    eventually("the pilot gets an error", || pilot.send(b"on").is_err());
    eventually("it falls back", || last() == b"stop");
    stopped.renew().unwrap();
    hosts.cut(0, 1);
    eventually("the host is known to be gone", || stopped.renew().is_err());
    // The authority of an ordinary driver would end here.
    let refused = take(&near, 10).map(drop).unwrap_err();
    assert!(
        matches!(&refused, Error::NotInForce { why, .. } if why.contains("@host1/far")),
        "{refused}"
    );
    hosts.heal(0, 1);
    // The client that stopped it gets its stop back at once, without a driver; another client of the same
    // priority does not.
    let mut stopped = stop(&far).unwrap();
    stopped.renew().unwrap();
    assert_eq!(command.status().holder, "@host1/far");
    let second = hosts.node(1, "second");
    let refused = stop(&second).map(drop).unwrap_err();
    assert!(
        matches!(&refused, Error::NotInForce { why, .. } if why.contains("@host1/far")),
        "{refused}"
    );
    // Until its lease is over, only `rnet command release` ends it, from any host.
    far.drive::<[u8]>(TOPIC)
        .above_all()
        .lease(NEVER)
        .timeout(LONG)
        .take()
        .unwrap()
        .release()
        .unwrap();
    let mut pilot = take(&near, 10).unwrap();
    pilot.send(b"home").unwrap();
    eventually("the pilot is obeyed again", || last() == b"home");
    assert!(!applied.lock().unwrap().contains(&b"on".to_vec()));
}
