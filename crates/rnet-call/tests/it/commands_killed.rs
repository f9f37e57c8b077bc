//! Drivers and the receiver of a command are processes that are killed, stopped and restarted at random.
//!
//! The test checks the records that the receivers write as they act. Two drivers never have authority at
//! once. No command is applied twice or after a later one. A pause longer than the deadline contains a
//! fallback. The records hold the receiver's own times, so a slow machine neither hides nor causes a failure.
//!
//! `COMMANDS_SEED` and `COMMANDS` (number of steps) reproduce a run.

use crate::common;
use crate::random;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::process::Command as Program;
use std::time::{Duration, Instant};

use common::{Child, Net, eventually, role, tell};
use random::Random;
use rnet::{FallbackReason, Node};

const TOPIC: &str = "/cmd";
const DEADLINE: Duration = Duration::from_millis(20);
const DRIVERS: usize = 3;
/// Default of `COMMANDS_SEED`.
const SEED: u64 = 20_261_128;
/// Time until commands are applied again. The receiver rejects late commands, and on a busy machine many are
/// late.
const AGAIN: Duration = Duration::from_secs(100);
/// Time limit of the test on an overloaded machine.
const LIMIT: Duration = Duration::from_secs(300);
const RECORD: &str = "record";
const DRIVER_SEED: &str = "COMMANDS_DRIVER_SEED";

/// An action of a receiver, with its process.
#[derive(Clone, Debug, PartialEq)]
enum LoggedEvent {
    /// Time in ns of CLOCK_MONOTONIC. Then the driver's process, its authority number, and the index of the
    /// command under that number.
    Applied(u64, [u64; 3]),
    FellBack(String),
}

/// Writes one line atomically: a killed process leaves the whole line or nothing.
fn note(mut record: &File, what: &str) {
    let line = format!("{} {} {what}\n", std::process::id(), rnet::now_ns());
    record.write_all(line.as_bytes()).unwrap();
}

fn recorded(net: &Net) -> Vec<(u64, LoggedEvent)> {
    let text = std::fs::read_to_string(net.base().join(RECORD)).unwrap_or_default();
    let of = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let did = match words[2] {
            "applied" => LoggedEvent::Applied(number(1), [number(3), number(4), number(5)]),
            _ => LoggedEvent::FellBack(words[3].to_owned()),
        };
        (number(0), did)
    };
    text.lines().map(of).collect()
}

fn bytes(words: [u64; 3]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Applies commands until the parent ends it, or it is killed.
fn receive(net: &Net) {
    let orders = common::orders();
    let node = net.node(&format!("receiver_{}", std::process::id()));
    let path = net.base().join(RECORD);
    let record = File::options().create(true).append(true).open(path).unwrap();
    let falls = record.try_clone().unwrap();
    let fell = move |why: FallbackReason| note(&falls, &format!("fell {why:?}"));
    let apply = move |bytes: &[u8]| {
        let word = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
        note(&record, &format!("applied {} {} {}", word(0), word(1), word(2)));
    };
    let command = node.command::<[u8]>(TOPIC).deadline(DEADLINE);
    let command = command.fallback_handler(fell).apply(apply).unwrap();
    let _ = orders.recv();
    drop(command);
    tell("closed");
    let _ = orders.recv();
}

/// Drives repeatedly until the parent ends it, or it is killed.
fn drive(node: &Node, mut random: Random) -> ! {
    let pid = u64::from(std::process::id());
    loop {
        let (priority, lease) = (random.below(3) as i32, random.ms(20..200));
        let timeout = random.ms(1..500);
        let taken =
            node.drive::<[u8]>(TOPIC).priority(priority).lease(lease).timeout(timeout).take();
        let Ok(mut driver) = taken else {
            std::thread::sleep(random.ms(0..5)); // sleep: another driver has authority, or no receiver runs
            continue;
        };
        let number = driver.number();
        for count in 0..random.in_range(1..200) {
            if driver.send(&bytes([pid, number, count])).is_err() {
                break;
            }
            std::thread::sleep(random.ms(0..3)); // sleep: the period of the commands
        }
        if random.chance(1, 2) {
            let _ = driver.release();
        }
    }
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    match role.as_str() {
        "receiver" => receive(&net),
        "driver" => {
            let _orders = common::orders();
            let seed = std::env::var(DRIVER_SEED).unwrap().parse().unwrap();
            drive(&net.node(&format!("driver_{}", std::process::id())), Random(seed));
        }
        _ => panic!("unknown role: {role}"),
    }
}

fn start(net: &Net, role: &str, random: &mut Random) -> Child {
    let mut program = Program::new(std::env::current_exe().unwrap());
    program.env(DRIVER_SEED, random.next().to_string());
    Child::start(Child::order(program, net, role))
}

/// Checks the invariants over all records in order. Returns how many times authority changed, and the
/// fallback reasons.
fn judge(all: &[(u64, LoggedEvent)]) -> (usize, BTreeSet<String>) {
    let (mut receivers, mut of, mut why) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    let (mut last, mut last_number) = (None, 0);
    for (at, (receiver, did)) in all.iter().enumerate() {
        if receivers.last() != Some(receiver) {
            assert!(
                !receivers.contains(receiver),
                "two receivers at once: {:?}",
                &all[at - 1..=at]
            );
            assert_eq!(
                *did,
                LoggedEvent::FellBack("Opened".into()),
                "the first record of {receiver}"
            );
            receivers.push(*receiver);
        }
        match did {
            LoggedEvent::FellBack(reason) => {
                why.insert(reason.clone());
                last = None;
            }
            LoggedEvent::Applied(now_ns, now @ [driver, number, count]) => {
                let place = || format!("{:?}", &all[at.saturating_sub(3)..all.len().min(at + 3)]);
                let granted = of.entry(*number).or_insert((*driver, None));
                assert_eq!(granted.0, *driver, "{number} was granted to two: {}", place());
                assert!(*number >= last_number, "{now:?}: of an earlier driver: {}", place());
                let before: Option<u64> = granted.1.replace(*count);
                let is_later = before.is_none_or(|before| *count > before);
                assert!(is_later, "{now:?}: an earlier command: {}", place());
                // A command without a fallback arrived before the deadline. If its record is much later,
                // applying it took longer than the deadline, and a fallback follows.
                let pause_ns = last.map_or(0, |last_ns| now_ns - last_ns);
                if u128::from(pause_ns) > 2 * DEADLINE.as_nanos() {
                    let next = all.get(at + 1).filter(|(by, _)| by == receiver);
                    let is_safe =
                        next.is_none_or(|(_, did)| matches!(did, LoggedEvent::FellBack(_)));
                    assert!(is_safe, "{pause_ns} ns without a fallback: {}", place());
                }
                (last, last_number) = (Some(*now_ns), *number);
            }
        }
    }
    (of.len(), why)
}

/// The value of `COMMANDS_SEED` or `COMMANDS`.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[test]
fn killed_and_stopped_drivers_never_have_authority_at_once() {
    let seed = number("COMMANDS_SEED").unwrap_or(SEED);
    let steps = number("COMMANDS").unwrap_or(60);
    println!("COMMANDS_SEED={seed} COMMANDS={steps}");
    let mut random = Random(seed);
    let net = Net::for_long("commands killed at random", LIMIT);
    let mut receiver = start(&net, "receiver", &mut random);
    let mut drivers: Vec<Child> =
        (0..DRIVERS).map(|_| start(&net, "driver", &mut random)).collect();
    let is_applied = |since: usize| {
        recorded(&net)[since..].iter().any(|(_, did)| matches!(did, LoggedEvent::Applied(..)))
    };
    eventually("a driver has authority", || is_applied(0));
    let go_on = |drivers: &[Child], receiver: &Child| {
        drivers.iter().chain([receiver]).for_each(Child::resume);
        // After all failures, commands are applied again.
        let before = recorded(&net).len();
        let until = Instant::now() + AGAIN;
        while !is_applied(before) {
            let now = recorded(&net);
            assert!(Instant::now() < until, "no command was applied after {:?}", now.last());
            std::thread::sleep(Duration::from_millis(5)); // sleep: polling interval of a file
        }
    };
    let mut step = 0;
    // On a slow machine the test runs more steps until it has enough records.
    while step < steps || judge(&recorded(&net)).0 <= 2 * DRIVERS {
        let driver = random.below(DRIVERS);
        match random.below(9) {
            0 | 1 => drivers[driver].stop(),
            2 | 3 => {
                drivers[driver].kill();
                drivers[driver] = start(&net, "driver", &mut random);
            }
            4 => receiver.stop(),
            5 => {
                receiver.kill();
                receiver = start(&net, "receiver", &mut random);
            }
            _ => go_on(&drivers, &receiver),
        }
        std::thread::sleep(random.ms(0..100)); // sleep: the drivers run
        step += 1;
    }
    go_on(&drivers, &receiver);
    receiver.say("end");
    receiver.expect("closed");
    let all = recorded(&net);
    let (granted, why) = judge(&all);
    println!("{step} steps: {} records, of {granted} numbers; fallbacks: {why:?}", all.len());
    let is_of_a_death =
        |why: &String| ["DriverLost", "Deadline", "Expired"].contains(&why.as_str());
    assert!(why.iter().any(is_of_a_death), "no driver was lost: {why:?}");
    assert!(matches!(all.last(), Some((_, LoggedEvent::FellBack(_)))), "{:?}", all.last());
}

/// Checks that the invariant check detects violations.
#[test]
#[should_panic(expected = "ns without a fallback")]
fn invariant_check_detects_a_pause_without_fallback() {
    let applied = |ms: u64, count| (7, LoggedEvent::Applied(ms * 1_000_000, [1, 5, count]));
    let opened = (7, LoggedEvent::FellBack("Opened".into()));
    judge(&[opened, applied(1, 0), applied(100, 1), applied(101, 2)]);
}

#[test]
#[should_panic(expected = "of an earlier driver")]
fn invariant_check_detects_a_command_of_an_earlier_driver() {
    let applied = |ms: u64, number| (7, LoggedEvent::Applied(ms * 1_000_000, [number, number, ms]));
    let opened = (7, LoggedEvent::FellBack("Opened".into()));
    judge(&[opened, applied(1, 5), applied(2, 6), applied(3, 5)]);
}
