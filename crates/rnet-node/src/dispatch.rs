//! The dispatch threads: one per lane and node, so that a bulk callback which takes a second
//! delays no urgent one.
//!
//! A thread waits at one bell for all its subscribers and watches of the state, and for its timers. It runs a few
//! messages or changes of each in turn, and between any two of them the timers that are due.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use rnet_core::{Lane, Result, Wait};
use rnet_shm::bell::{Bells, MAX_SLEEP, Waiter};
use rnet_shm::cpu;
use rnet_shm::fork::ForkGuard;
use rnet_shm::node::OwnNode;

use crate::awaited::{Awaited, BellPlace};
use crate::callback_errors::CallbackErrors;
use crate::node_time::NodeTime;
use crate::pace::Pace;
use crate::sync::{join, lock};
use crate::timers::{TimerTask, Timers};
use rnet_shm::thread::spawn;

/// What a dispatch thread runs.
///
/// One that panics, in whichever function, is dropped; the panic is counted and reported.
pub trait Task: Send {
    fn id(&self) -> u64;
    /// What it is, in an error: `the callback of /scan`.
    fn describe(&self) -> String;
    /// Takes over the wake-ups of the task's subscriber.
    fn set_bell(&mut self, bell: u64);
    /// The lane, once it is known; none of a task that may stay where it began.
    fn lane(&self) -> Option<Lane> {
        None
    }
    /// Does some work on the thread of `lane`, and no second piece of it while `must_yield`; returns whether
    /// there was any.
    fn run(&mut self, lane: Lane, must_yield: &dyn Fn() -> bool) -> bool;
    /// Shows what the thread waits for on behalf of the task, if anybody wants it.
    fn awaited(&self, look: &mut dyn FnMut(&dyn Awaited));
    /// When the last thing that it took since this was asked was sent, and how many it took, skipped ones
    /// included; if the thread is to stay awake for the next one where that pays.
    fn came(&mut self) -> Option<(u64, u64)> {
        None
    }
    fn is_over(&self) -> bool;
    /// Hands the task to the dispatch thread of another lane.
    fn move_to(self: Box<Self>, _lane: Lane) {}
}

enum Command {
    Post(Box<dyn FnOnce() + Send>),
    Add(Box<dyn Task>),
    AddTimer(u64, TimerTask),
    Remove { id: u64, done: mpsc::Sender<bool> },
}

struct Shared {
    bells: Arc<Bells>,
    bell: u64,
    lane: Lane,
    time: NodeTime,
    /// Whether the thread may ask the scheduler for something.
    tunes: bool,
    commands: Mutex<Vec<Command>>,
    pending: AtomicBool,
    stop: AtomicBool,
    errors: Arc<CallbackErrors>,
    fork_guard: ForkGuard,
}

impl Shared {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Acquire) && !self.fork_guard.is_from_parent()
    }
}

/// A dispatch thread.
pub struct Dispatcher {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: OnceLock<ThreadId>,
}

impl Dispatcher {
    pub fn start(
        own: &OwnNode,
        lane: Lane,
        time: NodeTime,
        errors: Arc<CallbackErrors>,
    ) -> Dispatcher {
        let bells = own.bells().clone();
        let waiter = Waiter::new(bells.clone());
        let shared = Arc::new(Shared {
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
        dispatcher.revive();
        dispatcher
    }

    /// Starts the thread if it does not run yet; `false` if it cannot be started. Until it can, the
    /// commands wait: the control thread tries again once a second.
    pub fn revive(&self) -> bool {
        self.try_start().is_ok()
    }

    /// As [`Dispatcher::revive`], with what stands in the way.
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

    /// Makes the thread look at its tasks again.
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

    /// Takes a task or a timer away; returns whether it was here. With `wait`, which is not for dispatch
    /// threads, it no longer runs afterwards.
    pub fn remove(&self, id: u64, wait: bool) -> bool {
        let thread = lock(&self.thread);
        if self.thread_id.get().is_none() {
            // It never ran, and nobody is there to be asked.
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
        let (done, told) = mpsc::channel();
        let sent = self.send(Command::Remove { id, done });
        sent && wait && told.recv().unwrap_or(false)
    }

    pub fn is_this_thread(&self) -> bool {
        self.thread_id.get() == Some(&std::thread::current().id())
    }

    /// Ends the thread, after the callback that it is in.
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
        join(thread);
    }
}

fn run(shared: &Shared, waiter: Waiter) {
    shared.errors.attach_thread();
    if shared.lane == Lane::Urgent && shared.tunes {
        cpu::keep_short_slices();
    }
    let mut work = Work {
        shared,
        commands: VecDeque::new(),
        tasks: Vec::new(),
        timers: Timers::new(shared.time.clone()),
        pace: Pace::of(&shared.bells),
        came: 0,
        doing: Cell::default(),
    };
    while work.goes_on() {
        let turned = catch_unwind(AssertUnwindSafe(|| work.turn(&waiter)));
        if let Err(panic) = turned
            && !shared.fork_guard.is_from_parent()
        {
            work.drop_failed(&*panic);
            // To drop it may panic, too.
            std::mem::forget(panic);
        }
    }
    if shared.fork_guard.is_from_parent() {
        // A callback has forked and come back here in the child, in which this is the only thread:
        // nothing of what it holds is the child's, and the process ends with it.
        std::mem::forget(work);
        return;
    }
    let Work { tasks, timers, .. } = work;
    tasks.into_iter().for_each(let_go);
    let_go(timers);
}

/// What a dispatch thread has to do.
struct Work<'a> {
    shared: &'a Shared,
    /// Taken from the others, and not carried out yet.
    commands: VecDeque<Command>,
    tasks: Vec<Box<dyn Task>>,
    timers: Timers,
    pace: Pace,
    /// Messages and changes that all tasks have taken.
    came: u64,
    doing: Cell<Doing>,
}

/// What runs at this moment, and is to blame for a panic.
#[derive(Clone, Copy, Default)]
enum Doing {
    #[default]
    Other,
    Timers,
    /// The task at this place. It is dropped.
    Task(usize),
    /// A task that comes or goes, which is dropped with the panic.
    Handover,
}

impl Work<'_> {
    /// A callback may have forked, and come back here in the child.
    fn goes_on(&self) -> bool {
        self.shared.goes_on()
    }

    /// Carries out the commands, runs each task and the timers that are due, and then waits if nothing was there.
    fn turn(&mut self, waiter: &Waiter) {
        let shared = self.shared;
        // Read first: whoever rings while the tasks run and name their places ends the sleep.
        let before = waiter.read();
        if shared.pending.swap(false, Ordering::AcqRel) {
            let mut commands = lock(&shared.commands);
            self.commands.extend(commands.drain(..));
        }
        while self.goes_on()
            && let Some(command) = self.commands.pop_front()
        {
            self.obey(command);
        }
        let mut busy = false;
        let mut at = 0;
        while self.goes_on() {
            self.doing.set(Doing::Timers);
            let over = self.timers.run(|| shared.goes_on());
            self.doing.set(Doing::Other);
            if shared.fork_guard.is_from_parent() {
                std::mem::forget(over);
                return;
            }
            over.into_iter().for_each(let_go);
            let Work { tasks, timers, .. } = self;
            let Some(task) = tasks.get_mut(at) else { break };
            self.doing.set(Doing::Task(at));
            let lane = task.lane();
            if lane.is_some_and(|lane| lane != shared.lane) {
                self.doing.set(Doing::Handover);
                tasks.swap_remove(at).move_to(lane.unwrap_or_default());
                self.doing.set(Doing::Other);
                continue;
            }
            let must_yield = || shared.pending.load(Ordering::Acquire) || timers.is_due();
            busy |= task.run(shared.lane, &must_yield);
            if shared.fork_guard.is_from_parent() {
                return;
            }
            if let Some((sent_ns, count)) = task.came() {
                self.came = self.came.wrapping_add(count);
                self.pace.came(sent_ns, self.came);
                if shared.lane == Lane::Bulk {
                    // As an adaptive subscriber of a bulk topic; the urgent thread has a shorter slice.
                    self.pace.keep_short_slice(cpu::SliceLen::Bulk);
                }
            }
            let is_over = task.is_over();
            self.doing.set(Doing::Other);
            if is_over {
                let_go(tasks.swap_remove(at));
            } else {
                at += 1;
            }
        }
        let left = self.timers.left();
        if !self.goes_on() || busy || left == Some(Duration::ZERO) {
            return;
        }
        let mut limit = left.unwrap_or(Duration::MAX);
        let by_the_clock = shared.tunes && limit < MAX_SLEEP;
        let Work { tasks, pace, doing, .. } = self;
        let each = |look: &mut dyn FnMut(&dyn Awaited)| {
            look(shared);
            for (at, task) in tasks.iter().enumerate() {
                doing.set(Doing::Task(at));
                task.awaited(look);
            }
            doing.set(Doing::Other);
        };
        each(&mut |one| limit = limit.min(one.sleep_limit()));
        pace.wait(
            &mut BellPlace { waiter, before, by_the_clock, heeds_stops: false, each },
            Wait::Adaptive,
            limit,
        );
    }

    /// Counts a panic, and drops the task that it came from: in an unknown state it is not run again. Everything else
    /// goes on.
    #[cold]
    fn drop_failed(&mut self, panic: &(dyn Any + Send)) {
        let lane = if self.shared.lane == Lane::Urgent { "urgent" } else { "bulk" };
        let doing = self.doing.take();
        let (task, name) = match doing {
            Doing::Task(at) if at < self.tasks.len() => {
                let task = self.tasks.swap_remove(at);
                let name = catch_unwind(AssertUnwindSafe(|| task.describe())).ok();
                (Some(task), name)
            }
            Doing::Timers => (None, Some(format!("a timer of the {lane} lane"))),
            _ => (None, None),
        };
        if !matches!(doing, Doing::Other) {
            self.shared.errors.note_dropped();
        }
        let name = name.unwrap_or_else(|| format!("a callback of the {lane} lane"));
        self.shared.errors.note_panic(&name, panic);
        let_go(task);
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Post(job) => job(),
            Command::Add(mut task) => {
                self.doing.set(Doing::Handover);
                task.set_bell(self.shared.bell);
                self.doing.set(Doing::Other);
                self.tasks.push(task);
            }
            Command::AddTimer(id, timer) => self.timers.add(id, timer),
            Command::Remove { id, done } => {
                let at = self.tasks.iter().position(|task| task.id() == id);
                let timer = self.timers.remove(id);
                let found = at.is_some() || timer.is_some();
                let_go((at.map(|at| self.tasks.swap_remove(at)), timer));
                let _ = done.send(found);
            }
        }
    }
}

impl Awaited for Shared {
    fn is_ready(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.pending.load(Ordering::Acquire)
    }
}

/// Drops a task or a timer. What the user's callback has captured may panic in that, too.
fn let_go<T>(task: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
}

#[cfg(test)]
mod tests;
