//! The thread that calls back for changes of the state, `rnet-state`: one for each node that has such
//! callbacks or streams, from the first of them on.
//!
//! It follows the journal once for all of its tasks, to know when to wake, and each task follows it for
//! itself. So nothing is handed over between them, and a slow callback has no queue: what it did not come to
//! is in the region, or is counted as skipped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use rnet_core::Error;
use rnet_shm::bell::{MAX_SLEEP, Woken};
use rnet_shm::cpu;
use rnet_shm::fork::Own;
use rnet_shm::state::{Follower, Interrupter, Next, Record};

use super::pace::{Pace, Place};
use super::shared::StateShared;
use rnet_node::thread::spawn;

/// What the thread runs.
pub(super) trait Task: Send {
    /// Does some work; returns whether there was any.
    fn run(&mut self) -> bool;
    fn is_over(&self) -> bool;
    /// With what the keys begin that it is about.
    fn prefix(&self) -> String;
    /// How long the thread may sleep, as far as this task is concerned.
    fn sleep_limit(&self) -> Duration;
}

enum Command {
    Add { id: u64, task: Box<dyn Task> },
    Remove { id: u64, done: mpsc::Sender<()> },
}

/// The callbacks of a node's state.
#[derive(Default)]
pub(crate) struct Callbacks {
    next_id: AtomicU64,
    inner: Mutex<Inner>,
    pending: AtomicBool,
    stop: AtomicBool,
}

#[derive(Default)]
struct Inner {
    commands: Vec<Command>,
    thread: Option<JoinHandle<()>>,
    thread_id: Option<ThreadId>,
    interrupter: Option<Interrupter>,
    /// Why the thread does not run, though it has something to do.
    failed: Option<Error>,
}

impl Callbacks {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a task.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Has the thread look at its tasks again.
    pub(super) fn wake(&self) {
        let interrupter = self.lock().interrupter.clone();
        if let Some(interrupter) = interrupter {
            interrupter.interrupt();
        }
    }

    fn send(&self, command: Command) {
        let mut inner = self.lock();
        if self.stop.load(Ordering::Acquire) {
            drop(inner);
            // What the command holds may hold the node's last handle.
            drop(command);
            return;
        }
        inner.commands.push(command);
        drop(inner);
        self.pending.store(true, Ordering::Release);
        self.wake();
    }

    /// Gives the thread a task, and starts it if need be. If it cannot be started, the node's control thread
    /// tries again once a second.
    pub(super) fn add(&self, shared: &Arc<StateShared>, id: u64, task: Box<dyn Task>) {
        self.send(Command::Add { id, task });
        self.revive(shared);
    }

    /// Starts the thread if it has something to do and does not run; `false` if that fails.
    pub(crate) fn revive(&self, shared: &Arc<StateShared>) -> bool {
        let mut inner = self.lock();
        if inner.thread.is_some() || inner.commands.is_empty() || self.stop.load(Ordering::Acquire)
        {
            return true;
        }
        let started = shared.follow(shared.revision()).and_then(|follower| {
            let interrupter = follower.interrupter();
            let theirs = shared.clone();
            spawn("rnet-state", move || run(&theirs, Own::new(follower))).map(|t| (t, interrupter))
        });
        match started {
            Ok((thread, interrupter)) => {
                inner.thread_id = Some(thread.thread().id());
                inner.thread = Some(thread);
                inner.interrupter = Some(interrupter);
                inner.failed = None;
                true
            }
            Err(error) => {
                inner.failed = Some(error);
                false
            }
        }
    }

    /// Takes a task away. Outside of the thread itself it no longer runs afterwards.
    pub(super) fn remove(&self, id: u64) {
        let mut inner = self.lock();
        if inner.thread.is_none() {
            // It never ran, and nobody is there to be asked.
            let is_it = |c: &Command| matches!(c, Command::Add { id: of, .. } if *of == id);
            let found = inner.commands.iter().position(is_it).map(|at| inner.commands.remove(at));
            drop(inner);
            drop(found);
            return;
        }
        let inside = inner.thread_id == Some(std::thread::current().id());
        drop(inner);
        let (done, told) = mpsc::channel();
        self.send(Command::Remove { id, done });
        if !inside {
            // Fails if the thread has ended, and with it the task.
            let _ = told.recv();
        }
    }

    pub(super) fn error(&self) -> Option<Error> {
        self.lock().failed.clone()
    }

    /// Ends the thread, after the callback that it is in.
    pub(crate) fn stop(&self) {
        let mut inner = self.lock();
        self.stop.store(true, Ordering::Release);
        let commands = std::mem::take(&mut inner.commands);
        let thread = inner.thread.take();
        drop(inner);
        drop(commands);
        self.wake();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

type Tasks = Vec<(u64, Box<dyn Task>)>;

fn run(shared: &StateShared, mut sleeper: Own<Follower>) {
    let callbacks = &shared.callbacks;
    let mut tasks: Tasks = Vec::new();
    let (mut prefix, mut record) = (String::from("/"), Record::default());
    let mut pace = Pace::of(shared.own());
    if shared.own().bells().tunes_threads() {
        cpu::keep_short_slices();
    }
    while !callbacks.stop.load(Ordering::Acquire) && !shared.fork_guard().is_parents() {
        if callbacks.pending.swap(false, Ordering::AcqRel) {
            obey(callbacks, &mut tasks);
            prefix = common_prefix(&tasks);
        }
        // First this, so that what comes while the tasks run ends the sleep.
        if !pass(shared, &mut sleeper, &mut pace, &prefix, &mut record) {
            // There is no place to follow from; others will leave theirs.
            std::thread::sleep(MAX_SLEEP / 10);
        }
        let mut busy = false;
        let before = tasks.len();
        let mut at = 0;
        while at < tasks.len() {
            busy |= tasks[at].1.run();
            if shared.fork_guard().is_parents() {
                // A callback has forked and come back here in the child: nothing that this thread holds is
                // the child's.
                std::mem::forget((tasks, sleeper));
                return;
            }
            if tasks[at].1.is_over() {
                let_go(tasks.swap_remove(at).1);
            } else {
                at += 1;
            }
        }
        if tasks.len() != before {
            prefix = common_prefix(&tasks);
        }
        if !busy && !callbacks.pending.load(Ordering::Acquire) {
            let limits = tasks.iter().map(|(_, task)| task.sleep_limit());
            let limit = limits.min().unwrap_or(MAX_SLEEP);
            let mut bed =
                Bed { callbacks, sleeper: &mut sleeper, prefix: &prefix, record: &mut record };
            pace.wait(&mut bed, limit);
        }
    }
    if shared.fork_guard().is_parents() {
        std::mem::forget((tasks, sleeper));
        return;
    }
    tasks.into_iter().for_each(|(_, task)| let_go(task));
}

/// Where the thread waits.
struct Bed<'a> {
    callbacks: &'a Callbacks,
    sleeper: &'a mut Follower,
    prefix: &'a str,
    record: &'a mut Record,
}

impl Place for Bed<'_> {
    fn poll(&mut self) -> bool {
        // A change that is found stays in the record, for `pass`.
        self.callbacks.pending.load(Ordering::Acquire)
            || self.callbacks.stop.load(Ordering::Acquire)
            || self.sleeper.next(self.prefix, self.record) != Next::Nothing
    }
    fn sleep(&mut self, limit: Duration, precise: bool) -> Woken {
        if precise {
            self.sleeper.doze(self.prefix, limit)
        } else {
            self.sleeper.wait(self.prefix, limit)
        }
    }
}

/// Passes what the journal holds by now; `false` if it cannot be followed at the moment.
fn pass(
    shared: &StateShared,
    sleeper: &mut Own<Follower>,
    pace: &mut Pace,
    prefix: &str,
    record: &mut Record,
) -> bool {
    // That which ended the sleep.
    if record.revision != 0 {
        pace.came(record.written_unix_ns, 0);
        record.revision = 0;
    }
    loop {
        match sleeper.next(prefix, record) {
            Next::Change => {
                pace.came(record.written_unix_ns, 0);
                record.revision = 0;
            }
            Next::Nothing => return true,
            Next::Behind => {
                sleeper.go_on_from(shared.revision());
                return true;
            }
        }
    }
}

/// Drops a task. What the user's callback has captured may panic in that, too.
fn let_go(task: Box<dyn Task>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
}

fn obey(callbacks: &Callbacks, tasks: &mut Tasks) {
    let commands = std::mem::take(&mut callbacks.lock().commands);
    for command in commands {
        match command {
            Command::Add { id, task } => tasks.push((id, task)),
            Command::Remove { id, done } => {
                if let Some(at) = tasks.iter().position(|(of, _)| *of == id) {
                    let_go(tasks.swap_remove(at).1);
                }
                let _ = done.send(());
            }
        }
    }
}

fn common_prefix(tasks: &Tasks) -> String {
    let prefixes = tasks.iter().map(|(_, task)| task.prefix());
    prefixes.reduce(|a, b| common(&a, &b).to_owned()).unwrap_or_else(|| "/".to_owned())
}

/// The longest prefix that means all keys that both mean, by whole names: `/arm` of `/arm` and `/arm/x`, `/`
/// of `/arm` and `/army`.
fn common<'a>(a: &'a str, b: &'a str) -> &'a str {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if let Some(rest) = long.strip_prefix(short)
        && (rest.is_empty() || rest.starts_with('/') || short.ends_with('/'))
    {
        return short;
    }
    let same = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
    // Keys are ASCII, so that any byte is the end of a character.
    match short[..same].rfind('/') {
        Some(slash) => &short[..=slash],
        None => "/",
    }
}

#[cfg(test)]
mod tests {
    use super::common;

    #[test]
    fn a_common_prefix_means_all_that_both_mean() {
        for (a, b, both) in [
            ("/arm", "/arm", "/arm"),
            ("/arm", "/arm/x", "/arm"),
            ("/arm/", "/arm/x", "/arm/"),
            ("/arm", "/arm/", "/arm"),
            ("/arm", "/army", "/"),
            ("/arm/x", "/arm/y", "/arm/"),
            ("/arm/xa", "/arm/xb/", "/arm/"),
            ("/arm", "/leg", "/"),
            ("/", "/leg", "/"),
        ] {
            assert_eq!((common(a, b), common(b, a)), (both, both), "{a} {b}");
        }
    }
}
