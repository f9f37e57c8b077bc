//! Lower priority: the scheduler settings of threads that only observe.
//!
//! A thread of lower priority that wakes does not preempt a running normal thread. This needs no privileges.
//! Threads and processes that it starts inherit the setting, and an unprivileged process cannot fully undo
//! it. So threads that others rely on, in particular those of a participating node, are started by a thread
//! of normal priority ([`NormalPriority`]).
//!
//! A thread for which the user has chosen a policy or a nice value is left unchanged, and a slice that is
//! longer than the one here is kept.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::os::cpu::SchedAttr;

/// How far to lower a thread's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityChange {
    /// `SCHED_BATCH`: the thread gets the same share of the processor, but waits until others sleep or have
    /// used their share. For work that is lost if it is much too late.
    Batch,
    /// `SCHED_BATCH` with the highest nice value: beside a compute thread it gets a hundredth of a core or
    /// two. Not `SCHED_IDLE`, which gets a fifth of that: beside two busy loops on two cores, `rnet top` was
    /// drawn every 6 s.
    Lowest,
}

/// The highest nice value.
const MAX_NICE: i32 = 19;
/// The slice of a thread of lower priority. Since Linux 6.12, a thread that wakes preempts one whose slice is
/// longer than its own. Threads of nodes with default settings, including those that wait for a timer, have 3
/// ms or less. Not the kernel's maximum, 100 ms: on a busy machine a thread waits for about that time, and
/// recorders lose what they do not read in time.
const SLICE_NS: u64 = 10_000_000;

thread_local! {
    /// Whether this thread has lowered its priority.
    static LOWERED: Cell<bool> = const { Cell::new(false) };
}

/// Lowers the priority of the calling thread. Returns whether it is lower now.
pub fn lower_priority(way: PriorityChange) -> bool {
    let nice = match way {
        PriorityChange::Batch => 0,
        PriorityChange::Lowest => MAX_NICE,
    };
    let lowered = SchedAttr::read(None).is_some_and(|now| {
        let attributes =
            now.with_policy(libc::SCHED_BATCH).with_nice(nice).with_min_slice(SLICE_NS);
        now.is_default_priority() && attributes.write_all(None)
    });
    LOWERED.set(LOWERED.get() || lowered);
    lowered
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread of normal priority, for use by threads of lower priority.
#[derive(Debug)]
pub struct NormalPriority {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl NormalPriority {
    /// Starts the thread. The caller must have normal priority.
    ///
    /// # Errors
    /// Errors of starting a thread.
    pub fn start(name: &str) -> io::Result<NormalPriority> {
        let (jobs, given) = channel::<Job>();
        let work = move || given.iter().for_each(|job| job());
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(NormalPriority { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `f` so that what it starts has normal priority: in the calling thread if that has normal
    /// priority, otherwise in this one.
    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        let Some(jobs) = self.jobs.as_ref().filter(|_| LOWERED.get()) else { return f() };
        let (result_sender, result) = channel::<Result<T, Box<dyn Any + Send>>>();
        let job = move || {
            // The receiver exists: its thread only waits for this result.
            let _ = result_sender.send(catch_unwind(AssertUnwindSafe(f)));
        };
        jobs.send(Box::new(job)).expect("the thread runs until its owner is dropped");
        match result.recv().expect("each job sends its result") {
            Ok(done) => done,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl Drop for NormalPriority {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> (i32, i32) {
        let now = SchedAttr::read(None).unwrap();
        (now.policy.cast_signed(), now.nice)
    }

    /// In ns; `None` if the kernel is older than 6.12 and uses one slice for all threads.
    fn slice() -> Option<u64> {
        Some(SchedAttr::read(None).unwrap().slice_ns()).filter(|slice| *slice != 0)
    }

    const NORMAL: (i32, i32) = (libc::SCHED_OTHER, 0);
    const CHANGES: [(PriorityChange, (i32, i32)); 2] = [
        (PriorityChange::Batch, (libc::SCHED_BATCH, 0)),
        (PriorityChange::Lowest, (libc::SCHED_BATCH, MAX_NICE)),
    ];

    /// Runs `check` in a thread with the default policy and nice value, even if the tests were started with
    /// `nice`. If the user may not lower a nice value, checks that nothing changes.
    fn in_plain_thread<T: Send + 'static>(check: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let plain = move || {
            let now = SchedAttr::read(None).unwrap();
            let plain = now.with_policy(libc::SCHED_OTHER).with_nice(0);
            if now.is_default_priority() || plain.write_all(None) {
                return Some(check());
            }
            assert!(!lower_priority(PriorityChange::Batch));
            None
        };
        std::thread::spawn(plain).join().unwrap()
    }

    #[test]
    fn normal_priority_thread_starts_normal_threads() {
        in_plain_thread(started_by_normal_thread);
    }

    fn started_by_normal_thread() {
        for (way, expected) in CHANGES {
            let normal = NormalPriority::start("ordinary").unwrap();
            let change_priority = move || {
                let started = || std::thread::spawn(now).join().unwrap();
                let here = std::thread::current().id();
                assert_eq!(
                    normal.run(move || (now(), std::thread::current().id())),
                    (NORMAL, here)
                );
                assert!(lower_priority(way));
                assert_eq!((now(), started()), (expected, expected), "threads inherit it");
                assert_eq!(normal.run(move || (now(), started())), (NORMAL, NORMAL));
                // A panic is passed to the caller, and the thread remains usable.
                assert!(
                    catch_unwind(AssertUnwindSafe(|| normal.run(|| panic!("on purpose")))).is_err()
                );
                assert_eq!(normal.run(|| 7), 7);
            };
            std::thread::spawn(change_priority).join().unwrap();
        }
    }

    #[test]
    fn slice_is_longer_than_that_of_nodes() {
        let change_priority = |way, chosen_ns| {
            move || {
                let before = slice();
                if chosen_ns != 0 {
                    let chosen = SchedAttr::read(None).unwrap().with_min_slice(chosen_ns);
                    assert!(chosen.write_all(None));
                }
                assert!(lower_priority(way));
                (before, slice())
            }
        };
        for (way, _) in CHANGES {
            let Some((before, after)) = in_plain_thread(change_priority(way, 0)) else { return };
            assert!(before.is_none_or(|slice| slice < SLICE_NS), "{before:?}");
            assert_eq!(after, before.map(|_| SLICE_NS));
            let Some((_, longer)) = in_plain_thread(change_priority(way, 2 * SLICE_NS)) else {
                return;
            };
            assert_eq!(longer, before.map(|_| 2 * SLICE_NS), "a slice chosen by the user");
        }
    }

    #[test]
    fn keeps_settings_chosen_by_the_user() {
        for (way, chosen) in CHANGES {
            let change_priority = move || {
                assert!(lower_priority(way));
                for other in CHANGES.map(|(other, _)| other) {
                    assert!(!lower_priority(other));
                    assert_eq!(now(), chosen);
                }
            };
            in_plain_thread(change_priority);
        }
    }
}
