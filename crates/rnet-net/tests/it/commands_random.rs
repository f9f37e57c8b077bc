//! Drivers of three hosts, with random cuts of their cables: two drivers are never in force at the same
//! time.
//!
//! Each host has a driver that takes authority with a random priority, drives for a while, and releases it
//! or is dropped; the receiver is on one of these hosts. Cables are cut (also in one direction), reset,
//! healed and slowed at random. The test checks the receiver's own record: the order of the applied
//! commands, and that each pause contains a fallback.
//!
//! The hosts of one process have one clock. Random delays of the network replace wrong clocks: until the
//! next measurement, the offsets that convert stamps are wrong by up to half of the delay.
//!
//! `COMMANDS_SEED` and `COMMANDS` (the number of steps) repeat a run.

use crate::common;
use crate::drivers;
use crate::hosts;
use crate::random;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::eventually;
use drivers::{ReceiverAction, drive, judge};
use hosts::Hosts;
use random::Random;
use rnet::FallbackReason;

const HOSTS: usize = 3;
/// Unless `COMMANDS_SEED` specifies another one.
const SEED: u64 = 20_261_124;
/// How long it may take until the driver of each host is obeyed again.
const AGAIN: Duration = Duration::from_secs(200);
const DEADLINE: Duration = Duration::from_millis(50);
/// For a run on an overloaded machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Disturbs the cables; returns a description.
fn disturb(hosts: &Hosts, random: &mut Random) -> String {
    let a = random.below(HOSTS);
    let b = (a + 1 + random.below(HOSTS - 1)) % HOSTS;
    match random.below(10) {
        0 | 1 => {
            hosts.cut(a, b);
            format!("cut {a} {b}")
        }
        2 => {
            hosts.cut_one_way(a, b);
            format!("cut {a} to {b}")
        }
        3 => {
            hosts.reset(a, b);
            format!("reset {a} {b}")
        }
        4 => {
            let delay = random.ms(0..40);
            hosts.net().set_delay(delay);
            format!("delay {} ms", delay.as_millis())
        }
        5..=7 => {
            heal_all(hosts);
            "heal all".into()
        }
        _ => {
            hosts.heal(a, b);
            format!("heal {a} {b}")
        }
    }
}

fn heal_all(hosts: &Hosts) {
    for a in 0..HOSTS {
        (0..a).for_each(|b| hosts.heal(a, b));
    }
}

/// Ends the drivers, also if the test has failed.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The number in a variable such as `COMMANDS_SEED` or `COMMANDS`.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[test]
fn two_drivers_of_several_hosts_are_never_in_force_together() {
    let seed = number("COMMANDS_SEED").unwrap_or(SEED);
    let steps = number("COMMANDS").unwrap_or(60);
    println!("COMMANDS_SEED={seed} COMMANDS={steps}");
    let mut random = Random(seed);
    let hosts = Hosts::for_long("commands at random", HOSTS, LIMIT);
    let base = hosts.node(0, "base");
    let did = Arc::new(Mutex::new(Vec::new()));
    let (applies, falls) = (did.clone(), did.clone());
    let command = base
        .command::<[u8]>(drivers::TOPIC)
        .deadline(DEADLINE)
        .fallback_handler(move |why| falls.lock().unwrap().push(ReceiverAction::FellBack(why)))
        .apply(move |bytes| applies.lock().unwrap().push(ReceiverAction::applied(bytes)))
        .unwrap();
    let (ends, driven) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; HOSTS]);
    let nodes: Vec<_> = (0..HOSTS).map(|host| hosts.node(host, "driver")).collect();
    std::thread::scope(|scope| {
        let _ends = StopOnDrop(&ends);
        for (host, (node, driven)) in nodes.iter().zip(&driven).enumerate() {
            let (random, ends) = (Random(random.next()), &ends);
            scope.spawn(move || drive(node, host as u64, random, ends, driven));
        }
        for _ in 0..steps {
            let what = disturb(&hosts, &mut random);
            println!("{what}: {:?} granted", driven.each_ref().map(|n| n.load(Ordering::Relaxed)));
            std::thread::sleep(random.ms(0..150)); // sleep: they drive
        }
        heal_all(&hosts);
        hosts.net().set_delay(Duration::ZERO);
        // The driver of each host is obeyed once more, whatever happened before.
        let before = did.lock().unwrap().len();
        let drives_again = || {
            let did = did.lock().unwrap();
            let since = &did[before..];
            (0..HOSTS as u64).all(|host| {
                since
                    .iter()
                    .any(|did| matches!(did, ReceiverAction::Applied(_, [of, ..]) if *of == host))
            })
        };
        // Each has to win once against random priorities, and in time, which takes longer on a busy
        // machine.
        let until = Instant::now() + AGAIN;
        while !drives_again() {
            assert!(Instant::now() < until, "some hosts do not drive again");
            std::thread::sleep(Duration::from_millis(5)); // sleep: interval between two checks
        }
    });
    eventually("no driver has authority", || command.status().holder.is_empty());
    let stats = command.stats();
    drop(command);
    let did = did.lock().unwrap();
    let drivers = judge(&did, DEADLINE);
    println!("{} things done by {drivers} numbers; {stats:?}", did.len());
    assert!(drivers >= HOSTS, "{drivers} changes of drivers are too few for a result");
    assert!(matches!(did.first(), Some(ReceiverAction::FellBack(FallbackReason::Opened))));
    assert!(matches!(did.last(), Some(ReceiverAction::FellBack(_))), "{:?}", did.last());
}

/// Tests of the judge.
mod judged {
    use super::*;

    const MS: u64 = 1_000_000;

    fn applied(at_ms: u64, number: u64, count: u64) -> ReceiverAction {
        ReceiverAction::Applied(at_ms * MS, [number % 3, number, count])
    }

    #[test]
    fn pause_with_a_fallback_is_accepted() {
        let fell = ReceiverAction::FellBack(FallbackReason::Deadline);
        assert_eq!(judge(&[applied(0, 1, 0), fell, applied(500, 2, 0)], DEADLINE), 2);
        // It was recorded late, and a fallback follows it.
        assert_eq!(judge(&[applied(0, 1, 0), applied(500, 1, 1), fell], DEADLINE), 1);
    }

    #[test]
    #[should_panic(expected = "ns without a fallback")]
    fn pause_without_a_fallback_is_rejected() {
        judge(&[applied(0, 1, 0), applied(101, 1, 1), applied(102, 1, 2)], DEADLINE);
    }

    #[test]
    #[should_panic(expected = "an earlier driver")]
    fn earlier_driver_is_rejected() {
        judge(&[applied(0, 2, 0), applied(1, 1, 1)], DEADLINE);
    }

    #[test]
    #[should_panic(expected = "an earlier command")]
    fn command_applied_twice_is_rejected() {
        judge(&[applied(0, 1, 1), applied(1, 1, 1)], DEADLINE);
    }
}
