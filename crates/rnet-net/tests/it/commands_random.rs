//! Drivers of three hosts, and cables that are cut at random: no two drivers are ever both in force.
//!
//! Each host has a driver that takes authority with a random priority, drives for a while, and gives it back or is
//! dropped; the receiver is on one of these hosts. Cables are cut, in one direction too, reset, healed and slowed
//! at random. What is judged is what the receiver writes down of itself: the order of what it applied, and that a
//! fallback is in each pause.
//!
//! The hosts of one process have one clock. What stands in for clocks that are wrong: the delay of the network
//! changes at random, so the offsets by which stamps are translated are wrong by up to half of it until they are
//! measured anew.
//!
//! `COMMANDS_SEED` and `COMMANDS` (how many steps) run one again.

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
/// Unless `COMMANDS_SEED` says another one.
const SEED: u64 = 20_261_124;
/// How long each host may take until its driver is obeyed again.
const AGAIN: Duration = Duration::from_secs(200);
const DEADLINE: Duration = Duration::from_millis(50);
/// For a run on a machine that does more than it can.
const LIMIT: Duration = Duration::from_secs(300);

/// Does something to the cables; says what.
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

/// Ends the drivers, also where the test has failed.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What `COMMANDS_SEED` and `COMMANDS` say.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn two_drivers_of_several_hosts_are_never_both_in_force() {
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
        // Each host's driver is obeyed once more, whatever was.
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
        // Each has to win once against random priorities, and to be in time: on a busy machine that takes its time.
        let until = Instant::now() + AGAIN;
        while !drives_again() {
            assert!(Instant::now() < until, "not each drives again");
            std::thread::sleep(Duration::from_millis(5)); // sleep: between two looks at a condition
        }
    });
    eventually("nobody drives", || command.status().holder.is_empty());
    let stats = command.stats();
    drop(command);
    let did = did.lock().unwrap();
    let drivers = judge(&did, DEADLINE);
    println!("{} things done by {drivers} numbers; {stats:?}", did.len());
    assert!(drivers >= HOSTS, "{drivers} changes of drivers are too few to say anything");
    assert!(matches!(did.first(), Some(ReceiverAction::FellBack(FallbackReason::Opened))));
    assert!(matches!(did.last(), Some(ReceiverAction::FellBack(_))), "{:?}", did.last());
}

/// What the judge is for.
mod judged {
    use super::*;

    const MS: u64 = 1_000_000;

    fn applied(at_ms: u64, number: u64, count: u64) -> ReceiverAction {
        ReceiverAction::Applied(at_ms * MS, [number % 3, number, count])
    }

    #[test]
    fn a_pause_with_a_fallback_is_safe() {
        let fell = ReceiverAction::FellBack(FallbackReason::Deadline);
        assert_eq!(judge(&[applied(0, 1, 0), fell, applied(500, 2, 0)], DEADLINE), 2);
        // It was written down late, and a fallback follows it.
        assert_eq!(judge(&[applied(0, 1, 0), applied(500, 1, 1), fell], DEADLINE), 1);
    }

    #[test]
    #[should_panic(expected = "ns without a fallback")]
    fn a_pause_without_a_fallback_is_found() {
        judge(&[applied(0, 1, 0), applied(101, 1, 1), applied(102, 1, 2)], DEADLINE);
    }

    #[test]
    #[should_panic(expected = "an earlier driver")]
    fn an_earlier_driver_is_found() {
        judge(&[applied(0, 2, 0), applied(1, 1, 1)], DEADLINE);
    }

    #[test]
    #[should_panic(expected = "an earlier command")]
    fn a_command_that_is_applied_twice_is_found() {
        judge(&[applied(0, 1, 1), applied(1, 1, 1)], DEADLINE);
    }
}
