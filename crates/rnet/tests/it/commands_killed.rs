//! Drivers and the receiver of a command are processes that are killed, stopped and started again at random.
//!
//! What is judged is what the receivers have written down of themselves, each thing as it was done: that no two drivers
//! are in force at once, that no command is applied twice or after a later one, and that a pause of the commands is never
//! longer than the deadline without a fallback in it. The times are those that the receiver has written down, so a
//! machine that is late proves nothing and breaks nothing.
//!
//! `COMMANDS_SEED` and `COMMANDS` (how many steps) run one again.

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
/// Unless `COMMANDS_SEED` says another one.
const SEED: u64 = 20_261_128;
/// How long it may take until somebody is obeyed again: commands that are late are not, and on a busy machine many are.
const AGAIN: Duration = Duration::from_secs(100);
/// For a run on a machine that does more than it can.
const LIMIT: Duration = Duration::from_secs(300);
const RECORD: &str = "record";
const DRIVER_SEED: &str = "COMMANDS_DRIVER_SEED";

/// What a receiver has done, and which process it was.
#[derive(Clone, Debug, PartialEq)]
enum LoggedEvent {
    /// When, in ns of CLOCK_MONOTONIC: the process of the driver, the number of its authority, and the how many-th command
    /// of that number it is.
    Applied(u64, [u64; 3]),
    FellBack(String),
}

/// Writes a line in one piece: a process that is killed leaves it or does not.
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

/// Applies commands until it is told to end, or killed.
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

/// Drives again and again, until its parent lets it end, or it is killed.
fn drive(node: &Node, mut random: Random) -> ! {
    let pid = u64::from(std::process::id());
    loop {
        let (priority, lease) = (random.below(3) as i32, random.ms(20..200));
        let timeout = Some(random.ms(1..500));
        let taken = node.drive::<[u8]>(TOPIC).priority(priority).lease(lease).take(timeout);
        let Ok(mut driver) = taken else {
            std::thread::sleep(random.ms(0..5)); // sleep: somebody else drives, or nobody receives
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
#[ignore = "played by the children of the other test"]
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
        _ => panic!("no such role: {role}"),
    }
}

fn start(net: &Net, role: &str, random: &mut Random) -> Child {
    let mut program = Program::new(std::env::current_exe().unwrap());
    program.env(DRIVER_SEED, random.next().to_string());
    Child::start(Child::order(program, net, role))
}

/// What must hold of all that was done, in its order: how many times authority has changed hands, and why receivers fell
/// back.
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
            assert_eq!(*did, LoggedEvent::FellBack("Opened".into()), "what {receiver} did first");
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
                // Without a fallback it came before the deadline. That it was written down so much later means that it
                // has taken longer than the deadline itself, which a fallback follows.
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

/// What `COMMANDS_SEED` and `COMMANDS` say.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn of_processes_that_are_killed_and_stopped_no_two_are_in_force() {
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
    eventually("somebody drives", || is_applied(0));
    let go_on = |drivers: &[Child], receiver: &Child| {
        drivers.iter().chain([receiver]).for_each(Child::resume);
        // Whatever was, somebody is obeyed again.
        let before = recorded(&net).len();
        let until = Instant::now() + AGAIN;
        while !is_applied(before) {
            let now = recorded(&net);
            assert!(Instant::now() < until, "nobody drives again after {:?}", now.last());
            std::thread::sleep(Duration::from_millis(5)); // sleep: between two looks at a file
        }
    };
    let mut step = 0;
    // A machine that is slow does more steps until it has seen enough.
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
        std::thread::sleep(random.ms(0..100)); // sleep: they drive
        step += 1;
    }
    go_on(&drivers, &receiver);
    receiver.say("end");
    receiver.expect("closed");
    let all = recorded(&net);
    let (granted, why) = judge(&all);
    println!("{step} steps: {} things done, of {granted} numbers; fallbacks: {why:?}", all.len());
    let is_of_a_death =
        |why: &String| ["DriverLost", "Deadline", "Expired"].contains(&why.as_str());
    assert!(why.iter().any(is_of_a_death), "no driver was missed: {why:?}");
    assert!(matches!(all.last(), Some((_, LoggedEvent::FellBack(_)))), "{:?}", all.last());
}

/// That the judge sees what it is there to see.
#[test]
#[should_panic(expected = "ns without a fallback")]
fn a_pause_without_a_fallback_is_seen() {
    let applied = |ms: u64, count| (7, LoggedEvent::Applied(ms * 1_000_000, [1, 5, count]));
    let opened = (7, LoggedEvent::FellBack("Opened".into()));
    judge(&[opened, applied(1, 0), applied(100, 1), applied(101, 2)]);
}

#[test]
#[should_panic(expected = "of an earlier driver")]
fn a_command_of_an_earlier_driver_is_seen() {
    let applied = |ms: u64, number| (7, LoggedEvent::Applied(ms * 1_000_000, [number, number, ms]));
    let opened = (7, LoggedEvent::FellBack("Opened".into()));
    judge(&[opened, applied(1, 5), applied(2, 6), applied(3, 5)]);
}
