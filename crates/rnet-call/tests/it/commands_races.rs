//! Commands: races between requests, leases, panics and forks.

use crate::common;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::bridge::ProxyPublisher;
use rnet::msgs::command_event::Kind;
use rnet::msgs::command_request::Action;
use rnet::msgs::{CommandEvent, CommandReply, CommandRequest, CommandStatus};
use rnet::{Command, Driver, Error, Node};

const TOPIC: &str = "/cmd";
const AUTHORITY: &str = "/cmd/authority";
const NEVER: Duration = Duration::from_secs(600);
const STATUS: &str = "/_rnet/command/cmd/status";

/// Command value: apply until the test releases the receiver.
const HOLD: u8 = u8::MAX;

/// A receiver that reports each command when it begins to apply it.
struct SlowReceiver {
    command: Command,
    begun: mpsc::Receiver<u8>,
    goes_on: mpsc::Sender<()>,
}

impl SlowReceiver {
    fn open(node: &Node) -> SlowReceiver {
        let (begins, begun) = mpsc::channel();
        let (goes_on, released) = mpsc::channel();
        let slow = move |bytes: &[u8]| {
            let byte = bytes.first().copied().unwrap_or_default();
            // The test may have ended.
            let _ = begins.send(byte);
            if byte == HOLD {
                let _ = released.recv();
            } else {
                std::thread::sleep(Duration::from_millis(u64::from(byte) * 10)); // sleep: simulates a slow apply
            }
        };
        let command = node.command::<[u8]>(TOPIC).deadline(NEVER).fallback_handler(|_| {});
        SlowReceiver { command: command.apply(slow).unwrap(), begun, goes_on }
    }

    /// Occupies the receiver with this command for `byte` times 10 ms, or until the test releases it. The
    /// command has begun when this returns, so that no request comes before it.
    fn occupy(&self, driver: &mut Driver<[u8]>, byte: u8) {
        for byte in [0, byte] {
            driver.send(&[byte]).unwrap();
            assert_eq!(self.begun.recv_timeout(LONG), Ok(byte));
        }
    }

    fn until_applied(&self) {
        eventually("the slow command is applied", || self.command.stats().applied == 2);
    }
}

/// A receiver that applies commands instantly.
fn receiver(node: &Node) -> Command {
    node.command::<[u8]>(TOPIC).deadline(NEVER).fallback_handler(|_| {}).apply(|_| {}).unwrap()
}

fn driver(node: &Node, priority: i32, lease: Duration) -> Driver<[u8]> {
    node.drive(TOPIC).priority(priority).lease(lease).timeout(LONG).take().unwrap()
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    match role.as_str() {
        // Has authority, but no publisher of commands.
        "taker" => {
            let node = net.node("taker");
            let client = node.client::<CommandRequest, CommandReply>(AUTHORITY).open().unwrap();
            let lease = Duration::from_secs(3600).as_nanos() as u64;
            let mut request = CommandRequest { priority: i32::MAX, lease, ..Default::default() };
            request.set_action(Action::Take);
            assert!(client.call_timeout(&request, LONG).unwrap().granted);
            tell("taken");
            let _ = orders.recv();
        }
        "receiver" => {
            let node = net.node("receiver");
            let _command = receiver(&node);
            tell("receives");
            let _ = orders.recv();
        }
        // Checks for each pause longer than its deadline that a fallback ran in it.
        "stopped" => {
            let node = net.node("receiver");
            #[derive(PartialEq)]
            enum Did {
                Applied(Instant),
                FellBack,
            }
            let did = Arc::new(Mutex::new(Vec::new()));
            let (applied, fell) = (did.clone(), did.clone());
            let command = node
                .command::<[u8]>(TOPIC)
                .deadline(Duration::from_millis(20))
                .fallback_handler(move |_| fell.lock().unwrap().push(Did::FellBack))
                .apply(move |_| applied.lock().unwrap().push(Did::Applied(Instant::now())))
                .unwrap();
            tell("receives");
            let _ = orders.recv();
            drop(command);
            let did = did.lock().unwrap();
            // A command that was stopped between receipt and `apply` is an overrun, which a fallback follows.
            let silent = did.windows(3).filter(|three| {
                matches!(three, [Did::Applied(a), Did::Applied(b), Did::Applied(_)]
                    if *b - *a > Duration::from_millis(60))
            });
            tell(&format!("silent {}", silent.count()));
        }
        _ => panic!("unknown role: {role}"),
    }
}

#[test]
fn refused_driver_has_no_authority_later() {
    let net = Net::new("commands-r-busy");
    let (base, low, high) = (net.node("base"), net.node("low"), net.node("high"));
    let slow = SlowReceiver::open(&base);
    let mut first = driver(&low, 1, NEVER);
    slow.occupy(&mut first, HOLD);
    let taken = high.drive::<[u8]>(TOPIC).priority(2).lease(NEVER).timeout(LONG).take().map(drop);
    let error = taken.unwrap_err();
    assert!(matches!(&error, Error::CallFailed { .. }), "{error}");
    slow.goes_on.send(()).unwrap();
    slow.until_applied();
    // The receiver answers requests in order, so the waiting ones have been answered.
    first.renew().unwrap();
    assert_eq!(slow.command.status().holder, "/low", "the driver that got `{error}` has authority");
    assert!(first.in_force());
}

#[test]
fn timed_out_driver_has_no_authority_later() {
    let net = Net::new("commands-r-gave-up");
    let (base, low, high) = (net.node("base"), net.node("low"), net.node("high"));
    let slow = SlowReceiver::open(&base);
    let mut first = driver(&low, 1, NEVER);
    // The endpoints are matched already, so that only the call takes time.
    let warm = high.drive::<[u8]>(TOPIC).priority(0).timeout(LONG).take().map(drop);
    assert!(warm.is_err());
    // Longer than the driver's wait plus the delivery of its release.
    slow.occupy(&mut first, 90);
    let limit = Duration::from_millis(300);
    let taken = high.drive::<[u8]>(TOPIC).priority(2).lease(NEVER).timeout(limit).take().map(drop);
    let error = taken.unwrap_err();
    assert!(matches!(&error, Error::Timeout { .. }), "{error}");
    slow.until_applied();
    // The receiver answers requests in order, so the waiting ones have been answered.
    first.renew().unwrap();
    assert_eq!(slow.command.status().holder, "/low", "the driver that got `{error}` has authority");
}

#[test]
fn authority_is_free_once_its_lease_has_passed_in_apply() {
    let net = Net::new("commands-r-passed");
    let (base, one, two) = (net.node("base"), net.node("one"), net.node("two"));
    let slow = SlowReceiver::open(&base);
    let mut first = driver(&one, 1, Duration::from_millis(200));
    slow.occupy(&mut first, 80);
    // The lease expires 200 ms after receipt, and the receiver answers after 800 ms.
    let taken = two.drive::<[u8]>(TOPIC).priority(1).lease(NEVER).timeout(LONG).take().map(drop);
    assert!(taken.is_ok(), "{}", taken.unwrap_err());
}

#[test]
fn a_lease_that_has_passed_is_not_renewed() {
    let net = Net::new("commands-r-renewed");
    let (base, one) = (net.node("base"), net.node("one"));
    let slow = SlowReceiver::open(&base);
    let mut first = driver(&one, 1, Duration::from_millis(200));
    slow.occupy(&mut first, 80);
    let renewed = first.renew();
    assert!(matches!(renewed, Err(Error::NotInForce { .. })), "{renewed:?}");
}

/// The receiver renews the lease right before it expires, and the answer arrives after the driver gave up.
/// The driver then releases authority by its number. Otherwise no driver could take it until the lease
/// expires again.
#[test]
fn late_renewal_is_followed_by_a_release() {
    let net = Net::new("commands-r-released");
    let (base, one) = (net.node("base"), net.node("one"));
    let lease = Duration::from_millis(100);
    let (asked, receiver) = std::sync::mpsc::channel();
    let authority = base.service::<CommandRequest, CommandReply>(AUTHORITY).at_once(2);
    let _authority = authority.serve(move |request| {
        asked.send((request.action(), request.number)).unwrap();
        if request.action() == Action::Renew {
            std::thread::sleep(2 * lease); // sleep: how late the answer is
        }
        Ok(CommandReply { granted: true, number: 7, ..Default::default() })
    });
    let status = base.publisher::<CommandStatus>(STATUS).urgent();
    let _status = status.reliable(rnet::OnFull::Refuse).transient_local(16).open().unwrap();
    let _commands = base.subscriber::<[u8]>(TOPIC).open().unwrap();
    let mut driver = driver(&one, 1, lease);
    let renewed = driver.renew();
    assert!(matches!(renewed, Err(Error::NotInForce { .. })), "{renewed:?}");
    let asked: Vec<_> = (0..3).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(asked, [(Action::Take, 0), (Action::Renew, 7), (Action::Release, 7)]);
    drop(driver);
    assert!(receiver.try_recv().is_err(), "authority was released once");
}

#[test]
fn authority_of_a_dead_process_is_free_although_it_never_sent() {
    let net = Net::new("commands-r-ghost");
    let base = net.node("base");
    let command = receiver(&base);
    let mut child = Child::spawn(&net, "taker");
    child.expect("taken");
    assert_eq!(command.status().holder, "/taker");
    child.kill();
    let began = Instant::now();
    while !command.status().holder.is_empty() && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(10)); // sleep: polling interval
    }
    assert_eq!(command.status().holder, "", "5 s after it was killed; its lease is an hour");
}

#[test]
fn a_driver_in_a_forked_child_is_closed() {
    let net = Net::new("commands-r-fork");
    let (base, hand) = (net.node("base"), net.node("hand"));
    let _command = receiver(&base);
    let mut driver = driver(&hand, 1, NEVER);
    // SAFETY: the child only calls the driver once and exits.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: `alarm` kills a child that does not return.
        unsafe { libc::alarm(5) };
        let code = i32::from(driver.in_force());
        // SAFETY: exits the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: our own child; the call writes the status.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "it did not return within 5 s: signal {status}");
    assert_eq!(libc::WEXITSTATUS(status), 0);
}

#[test]
fn a_panic_whose_payload_panics_does_not_end_the_thread() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("the payload panics, too");
            }
        }
    }
    let net = Net::new("commands-r-bomb");
    let (base, hand) = (net.node("base"), net.node("hand"));
    let command = base
        .command::<[u8]>(TOPIC)
        .deadline(NEVER)
        .fallback_handler(|_| {})
        .apply(|bytes| {
            if bytes == b"bomb" {
                std::panic::panic_any(Bomb);
            }
        })
        .unwrap();
    let mut driver = driver(&hand, 1, NEVER);
    driver.send(b"1").unwrap();
    eventually("the command is applied", || command.stats().applied == 1);
    driver.send(b"bomb").unwrap();
    // Each command is received before the next one is sent: the receiver applies only the newest of several.
    eventually("the handler has panicked", || command.stats().panics == 1);
    let began = Instant::now();
    while command.stats().applied == 1 && began.elapsed() < Duration::from_secs(5) {
        let _ = driver.send(b"2");
        std::thread::sleep(Duration::from_millis(10)); // sleep: the period of the commands
    }
    assert!(command.stats().applied > 1, "{:?}", command.stats());
}

#[test]
fn only_the_receiver_can_end_a_driver() {
    let net = Net::new("commands-r-other-status");
    let (base, hand, other) = (net.node("base"), net.node("hand"), net.node("other"));
    let command = receiver(&base);
    let mut driver = driver(&hand, 1, NEVER);
    // Simulates a second receiver that is killed while it opens.
    let mut status =
        other.publisher::<CommandStatus>(STATUS).urgent().transient_local(1).open().unwrap();
    status.wait_for_subscribers_timeout(1, LONG).unwrap();
    status.send(&CommandStatus::default()).unwrap();
    status.close_as_lost();
    let began = Instant::now();
    while driver.in_force() && began.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(10)); // sleep: polling interval
    }
    assert_eq!(command.status().holder, "/hand");
    let sent = driver.send(&[0]);
    assert!(sent.is_ok(), "the receiver applies its commands, and it got: {}", sent.unwrap_err());
}

#[test]
fn refusals_evict_no_grant_from_the_audit_trail() {
    let net = Net::new("commands-r-trail");
    let (base, hand, pest) = (net.node("base"), net.node("hand"), net.node("pest"));
    let _command = receiver(&base);
    let _driver = driver(&hand, 1, NEVER);
    let client = pest.client::<CommandRequest, CommandReply>(AUTHORITY).open().unwrap();
    let mut request = CommandRequest { lease: 1_000_000, ..Default::default() };
    request.set_action(Action::Take);
    (0..150).for_each(|_| assert!(!client.call_timeout(&request, LONG).unwrap().granted));
    let mut log = pest
        .subscriber::<CommandEvent>("/_rnet/command/cmd/log")
        .lane(rnet::Lane::Urgent)
        .transient_local()
        .keep_all()
        .open()
        .unwrap();
    log.wait_for_publishers_timeout(1, LONG).unwrap();
    let mut kinds = HashSet::new();
    while let Ok(event) = log.recv_timeout(Duration::from_secs(1)) {
        kinds.insert(event.kind());
    }
    assert!(kinds.contains(&Kind::Granted), "{kinds:?}");
}

#[test]
fn a_receiver_that_was_killed_is_followed_by_another_at_once() {
    let net = Net::new("commands-r-restart");
    let base = net.node("base");
    for turn in 0..20 {
        let mut child = Child::spawn(&net, "receiver");
        child.expect("receives");
        eventually("the receiver is found", || {
            let apply = base.command::<[u8]>(TOPIC).fallback_hold().apply(|_| {});
            matches!(apply.map(drop), Err(Error::ReceiverExists { .. }))
        });
        child.kill();
        let opened = base.command::<[u8]>(TOPIC).fallback_hold().apply(|_| {}).map(drop);
        assert!(opened.is_ok(), "turn {turn}: {}", opened.unwrap_err());
    }
}

#[test]
fn a_receiver_that_was_stopped_falls_back_before_it_goes_on() {
    let net = Net::new("commands-r-stopped");
    let hand = net.node("hand");
    let mut child = Child::spawn(&net, "stopped");
    child.expect("receives");
    let mut driver = driver(&hand, 1, NEVER);
    let (end, stopping) = (Instant::now() + Duration::from_secs(8), Duration::from_millis(70));
    let mut stops = 0;
    while Instant::now() < end {
        for _ in 0..(20 + stops % 13) {
            driver.send(&[0]).unwrap();
            let busy = Instant::now();
            while busy.elapsed() < Duration::from_micros(50) {}
        }
        child.stop();
        let until = Instant::now() + stopping;
        while Instant::now() < until {
            driver.send(&[0]).unwrap();
            std::thread::sleep(Duration::from_millis(1)); // sleep: the period of the commands
        }
        child.resume();
        stops += 1;
    }
    child.say("end");
    let said = child.hear();
    assert_eq!(said, "silent 0", "of {stops} stops");
}
