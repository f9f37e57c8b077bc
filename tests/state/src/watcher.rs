//! Watches of the whole state while other processes write it and are killed, and the checks of the reported
//! changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rnet::Error;
use rnet::Interrupter;
use rnet::state::{Change, State, Watch};

use crate::facts::Facts;
use crate::history::Key;
use crate::workload::{KEYS, key_of, number_of};

/// A slow watch pauses after this many changes.
const CHANGES_PER_PAUSE: usize = 16;

/// One change as reported by a watch.
#[derive(Clone, Debug)]
pub struct ReportedChange {
    /// The key.
    pub key: Key,
    /// Its revision.
    pub revision: u64,
    /// Its value and its version; `None`: deleted.
    pub now: Option<(i64, u64)>,
    /// Changes of the key that were skipped before it.
    pub skipped: Option<u64>,
    /// Whether the key existed when the watch began.
    pub initial: bool,
}

#[derive(Debug, Default)]
struct WatchLog {
    changes: Vec<ReportedChange>,
    wrong: Vec<String>,
}

/// A watch in a separate thread.
pub struct Watcher {
    what: String,
    log: Arc<Mutex<WatchLog>>,
    stop: Arc<AtomicBool>,
    interrupter: Interrupter,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Watches everything. A slow watch pauses at intervals.
    ///
    /// # Errors
    /// The errors of watching.
    pub fn start(state: &State, pause: Option<Duration>) -> Result<Watcher, Error> {
        let watch = state.watch("/t")?;
        let interrupter = watch.interrupter();
        let (log, stop) = <(Arc<Mutex<WatchLog>>, Arc<AtomicBool>)>::default();
        let (theirs, stopped) = (log.clone(), stop.clone());
        let thread = std::thread::spawn(move || run(watch, pause, &theirs, &stopped));
        let what = if pause.is_some() { "the slow watch" } else { "the watch" };
        Ok(Watcher { what: what.to_owned(), log, stop, interrupter, thread: Some(thread) })
    }

    /// Whether the last reported change of each key matches the current state; `stands` has the revisions.
    pub fn is_up_to_date(&self, stands: &BTreeMap<Key, u64>) -> bool {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last: BTreeMap<Key, u64> = BTreeMap::new();
        for change in &log.changes {
            match change.now {
                Some(_) => last.insert(change.key, change.revision),
                None => last.remove(&change.key),
            };
        }
        last == *stands
    }

    /// Ends it; returns the number of changes and the violations.
    pub fn end(mut self, facts: &Facts) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::Release);
        self.interrupter.interrupt();
        let joined = self.thread.take().map(JoinHandle::join);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wrong = std::mem::take(&mut log.wrong);
        if let Some(Err(_)) = joined {
            wrong.push("it panicked".to_owned());
        }
        wrong.extend(judge(&log.changes, facts));
        let wrong = wrong.into_iter().map(|what| format!("{}: {what}", self.what)).collect();
        (log.changes.len(), wrong)
    }
}

fn run(mut watch: Watch, pause: Option<Duration>, log: &Mutex<WatchLog>, stop: &AtomicBool) {
    loop {
        let change = match watch.recv() {
            Ok(change) => change,
            Err(Error::Interrupted) if stop.load(Ordering::Acquire) => return,
            Err(Error::Interrupted) => continue,
            Err(error) => {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                return log.wrong.push(error.to_string());
            }
        };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        match reported_change(&change) {
            Ok(change) => log.changes.push(change),
            Err(what) => log.wrong.push(what),
        }
        let count = log.changes.len();
        drop(log);
        if let Some(pause) = pause.filter(|_| count.is_multiple_of(CHANGES_PER_PAUSE)) {
            std::thread::sleep(pause); // sleep: a slow watcher
        }
    }
}

fn reported_change(change: &Change) -> Result<ReportedChange, String> {
    let key =
        key_of(&change.key).ok_or_else(|| format!("a key that no process wrote: {change:?}"))?;
    let now = match &change.entry {
        None => None,
        Some(entry) if entry.revision != change.revision => {
            return Err(format!("an entry of another revision: {change:?}"));
        }
        Some(entry) => Some((number_of(&entry.value)?, entry.version)),
    };
    let (revision, skipped, initial) = (change.revision, change.skipped, change.initial);
    Ok(ReportedChange { key, revision, now, skipped, initial })
}

/// The violations in the changes of a watch, given the facts of the history.
pub fn judge(all: &[ReportedChange], facts: &Facts) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut last: HashMap<Key, &ReportedChange> = HashMap::new();
    let mut accounted: BTreeMap<Key, u64> = BTreeMap::new();
    let mut high = 0;
    for change in all {
        let complain = |what: &str| format!("{what}: {change:?} after {:?}", last.get(&change.key));
        if let Some((value, _)) = change.now
            && let Err(what) = facts.holds(change.key, value, change.revision)
        {
            wrong.push(complain(&what));
        }
        if change.initial {
            if last.insert(change.key, change).is_some() || change.skipped != Some(0) {
                wrong.push(format!("an initial value after another change: {change:?}"));
            }
            continue;
        }
        if change.revision < high {
            wrong.push(complain("out of order"));
        }
        high = high.max(change.revision);
        *accounted.entry(change.key).or_default() += 1 + change.skipped.unwrap_or(0);
        if let Some(before) = last.get(&change.key) {
            if change.revision <= before.revision {
                wrong.push(complain("not newer"));
            }
            // Two deletes in a row require skipped values in between.
            if change.now.is_none() && before.now.is_none() && change.skipped == Some(0) {
                wrong.push(complain("deleted twice"));
            }
        }
        // If a key is never deleted, its versions are counted.
        let count = match (last.get(&change.key).map(|before| before.now), change.now) {
            (Some(Some((_, old))), Some((_, new))) => Some(new.wrapping_sub(old + 1)),
            (None, Some((_, new))) => Some(new - 1),
            _ => None,
        };
        if facts.is_kept(change.key) && change.skipped.is_some() && count != change.skipped {
            wrong.push(complain("the count of skipped changes is wrong"));
        }
        last.insert(change.key, change);
    }
    for (key, count) in accounted {
        let most = facts.most_writes(key);
        if count > most {
            let name = KEYS[usize::from(key)];
            wrong.push(format!("{name}: {count} changes reported or skipped of at most {most}"));
        }
    }
    wrong
}
