//! Drivers of three hosts whose monotonic clocks are hours apart, while cables are cut, processes are
//! stopped and killed, and a host reboots with another clock: two drivers are never in force at the same
//! time.
//!
//! Each host has a driver that takes authority with a random priority, drives for a while, and releases it
//! or is dropped; the receiver is on the first. The test checks the receiver's own record: the order of the
//! applied commands, and that each pause contains a fallback.
//!
//! `COMMANDS_SEED` and `COMMANDS` (the number of steps) repeat a run.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rnet::{FallbackReason, Node};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use super::driving::{self, ReceiverAction, TOPIC, judge};
use super::killed::{both, start_with};
use super::net::{Host, Net};
use super::partitions::partition;
use super::peer::{ACTOR_LIMIT, PORT, Peer, say};
use super::runs::number;
use crate::random::Random;

const HOSTS: usize = 3;
const STEPS: u64 = 24;
/// Unless `COMMANDS_SEED` specifies another one.
const SEED: u64 = 20_261_128;
const DEADLINE: Duration = Duration::from_millis(50);
/// The largest offset of a host's clock, in seconds: a day.
const MAX_AHEAD_S: u64 = 86_400;

/// The receiver. Prints when the driver of each host was obeyed after a request, and finally its record.
pub fn receive() {
    let node = Node::builder("base").open().unwrap();
    let did = Arc::new(Mutex::new(Vec::new()));
    let (applies, falls) = (did.clone(), did.clone());
    let command = node
        .command::<[u8]>(TOPIC)
        .deadline(DEADLINE)
        .fallback_handler(move |why| falls.lock().unwrap().push(ReceiverAction::FellBack(why)))
        .apply(move |bytes| applies.lock().unwrap().push(ReceiverAction::applied(bytes)))
        .unwrap();
    say("ready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        assert_eq!(line, "again");
        let (from, begun) = (did.lock().unwrap().len(), Instant::now());
        let obeyed = || -> BTreeSet<u64> {
            let did = did.lock().unwrap();
            let hosts = did[from..].iter().filter_map(|did| match did {
                ReceiverAction::Applied(_, [host, ..]) => Some(*host),
                ReceiverAction::FellBack(_) => None,
            });
            hosts.collect()
        };
        while obeyed().len() < HOSTS {
            assert!(begun.elapsed() < ACTOR_LIMIT, "only {:?} are obeyed again", obeyed());
            thread::sleep(Duration::from_millis(5)); // sleep: interval between two checks
        }
        say("again");
    }
    // The last driver has ended.
    while !matches!(did.lock().unwrap().last(), Some(ReceiverAction::FellBack(_))) {
        thread::sleep(Duration::from_millis(5)); // sleep: interval between two checks
    }
    let stats = command.stats();
    drop(command);
    let did = did.lock().unwrap();
    assert!(matches!(did.first(), Some(ReceiverAction::FellBack(FallbackReason::Opened))));
    say(&format!("judged {} {}: {stats:?}", judge(&did, DEADLINE), did.len()));
}

/// The driver of a host, until its input ends.
pub fn drive(host: &str, seed: &str) {
    let node = Node::builder("driver").open().unwrap();
    let (ends, driven) = (AtomicBool::new(false), AtomicU64::new(0));
    let (host, random) = (host.parse().unwrap(), Random(seed.parse().unwrap()));
    say(&format!("ready {}", clock_gettime(ClockId::Monotonic).tv_sec));
    say(&format!("process {}", std::process::id()));
    thread::scope(|scope| {
        scope.spawn(|| driving::drive(&node, host, random, &ends, &driven));
        let _ = std::io::read_to_string(std::io::stdin());
        ends.store(true, Ordering::Relaxed);
    });
    say("gone");
}

/// A host with the driver on it.
struct DriverHost {
    index: usize,
    host: Host,
    /// The link of a host stops with its last node.
    node: Peer,
    driver: Peer,
    process: i32,
}

impl DriverHost {
    fn start(index: usize, host: Host, connect: &str, random: &mut Random) -> DriverHost {
        let (node, (driver, process)) =
            (Peer::actor(&host, "listen"), driver(&host, index, random));
        link(&host, index, connect);
        DriverHost { index, host, node, driver, process }
    }

    fn begin(&mut self, random: &mut Random) {
        (self.driver, self.process) = driver(&self.host, self.index, random);
    }

    fn boot(&mut self, ahead_s: u32, connect: &str, random: &mut Random) {
        self.host.reboot();
        self.host.set_clock(ahead_s);
        self.node = Peer::actor(&self.host, "listen");
        self.begin(random);
        link(&self.host, self.index, connect);
    }
}

/// The driver of a host, and its process.
fn driver(host: &Host, index: usize, random: &mut Random) -> (Peer, i32) {
    let driver = Peer::actor(host, &format!("drive {index} {}", random.next()));
    let process = driver.wait("process", 1).0.parse().unwrap();
    (driver, process)
}

fn link(host: &Host, index: usize, connect: &str) {
    let listen = format!("tcp/0.0.0.0:{PORT}");
    let settings = [("RNET_LISTEN", listen.as_str()), ("RNET_CONNECT", connect)];
    start_with(host, &format!("host{index}"), settings);
}

/// Disturbs cables and processes, and undoes it; returns a description.
fn disturb(all: &mut [DriverHost], connect: &str, random: &mut Random) -> String {
    let at = random.below(HOSTS);
    match random.below(8) {
        0 => {
            let driving = &mut all[at];
            driving.host.signal(driving.process, Signal::KILL);
            thread::sleep(random.ms(0..100)); // sleep: how long it is gone
            driving.begin(random);
            format!("the driver of host{at} killed")
        }
        1 | 2 => {
            let driving = &all[at];
            driving.host.signal(driving.process, Signal::STOP);
            thread::sleep(random.ms(10..700)); // sleep: how long it is stopped
            driving.host.signal(driving.process, Signal::CONT);
            format!("the driver of host{at} stopped")
        }
        3 => {
            let link = both(&all[at].host)[0];
            all[at].host.signal(link, Signal::KILL);
            format!("the link of host{at} killed")
        }
        // Not the receiver's host, whose record is checked.
        4 if at > 0 => {
            let ahead_s = random.in_range(0..MAX_AHEAD_S) as u32;
            all[at].boot(ahead_s, connect, random);
            format!("host{at} has booted, with a clock that is {ahead_s} s ahead")
        }
        _ => {
            let hosts: Vec<&Host> = all.iter().map(|driving| &driving.host).collect();
            let what = partition(&hosts, random);
            thread::sleep(random.ms(10..2500)); // sleep: how long the network is cut
            hosts.iter().for_each(|host| host.heal());
            what
        }
    }
}

#[test]
fn two_drivers_of_hosts_with_different_clocks_are_never_in_force_together() {
    let test = "drivers::two_drivers_of_hosts_with_different_clocks_are_never_in_force_together";
    let Some(mut net) = Net::new(test) else { return };
    let seed = number("COMMANDS_SEED").unwrap_or(SEED);
    let steps = number("COMMANDS").unwrap_or(STEPS);
    println!("COMMANDS_SEED={seed} COMMANDS={steps}");
    let mut random = Random(seed);
    let hosts: Vec<Host> = (0..HOSTS).map(|_| net.host()).collect();
    let connect = format!("tcp/{}:{PORT}", hosts[0].address());
    let mut receiver = Peer::actor(&hosts[0], "receive_commands");
    let mut all: Vec<DriverHost> = Vec::new();
    for (index, host) in hosts.into_iter().enumerate() {
        let connect = if index > 0 { connect.as_str() } else { "" };
        all.push(DriverHost::start(index, host, connect, &mut random));
    }
    let clocks: Vec<u64> =
        all.iter().map(|of| of.driver.wait("ready", 1).0.parse().unwrap()).collect();
    assert!(clocks.windows(2).all(|two| two[1] >= two[0] + 4000), "{clocks:?}");
    receiver.tell("again");
    receiver.wait("again", 1);
    for step in 0..steps {
        println!("{step}: {}", disturb(&mut all, &connect, &mut random));
        thread::sleep(random.ms(0..400)); // sleep: they drive
    }
    receiver.tell("again");
    receiver.wait("again", 2);
    all.iter_mut().for_each(|driving| driving.driver.end_input());
    all.iter().for_each(|driving| drop(driving.driver.wait("gone", 1)));
    receiver.end_input();
    let judged = receiver.wait("judged", 1).0;
    println!("drivers, and what was done: {judged}");
    let drivers: usize = judged.split(' ').next().unwrap().parse().unwrap();
    assert!(drivers >= HOSTS, "{drivers} changes of drivers are too few for a result");
}
