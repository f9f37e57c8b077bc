//! Giving way: what a thread asks of the scheduler that only looks on.
//!
//! A thread that gives way and wakes does not take the processor from an ordinary one that runs. It needs no rights to,
//! and what it starts inherits it, threads as well as processes; nobody without a right undoes all of it. So what others
//! count on, the threads of a node that takes part above all, is started by a thread that does not ([`NormalPriority`]).
//!
//! A thread for which its user has chosen a policy or a nice value is left alone, and keeps a slice that is longer than
//! the one here.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::os::cpu::SchedAttr;

/// How far a thread gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityChange {
    /// `SCHED_BATCH`: it gets as much of the processor as before, and waits for it until others sleep or have had their
    /// share. For what is lost if it comes much too late.
    Batch,
    /// `SCHED_BATCH` with the highest nice value: beside a thread that computes it gets a hundredth of a core or two. Not
    /// `SCHED_IDLE`, which gets a fifth of that: beside two busy loops on two cores `rnet top` was drawn each 6 s.
    Lowest,
}

/// The highest nice value.
const MAX_NICE: i32 = 19;
/// The slice of a thread that gives way. Since Linux 6.12 a thread that wakes takes the processor from one whose slice is
/// longer than its own. Threads of nodes for which nobody has chosen anything, those that wait for a timer among them,
/// have 3 ms or less. Not the longest that the kernel gives, 100 ms: on a busy machine a thread waits for about as long,
/// and what recorders do not read in time is lost to them.
const SLICE_NS: u64 = 10_000_000;

thread_local! {
    /// This thread has given way.
    static LOWERED: Cell<bool> = const { Cell::new(false) };
}

/// Has the calling thread give way. Whether it does now.
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

/// A thread that does not give way, for threads that do.
#[derive(Debug)]
pub struct NormalPriority {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl NormalPriority {
    /// Starts it. Whoever calls this has not given way.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub fn start(name: &str) -> io::Result<NormalPriority> {
        let (jobs, given) = channel::<Job>();
        let work = move || given.iter().for_each(|job| job());
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(NormalPriority { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `f`, and what it starts does not give way: in the calling thread, if that has not given way, or in this one.
    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        let Some(jobs) = self.jobs.as_ref().filter(|_| LOWERED.get()) else { return f() };
        let (tell, told) = channel::<Result<T, Box<dyn Any + Send>>>();
        let job = move || {
            // Who waits for it is there: it does nothing else meanwhile.
            let _ = tell.send(catch_unwind(AssertUnwindSafe(f)));
        };
        jobs.send(Box::new(job)).expect("it ends with its owner");
        match told.recv().expect("each job tells how it ended") {
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

    /// In ns; `None` where the kernel is older than 6.12 and gives all threads the same.
    fn slice() -> Option<u64> {
        Some(SchedAttr::read(None).unwrap().slice_ns()).filter(|slice| *slice != 0)
    }

    const NORMAL: (i32, i32) = (libc::SCHED_OTHER, 0);
    const CHANGES: [(PriorityChange, (i32, i32)); 2] = [
        (PriorityChange::Batch, (libc::SCHED_BATCH, 0)),
        (PriorityChange::Lowest, (libc::SCHED_BATCH, MAX_NICE)),
    ];

    /// Runs `check` in a thread with the default policy and nice value, also if the tests were started with `nice`.
    /// A user who may not lower a nice value gets the check that nothing is changed.
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
    fn what_is_started_by_an_ordinary_thread_does_not_give_way() {
        in_plain_thread(started_by_an_ordinary_thread);
    }

    fn started_by_an_ordinary_thread() {
        for (way, expected) in CHANGES {
            let ordinary = NormalPriority::start("ordinary").unwrap();
            let looks = move || {
                let started = || std::thread::spawn(now).join().unwrap();
                let here = std::thread::current().id();
                assert_eq!(
                    ordinary.run(move || (now(), std::thread::current().id())),
                    (NORMAL, here)
                );
                assert!(lower_priority(way));
                assert_eq!((now(), started()), (expected, expected), "threads inherit it");
                assert_eq!(ordinary.run(move || (now(), started())), (NORMAL, NORMAL));
                // A panic is that of who asked, and the thread is there for the next.
                assert!(
                    catch_unwind(AssertUnwindSafe(|| ordinary.run(|| panic!("on purpose"))))
                        .is_err()
                );
                assert_eq!(ordinary.run(|| 7), 7);
            };
            std::thread::spawn(looks).join().unwrap();
        }
    }

    #[test]
    fn its_slice_is_longer_than_that_of_nodes() {
        let looks = |way, chosen_ns| {
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
            let Some((before, after)) = in_plain_thread(looks(way, 0)) else { return };
            assert!(before.is_none_or(|slice| slice < SLICE_NS), "{before:?}");
            assert_eq!(after, before.map(|_| SLICE_NS));
            let Some((_, longer)) = in_plain_thread(looks(way, 2 * SLICE_NS)) else { return };
            assert_eq!(longer, before.map(|_| 2 * SLICE_NS), "what its user has chosen");
        }
    }

    #[test]
    fn what_its_user_has_chosen_stays() {
        for (way, chosen) in CHANGES {
            let looks = move || {
                assert!(lower_priority(way));
                for other in CHANGES.map(|(other, _)| other) {
                    assert!(!lower_priority(other));
                    assert_eq!(now(), chosen);
                }
            };
            in_plain_thread(looks);
        }
    }
}
