//! The surviving readers: one thread each, which checks every message and counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet::{Error, MatchEvent, Node, OwnedSample, Subscriber, Wait};

use crate::message;

/// Samples that a holding reader keeps at a time.
const HELD: usize = 4;
/// A reader that receives nothing for this long updates its counts.
const QUIET: Duration = Duration::from_millis(2);

/// How a reader reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every message.
    Reliable,
    /// Every message, beginning with those kept for late subscribers.
    Latched,
    /// The messages that it receives.
    BestEffort,
    /// Every message, and keeps the last few samples.
    Holding,
    /// Only the newest.
    Latest,
}

/// What a reader has received from one publisher.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublisherProgress {
    /// Messages received.
    pub received: u64,
    /// The number of the next message.
    pub next: u64,
    /// Lost messages by the subscriber's own count; `None` until the channel has it.
    pub lost: Option<u64>,
}

#[derive(Debug, Default)]
struct ReaderLog {
    heard: HashMap<u64, PublisherProgress>,
    received: u64,
    /// Losses of all publishers together.
    lost: u64,
    /// The match and loss events, by publisher, for debugging.
    events: HashMap<u64, Vec<String>>,
    /// The subscriber's own statistics for each publisher, also for debugging.
    rows: HashMap<u64, String>,
}

/// A surviving reader.
#[derive(Debug)]
pub struct Reader {
    /// The topic and the kind of reader.
    pub what: String,
    /// How it reads.
    pub kind: Kind,
    /// Whether its publishers are victims.
    pub of_victims: bool,
    log: Arc<Mutex<ReaderLog>>,
    progress: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Receives the readers' reports of violations.
pub type ReportViolation = Arc<dyn Fn(String) + Send + Sync>;

impl Reader {
    /// Subscribes, and reads until dropped.
    pub fn start(
        node: &Node,
        topic: &str,
        kind: Kind,
        report: ReportViolation,
    ) -> Result<Reader, Error> {
        let builder = node.subscriber::<[u8]>(topic).wait(Wait::Block);
        let builder = match kind {
            Kind::Reliable | Kind::Holding => builder.reliable(),
            Kind::Latched => builder.reliable().transient_local(),
            Kind::BestEffort | Kind::Latest => builder.keep_all(),
        };
        let subscriber = builder.open()?;
        let (log, progress, stop) =
            <(Arc<Mutex<ReaderLog>>, Arc<AtomicU64>, Arc<AtomicBool>)>::default();
        let what = format!("{topic} ({kind:?})");
        let of_victims = topic.starts_with("/v/");
        let (log_of, began) = (log.clone(), Instant::now());
        subscriber
            .on_match(move |event| {
                let publisher = match event {
                    MatchEvent::Matched(p) | MatchEvent::Unmatched(p) | MatchEvent::Lost(p) => p.id,
                    _ => 0,
                };
                let mut log = log_of.lock().unwrap_or_else(PoisonError::into_inner);
                let events = log.events.entry(publisher).or_default();
                events.push(format!("{:?} after the start: {event:?}", began.elapsed()));
            })
            .detach();
        let mut run = Run {
            kind,
            of_victims,
            what: what.clone(),
            subscriber,
            log: log.clone(),
            progress: progress.clone(),
            report,
            held: Vec::new(),
            stale: true,
            quiet: 0,
            missed: 0,
        };
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                run.step();
            }
        });
        Ok(Reader { what, kind, of_victims, log, progress, stop, thread: Some(thread) })
    }

    /// What it has received from one publisher.
    pub fn heard(&self, publisher: u64) -> PublisherProgress {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.heard.get(&publisher).copied().unwrap_or_default()
    }

    /// The events of one publisher.
    pub fn events(&self, publisher: u64) -> Vec<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = log.events.get(&publisher).cloned().unwrap_or_default();
        events.push(log.rows.get(&publisher).map_or("no account".to_owned(), String::clone));
        events
    }

    /// Messages received and lost of all publishers together.
    pub fn sums(&self) -> (u64, u64) {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        (log.received, log.lost)
    }

    /// Removes the publishers but keeps the sums; survivors continue from their positions.
    pub fn forget(&self) {
        if !self.of_victims {
            return;
        }
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.heard.clear();
        log.events.clear();
        log.rows.clear();
    }

    /// Grows with each message and each pause.
    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Run {
    kind: Kind,
    of_victims: bool,
    what: String,
    subscriber: Subscriber<[u8]>,
    log: Arc<Mutex<ReaderLog>>,
    progress: Arc<AtomicU64>,
    report: ReportViolation,
    held: Vec<OwnedSample<[u8]>>,
    /// Whether a message has come since the last update of the counts.
    stale: bool,
    /// How often it received nothing.
    quiet: u64,
    /// Skipped messages of a survivor: those before a received one.
    missed: u64,
}

impl Run {
    fn step(&mut self) {
        let got = if self.kind == Kind::Latest {
            self.subscriber.latest_timeout(QUIET)
        } else {
            self.subscriber.recv_timeout(QUIET).map(rnet::Sample::into_owned)
        };
        match got {
            Ok(sample) => {
                self.stale = true;
                self.take(&sample);
                if self.kind == Kind::Holding {
                    self.held.push(sample);
                    if self.held.len() > HELD {
                        let oldest = self.held.remove(0);
                        self.let_go(&oldest);
                    }
                }
                self.progress.fetch_add(1, Ordering::Relaxed);
            }
            Err(Error::Timeout { .. }) => {
                for sample in std::mem::take(&mut self.held) {
                    self.let_go(&sample);
                }
                self.quiet = self.quiet.wrapping_add(1);
                // At intervals also without a message: large ones may all be lost with their publisher.
                if std::mem::take(&mut self.stale) || self.quiet.is_multiple_of(16) {
                    self.add_up();
                }
            }
            // Survivors do not die, and only one of the streams must not be blocked.
            Err(Error::PeerLost { .. }) if self.of_victims => self.add_up(),
            Err(Error::Detached { .. }) if self.may_be_detached() => self.add_up(),
            Err(error) => (self.report)(format!("{}: {error}", self.what)),
        }
    }

    /// A held sample must not have changed meanwhile, even if its publisher was killed.
    fn let_go(&self, sample: &OwnedSample<[u8]>) {
        if let Err(why) = message::check(sample) {
            (self.report)(format!("{}: a held sample changed: {why}", self.what));
        }
    }

    fn may_be_detached(&self) -> bool {
        self.what.starts_with("/k/detach")
    }

    fn next_of(&self, publisher: u64) -> u64 {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.heard.get(&publisher).map_or(0, |heard| heard.next)
    }

    /// What is wrong if message `seq` of a survivor arrives while `next` is expected.
    fn left_out(&mut self, next: u64, seq: u64) -> Option<String> {
        let lost = self.subscriber.lost().total();
        let gap = seq.saturating_sub(next);
        self.missed += gap;
        let may_lose = self.kind == Kind::BestEffort || self.may_be_detached();
        if gap > 0 && !may_lose {
            return Some(format!("message {seq} came when {next} was next, to a reliable reader"));
        }
        let missed = self.missed;
        (lost != missed).then(|| {
            // Reported once.
            self.missed = lost;
            format!("before message {seq}, {missed} were left out and {lost} are counted as lost")
        })
    }

    fn take(&mut self, sample: &OwnedSample<[u8]>) {
        let (publisher, seq) = (sample.publisher(), sample.seq());
        if !self.of_victims
            && let next = self.next_of(publisher)
            && let Some(wrong) = self.left_out(next, seq)
        {
            (self.report)(format!("{}: of {publisher:x}: {wrong}", self.what));
        }
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.received += 1;
        let heard = log.heard.entry(publisher).or_default();
        let wrong = match message::check(sample) {
            Err(why) => Some(why),
            Ok((sender, _)) if sender != publisher => {
                Some(format!("message {seq} is from {sender:x}"))
            }
            Ok((_, number)) if number != seq => Some(format!("message {number} came as {seq}")),
            Ok((_, number)) if number < heard.next => {
                Some(format!("message {number} came when {} was next", heard.next))
            }
            Ok(_) => None,
        };
        heard.next = seq + 1;
        heard.received += 1;
        drop(log);
        if let Some(wrong) = wrong {
            (self.report)(format!("{}: of {publisher:x}: {wrong}", self.what));
        }
    }

    /// Stores the subscriber's own loss counts beside the received counts.
    fn add_up(&mut self) {
        let stats = self.subscriber.stats();
        let lost = self.subscriber.lost().total();
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if self.of_victims {
            for row in &stats {
                log.rows.insert(row.publisher, format!("{row:?}"));
                if let Some(heard) = log.heard.get_mut(&row.publisher) {
                    heard.lost = Some(row.lost.total());
                }
            }
        }
        log.lost = lost;
    }
}
