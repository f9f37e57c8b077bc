//! Runs schedules with consecutive seeds, several at once, and collects their results.
//!
//! `PARTITIONS_SEED` is the first seed; `PARTITIONS` the number of schedules, and `PARTITIONS_AT_ONCE` how
//! many of them run at a time.

use std::io::Write;
use std::panic::RefUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Schedules at once, on as many cores: they sleep most of the time, and each is several hosts.
const AT_ONCE: usize = 4;
/// The limit for a healing on a machine that is not busy; slower ones are listed.
const ASKED: Duration = Duration::from_secs(2);
/// The limit for a healing in the soak. A greeting that the network has lost between two sessions is
/// sent again after 4 s (`ANNOUNCE_TIMEOUT`), once the connection exists, which takes up to `ASKED`;
/// docs/design/wire.md §8.
const PROMISED: Duration = Duration::from_secs(6);

/// The results of schedules.
#[derive(Default)]
pub struct Outcome {
    pub schedules: u64,
    pub received: u64,
    pub lost: u64,
    pub peer_lost: u64,
    /// For each healing: the time until every subscriber had a message that was sent after it.
    pub rejoined: Vec<Rejoined>,
}

/// A healing, and how long it took.
pub struct Rejoined {
    pub after: Duration,
    pub seed: u64,
    /// What was healed.
    pub cut: String,
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        self.schedules += other.schedules;
        self.received += other.received;
        self.lost += other.lost;
        self.peer_lost += other.peer_lost;
        self.rejoined.extend(other.rejoined);
    }

    /// The healing time at this quantile, in ms.
    fn ms_at(&self, share: f64) -> u128 {
        let last = self.rejoined.len().saturating_sub(1);
        self.rejoined.get((last as f64 * share) as usize).map_or(0, |of| of.after.as_millis())
    }

    fn later_than(&self, limit: Duration) -> Vec<String> {
        self.rejoined.iter().filter(|of| of.after > limit).map(Rejoined::line).collect()
    }

    fn summary(&mut self) -> String {
        self.rejoined.sort_by_key(|healing| healing.after);
        let Outcome { schedules, received, lost, peer_lost, rejoined } = &*self;
        let late = self.later_than(ASKED);
        let lines: String = late.iter().map(|line| format!("\n{line}")).collect();
        format!(
            "partitions: schedules={schedules} healings={} received={received} lost={lost} PeerLost={peer_lost}\n\
             partitions: all rejoined after healing: median={} ms p99={} ms max={} ms, later than {ASKED:?}: {}{lines}",
            rejoined.len(),
            self.ms_at(0.5),
            self.ms_at(0.99),
            self.ms_at(1.0),
            late.len(),
        )
    }

    /// Publishes how long healings took.
    fn publish(&self) {
        step_note(&format!(
            "{} healings of {} partition schedules: all heard again after {} ms in the median, {} ms at most",
            self.rejoined.len(),
            self.schedules,
            self.ms_at(0.5),
            self.ms_at(1.0),
        ));
    }

    /// Fails if one took longer than the limit. Only the soak calls this: beside all other tests a healing
    /// took 9 s on two slow cores.
    pub fn judge(&self) {
        let broken = self.later_than(PROMISED);
        assert!(broken.is_empty(), "not within {PROMISED:?}:\n{}", broken.join("\n"));
    }
}

impl Rejoined {
    fn line(&self) -> String {
        format!(
            "partitions: rejoined after {:?}: PARTITIONS_SEED={}, {}",
            self.after, self.seed, self.cut
        )
    }
}

/// The events of a schedule, which are shown if it fails.
pub struct EventLog {
    seed: u64,
    began: Instant,
    said: Vec<String>,
    /// The last awaited condition.
    pub last: String,
}

impl EventLog {
    pub fn new(seed: u64) -> Self {
        EventLog { seed, began: Instant::now(), said: Vec::new(), last: String::new() }
    }

    pub fn note(&mut self, what: &str) {
        self.said.push(format!("{} ms: {what}", self.began.elapsed().as_millis()));
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (said, last) = (self.said.join(", "), &self.last);
            eprintln!("PARTITIONS_SEED={} has failed: {said}; {last}", self.seed);
        }
    }
}

/// The number in this variable.
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Prints a line that the summary of `make` shows, bypassing the test harness, which captures the output of
/// passing tests.
pub fn step_note(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nstep-note: {what}");
}

/// Runs `PARTITIONS` schedules, or `count`.
pub fn run_all(count: u64, run: impl Fn(u64) -> Outcome + Sync + RefUnwindSafe) -> Outcome {
    let count = number("PARTITIONS").unwrap_or(count);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let first = number("PARTITIONS_SEED").unwrap_or(now.as_millis() as u64);
    let at_once = number("PARTITIONS_AT_ONCE").unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, |cores| cores.get().min(AT_ONCE)) as u64
    });
    println!("PARTITIONS_SEED={first} PARTITIONS={count}");
    let next = AtomicU64::new(0);
    let (outcomes, failed) = (Mutex::new(Outcome::default()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(count) {
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
    assert!(failed.is_empty(), "PARTITIONS=1 and one of PARTITIONS_SEED={failed:?} repeats it");
    assert!(outcome.received > 0);
    outcome.publish();
    outcome
}
