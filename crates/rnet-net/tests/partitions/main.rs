//! Random partition schedules over several hosts of this process, which a network in memory joins.
//!
//! Each host has a best effort and a reliable publisher that number their messages, and subscribers to those of
//! others. A schedule cuts, resets and heals connections and changes links at random, and after each healing waits
//! until all subscribers get what is sent by then. At the end each has had its messages in order and once, and what
//! it has not had stands in its loss counters.
//!
//! `PARTITIONS_SEED` gives the first seed, of which the next ones count up; `PARTITIONS` how many there are.

#[path = "../../../rnet/tests/common/mod.rs"]
mod common;
#[path = "../hosts/mod.rs"]
mod hosts;
mod random;
mod schedule;
mod traffic;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use schedule::{Outcome, run};

/// Schedules at once: they sleep most of the time.
const AT_ONCE: u64 = 4;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

fn run_all(count: u64) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let first = number("PARTITIONS_SEED").unwrap_or(now.as_millis() as u64);
    println!("PARTITIONS_SEED={first} PARTITIONS={count}");
    let next = AtomicU64::new(0);
    let (outcomes, failed) = (Mutex::new(Outcome::default()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(count) {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .filter(|n| *n < count)
                    .map(|n| first + n)
                {
                    match std::panic::catch_unwind(|| run(seed)) {
                        Ok(outcome) => outcomes.lock().unwrap().add(outcome),
                        Err(_) => failed.lock().unwrap().push(seed),
                    }
                }
            });
        }
    });
    let (mut outcome, failed) = (outcomes.into_inner().unwrap(), failed.into_inner().unwrap());
    println!("{}", outcome.summary());
    assert!(failed.is_empty(), "PARTITIONS=1 and one of PARTITIONS_SEED={failed:?} shows it again");
    assert!(outcome.received > 0);
}

#[test]
fn a_few_schedules() {
    run_all(2);
}

#[test]
#[ignore = "for `make soak`: half an hour"]
fn soak() {
    run_all(number("PARTITIONS").unwrap_or(1000));
}
