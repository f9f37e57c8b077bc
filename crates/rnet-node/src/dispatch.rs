//! The dispatch threads: one per lane and node, so that a bulk callback that takes a second does not delay an
//! urgent one.
//!
//! A thread waits on one bell for its subscribers, its state watches and its timers. It processes a few
//! messages or changes of each in turn, and runs the timers that are due between any two of them.

mod caught_panic;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use rnet_core::{Lane, Result, Wait};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::os::bell::{Bells, MAX_SLEEP, Waiter};
use rnet_shm::os::cpu;
use rnet_shm::os::fork::ForkGuard;

use crate::callback_errors::CallbackErrors;
use crate::node_time::NodeTime;
use crate::sync::{join_callbacks, lock};
use crate::timers::{TimerTask, Timers};
use crate::wait_loop::WaitStrategy;
use crate::wait_source::{BellWaitTarget, WaitSource};
use caught_panic::drop_task;
use rnet_shm::os::thread::spawn;

/// A task of a dispatch thread.
///
/// A task that panics in any of these functions is dropped; the panic is counted and reported.
pub trait Task: Send {
    /// Id of the task, from [`NodeState::next_task`](crate::core::NodeState::next_task).
    fn id(&self) -> u64;
    /// Name of the task in an error: `the callback of /scan`.
    fn describe(&self) -> String;
    /// Redirects the wake-ups of the task's subscriber to this bell.
    fn set_bell(&mut self, bell: u64);
    /// The lane, once it is known; `None` for a task that may stay where it started.
    fn lane(&self) -> Option<Lane> {
        None
    }
    /// Does some work on the thread of `lane`, and only one piece of it while `must_yield` returns true;
    /// returns whether it did any work.
    fn run(&mut self, lane: Lane, must_yield: &dyn Fn() -> bool) -> bool;
    /// Passes what the thread waits for on behalf of the task to `visit`.
    fn wait_sources(&self, visit: &mut dyn FnMut(&dyn WaitSource));
    /// When the newest item taken since the last call was sent, and how many items were taken, including
    /// skipped ones. `None` if nothing was taken, or if the thread must not stay awake for the next item.
    fn take_arrival(&mut self) -> Option<(u64, u64)> {
        None
    }
    /// Whether the thread must drop the task.
    fn is_finished(&self) -> bool;
    /// Hands the task to the dispatch thread of another lane.
    fn move_to(self: Box<Self>, _lane: Lane) {}
}

enum Command {
    Post(Box<dyn FnOnce() + Send>),
    Add(Box<dyn Task>),
    AddTimer(u64, TimerTask),
    Remove { id: u64, done: mpsc::Sender<bool> },
}

struct DispatcherShared {
    bells: Arc<Bells>,
    bell: u64,
    lane: Lane,
    time: NodeTime,
    /// Whether the thread may change its scheduling parameters.
    tunes: bool,
    commands: Mutex<Vec<Command>>,
    pending: AtomicBool,
    stop: AtomicBool,
    errors: Arc<CallbackErrors>,
    fork_guard: ForkGuard,
}

impl DispatcherShared {
    fn is_running(&self) -> bool {
        !self.stop.load(Ordering::Acquire) && !self.fork_guard.is_from_parent()
    }
}

/// A dispatch thread.
pub struct Dispatcher {
    shared: Arc<DispatcherShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: OnceLock<ThreadId>,
}

impl Dispatcher {
    pub(crate) fn start(
        own: &OwnNode,
        lane: Lane,
        time: NodeTime,
        errors: Arc<CallbackErrors>,
    ) -> Dispatcher {
        let bells = own.bells().clone();
        let waiter = Waiter::new(bells.clone());
        let shared = Arc::new(DispatcherShared {
            bells,
            bell: waiter.bell(),
            lane,
            time,
            tunes: own.bells().tunes_threads(),
            commands: Mutex::new(Vec::new()),
            pending: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            errors,
            fork_guard: ForkGuard::here(),
        });
        let dispatcher =
            Dispatcher { shared, thread: Mutex::default(), thread_id: OnceLock::new() };
        dispatcher.ensure_started();
        dispatcher
    }

    /// Starts the thread if it does not run yet; `false` if it cannot be started. Until then the commands
    /// wait, and the control thread retries once per second.
    pub fn ensure_started(&self) -> bool {
        self.try_start().is_ok()
    }

    /// As [`Dispatcher::ensure_started`], with the error.
    pub fn try_start(&self) -> Result<()> {
        if self.thread_id.get().is_some() {
            return Ok(());
        }
        let mut thread = lock(&self.thread);
        if self.thread_id.get().is_some() || self.shared.stop.load(Ordering::Acquire) {
            return Ok(());
        }
        let name = if self.shared.lane == Lane::Urgent { "rnet-urgent" } else { "rnet-bulk" };
        let theirs = self.shared.clone();
        let waiter = Waiter::at(self.shared.bells.clone(), self.shared.bell);
        let started = spawn(name, move || run(&theirs, waiter))?;
        let _ = self.thread_id.set(started.thread().id());
        *thread = Some(started);
        Ok(())
    }

    fn send(&self, command: Command) -> bool {
        let mut commands = lock(&self.shared.commands);
        if self.shared.stop.load(Ordering::Acquire) {
            return false;
        }
        commands.push(command);
        drop(commands);
        self.shared.pending.store(true, Ordering::Release);
        self.wake();
        true
    }

    /// Makes the thread run its tasks again.
    pub fn wake(&self) {
        self.shared.bells.ring(self.shared.bell);
    }

    /// Runs a closure on the thread.
    pub fn post(&self, job: Box<dyn FnOnce() + Send>) {
        self.send(Command::Post(job));
    }

    /// Gives the thread a task; `false` if the thread has ended.
    pub fn add(&self, task: Box<dyn Task>) -> bool {
        self.send(Command::Add(task))
    }

    /// Gives the thread a timer.
    pub fn add_timer(&self, id: u64, timer: TimerTask) {
        self.send(Command::AddTimer(id, timer));
    }

    /// Removes a task or a timer; returns whether it was here. With `wait`, which callbacks must not use, it no
    /// longer runs after this returns.
    pub fn remove(&self, id: u64, wait: bool) -> bool {
        let thread = lock(&self.thread);
        if self.thread_id.get().is_none() {
            // The thread never ran, so it cannot remove the task itself.
            let mut commands = lock(&self.shared.commands);
            let is_it = |c: &Command| match c {
                Command::Add(task) => task.id() == id,
                Command::AddTimer(of, _) => *of == id,
                _ => false,
            };
            let found = commands.iter().position(is_it).map(|at| commands.remove(at));
            drop((commands, thread));
            return found.is_some();
        }
        drop(thread);
        let (done, result) = mpsc::channel();
        let sent = self.send(Command::Remove { id, done });
        sent && wait && result.recv().unwrap_or(false)
    }

    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread_id.get() == Some(&std::thread::current().id())
    }

    /// Stops the thread after the running callback.
    pub fn stop(&self) {
        let commands = {
            let mut commands = lock(&self.shared.commands);
            self.shared.stop.store(true, Ordering::Release);
            std::mem::take(&mut *commands)
        };
        // A task that never started holds the node whose dispatcher holds the task.
        drop(commands);
        self.wake();
        let thread = lock(&self.thread).take();
        join_callbacks(thread);
    }
}

fn run(shared: &DispatcherShared, waiter: Waiter) {
    shared.errors.attach_thread();
    if shared.lane == Lane::Urgent && shared.tunes {
        cpu::keep_short_slices();
    }
    let mut work = DispatchLoop {
        shared,
        commands: VecDeque::new(),
        tasks: Vec::new(),
        timers: Timers::new(shared.time.clone()),
        wait_strategy: WaitStrategy::of(&shared.bells),
        arrival_count: 0,
        activity: Cell::default(),
    };
    while work.is_running() {
        work.run_once_and_catch(&waiter);
    }
    if shared.fork_guard.is_from_parent() {
        // A callback has forked and returned here in the child, where this is the only thread. The child owns
        // nothing that this thread holds, and the process exits with it.
        std::mem::forget(work);
        return;
    }
    let DispatchLoop { tasks, timers, .. } = work;
    tasks.into_iter().for_each(drop_task);
    drop_task(timers);
}

/// The work of a dispatch thread.
struct DispatchLoop<'a> {
    shared: &'a DispatcherShared,
    /// Commands taken from the shared queue and not run yet.
    commands: VecDeque<Command>,
    tasks: Vec<Box<dyn Task>>,
    timers: Timers,
    wait_strategy: WaitStrategy,
    /// Total of messages and changes that all tasks have taken.
    arrival_count: u64,
    activity: Cell<Activity>,
}

/// What runs now, and is the source of a panic.
#[derive(Clone, Copy, Default)]
enum Activity {
    #[default]
    Other,
    Timers,
    /// The task at this index. It is dropped after a panic.
    Task(usize),
    /// A task that is being added or removed; the panic drops it.
    Handover,
}

impl DispatchLoop<'_> {
    /// A callback may have forked and returned here in the child.
    fn is_running(&self) -> bool {
        self.shared.is_running()
    }

    /// Runs the commands, each task and the timers that are due, and waits if there was no work.
    fn run_once(&mut self, waiter: &Waiter) {
        let shared = self.shared;
        // Read first: a ring while the tasks run or register their wait sources ends the sleep.
        let before = waiter.read();
        if shared.pending.swap(false, Ordering::AcqRel) {
            let mut commands = lock(&shared.commands);
            self.commands.extend(commands.drain(..));
        }
        while self.is_running()
            && let Some(command) = self.commands.pop_front()
        {
            self.run_command(command);
        }
        let mut busy = false;
        let mut at = 0;
        while self.is_running() {
            self.activity.set(Activity::Timers);
            let over = self.timers.run(|| shared.is_running());
            self.activity.set(Activity::Other);
            if shared.fork_guard.is_from_parent() {
                std::mem::forget(over);
                return;
            }
            over.into_iter().for_each(drop_task);
            let DispatchLoop { tasks, timers, .. } = self;
            let Some(task) = tasks.get_mut(at) else { break };
            self.activity.set(Activity::Task(at));
            let lane = task.lane();
            if lane.is_some_and(|lane| lane != shared.lane) {
                self.activity.set(Activity::Handover);
                tasks.swap_remove(at).move_to(lane.unwrap_or_default());
                self.activity.set(Activity::Other);
                continue;
            }
            let must_yield = || shared.pending.load(Ordering::Acquire) || timers.is_due();
            busy |= task.run(shared.lane, &must_yield);
            if shared.fork_guard.is_from_parent() {
                return;
            }
            if let Some((sent_ns, count)) = task.take_arrival() {
                self.arrival_count = self.arrival_count.wrapping_add(count);
                self.wait_strategy.record_arrival(sent_ns, self.arrival_count);
                if shared.lane == Lane::Bulk {
                    // As for an adaptive subscriber of a bulk topic; the urgent thread has a shorter slice.
                    self.wait_strategy.keep_short_slice(cpu::SliceLen::Bulk);
                }
            }
            let is_finished = task.is_finished();
            self.activity.set(Activity::Other);
            if is_finished {
                drop_task(tasks.swap_remove(at));
            } else {
                at += 1;
            }
        }
        let left = self.timers.until_due();
        if !self.is_running() || busy || left == Some(Duration::ZERO) {
            return;
        }
        let mut limit = left.unwrap_or(Duration::MAX);
        let by_the_clock = shared.tunes && limit < MAX_SLEEP;
        let DispatchLoop { tasks, wait_strategy, activity, .. } = self;
        let each = |visit: &mut dyn FnMut(&dyn WaitSource)| {
            visit(shared);
            for (at, task) in tasks.iter().enumerate() {
                activity.set(Activity::Task(at));
                task.wait_sources(visit);
            }
            activity.set(Activity::Other);
        };
        each(&mut |one| limit = limit.min(one.sleep_limit()));
        wait_strategy.wait(
            &mut BellWaitTarget { waiter, before, by_the_clock, checks_stop: false, each },
            Wait::Adaptive,
            limit,
        );
    }

    fn run_command(&mut self, command: Command) {
        match command {
            Command::Post(job) => job(),
            Command::Add(mut task) => {
                self.activity.set(Activity::Handover);
                task.set_bell(self.shared.bell);
                self.activity.set(Activity::Other);
                self.tasks.push(task);
            }
            Command::AddTimer(id, timer) => self.timers.add(id, timer),
            Command::Remove { id, done } => {
                let at = self.tasks.iter().position(|task| task.id() == id);
                let timer = self.timers.remove(id);
                let found = at.is_some() || timer.is_some();
                drop_task((at.map(|at| self.tasks.swap_remove(at)), timer));
                let _ = done.send(found);
            }
        }
    }
}

impl WaitSource for DispatcherShared {
    fn is_ready(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.pending.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
