//! What waiting asks of the scheduler for the thread that waits, and how that is taken back.
//!
//! A thread that sleeps for messages asks for a short time slice: it gets no more of the processor
//! than before, but what it gets sooner, before threads that compute. Without that a thread which
//! wakes on a busy machine may wait for the end of another's slice, and the kernel looks for that end
//! at its ticks only, every 1 to 10 ms. It needs no rights, and Linux 6.12 or newer; elsewhere nothing
//! changes.
//!
//! The slice stays short for as long as a subscriber or watch that waited in the thread is there
//! ([`ShortSlice`]). Taking it back after each wait costs two system calls for each message, and the
//! thread loses its turn by the second one just when it has the message (decision 0023).
//!
//! A thread for which its user has chosen a policy, a nice value, a slice or processors is left
//! alone. The kernel does not say who chose a value, so a value counts as chosen when it differs
//! from the kernel's default, which a thread of our own finds out ([`detect_defaults`]).

use std::cell::RefCell;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::thread::{
    CpuSet, Pid, current_timer_slack, gettid, sched_getaffinity, sched_setaffinity,
    set_current_timer_slack,
};

use crate::os::fork::ForkGuard;

/// For what a thread waits, which decides how short its slice is, in ns. A thread with a shorter one
/// goes before a running thread that has a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum SliceLen {
    /// Urgent messages, and changes of state: the shortest slice that the kernel gives.
    Urgent = 100_000,
    /// Other messages.
    Bulk = 200_000,
}

/// The slack of timers that the kernel gives to threads, in ns.
const DEFAULT_SLACK_NS: NonZeroU64 = NonZeroU64::new(50_000).expect("it is not zero");

/// What threads have for which nobody has chosen anything.
struct Defaults {
    slice_ns: u64,
    cpus: CpuSet,
}

/// Of this kernel and cpuset. Where they change later, all threads count as chosen for.
static DEFAULTS: OnceLock<Defaults> = OnceLock::new();

/// Finds out what the kernel gives to threads by default. Only threads of our own may call it: it
/// gives up, for an instant, what the calling thread has inherited from its user's.
pub fn detect_defaults() {
    if DEFAULTS.get().is_none()
        && let Some(defaults) = Defaults::detect()
    {
        let _ = DEFAULTS.set(defaults);
    }
}

impl Defaults {
    fn detect() -> Option<Defaults> {
        let before = SchedAttr::read(None)?;
        if !before.is_sched_other() || !before.with_slice(0).write(None) {
            return None;
        }
        let slice_ns = SchedAttr::read(None)?.slice_ns;
        if slice_ns != before.slice_ns {
            before.write(None);
        }
        let chosen = sched_getaffinity(None).ok()?;
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
        // The kernel takes from it what the cpuset allows.
        sched_setaffinity(None, &all).ok()?;
        let cpus = sched_getaffinity(None).ok()?;
        if cpus != chosen {
            let _ = sched_setaffinity(None, &chosen);
        }
        Some(Defaults { slice_ns, cpus })
    }
}

/// A thread of our own asks for the shortest slices for as long as it lives.
pub fn keep_short_slices() {
    detect_defaults();
    if let Some(defaults) = DEFAULTS.get() {
        shorten(defaults, SliceLen::Urgent);
    }
}

/// Shortens the slice of the calling thread; returns whether it did.
fn shorten(defaults: &Defaults, slice_len: SliceLen) -> bool {
    SchedAttr::read(None).is_some_and(|now| {
        now.is_default_priority()
            && now.slice_ns == defaults.slice_ns
            && defaults.slice_ns > slice_len as u64
            && now.with_slice(slice_len as u64).write(None)
    })
}

/// The slice of a thread is short for as long as one of these is there that was taken in it.
#[derive(Debug)]
pub struct ShortSlice {
    thread: Arc<Thread>,
    slice_len: SliceLen,
}

/// A thread whose slice was shortened, or was to be.
#[derive(Debug)]
struct Thread {
    id: Pid,
    fork_guard: ForkGuard,
    state: Mutex<SliceState>,
}

#[derive(Debug, Default)]
struct SliceState {
    /// How many hold its slice short, for urgent messages and for others.
    urgent: usize,
    bulk: usize,
    /// What it was shortened to; 0 if it was left alone.
    slice_ns: u64,
    /// Its id may be that of another thread by now.
    over: bool,
}

/// Notes the end of its thread.
struct CurrentThread(Arc<Thread>);

impl Drop for CurrentThread {
    fn drop(&mut self) {
        if !self.0.fork_guard.is_from_parent() {
            self.0.state().over = true;
        }
    }
}

thread_local! {
    static CURRENT_THREAD: RefCell<Option<CurrentThread>> = const { RefCell::new(None) };
}

impl Thread {
    fn state(&self) -> std::sync::MutexGuard<'_, SliceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling one; `None` while it ends.
    fn current() -> Option<Arc<Thread>> {
        let get = |here: &RefCell<Option<CurrentThread>>| {
            let mut here = here.borrow_mut();
            if here.as_ref().is_none_or(|here| here.0.fork_guard.is_from_parent()) {
                let state = Mutex::default();
                let thread =
                    Arc::new(Thread { id: gettid(), fork_guard: ForkGuard::here(), state });
                // That of a parent may be locked by a thread which is not here.
                std::mem::forget(here.replace(CurrentThread(thread)));
            }
            here.as_ref().map(|here| here.0.clone())
        };
        CURRENT_THREAD.try_with(get).ok().flatten()
    }
}

impl ShortSlice {
    /// Keeps the slice of the calling thread short, unless it has to be left alone; `current` is what the
    /// caller got the last time. Without a system call if that was here and for as much.
    pub fn keep(current: &mut Option<ShortSlice>, slice_len: SliceLen) {
        let Some(thread) = Thread::current() else { return };
        if current
            .as_ref()
            .is_some_and(|h| Arc::ptr_eq(&h.thread, &thread) && h.slice_len == slice_len)
        {
            return;
        }
        let Some(defaults) = DEFAULTS.get() else { return };
        // The new one first: a slice that is to stay as it is then stays.
        let slice = ShortSlice::take(defaults, thread, slice_len);
        *current = Some(slice);
    }

    fn take(defaults: &Defaults, thread: Arc<Thread>, slice_len: SliceLen) -> ShortSlice {
        let mut state = thread.state();
        *state.count(slice_len) += 1;
        let free = || sched_getaffinity(None).is_ok_and(|cpus| cpus == defaults.cpus);
        if state.slice_ns == 0 {
            if free() && shorten(defaults, slice_len) {
                state.slice_ns = slice_len as u64;
            }
        } else if state.slice_ns > slice_len as u64 && free() {
            state.change(None, slice_len as u64);
        }
        drop(state);
        ShortSlice { thread, slice_len }
    }
}

impl Drop for ShortSlice {
    fn drop(&mut self) {
        if self.thread.fork_guard.is_from_parent() {
            return;
        }
        let mut state = self.thread.state();
        *state.count(self.slice_len) -= 1;
        let wanted = match (state.urgent, state.bulk) {
            (0, 0) => 0,
            (0, _) => SliceLen::Bulk as u64,
            _ => SliceLen::Urgent as u64,
        };
        if state.slice_ns != 0 && state.slice_ns != wanted && !state.over {
            state.change(Some(self.thread.id), wanted);
        }
    }
}

impl SliceState {
    fn count(&mut self, slice_len: SliceLen) -> &mut usize {
        match slice_len {
            SliceLen::Urgent => &mut self.urgent,
            SliceLen::Bulk => &mut self.bulk,
        }
    }

    /// Changes the slice from what it was shortened to, 0 to the default, unless somebody has chosen
    /// something meanwhile.
    fn change(&mut self, thread: Option<Pid>, slice_ns: u64) {
        if let Some(now) = SchedAttr::read(thread)
            && now.is_default_priority()
            && now.slice_ns == self.slice_ns
            && now.with_slice(slice_ns).write(thread)
        {
            self.slice_ns = slice_ns;
        }
    }
}

/// Takes the slack out of the calling thread's timers while it lives, unless the thread's user has
/// chosen a slack for it.
#[derive(Debug)]
pub(crate) struct PreciseTimers(bool);

impl PreciseTimers {
    pub(crate) fn enable() -> PreciseTimers {
        // Threads of real-time priority have none.
        let free = current_timer_slack().is_ok_and(|slack| slack == DEFAULT_SLACK_NS.get());
        PreciseTimers(free && set_current_timer_slack(NonZeroU64::new(1)).is_ok())
    }
}

impl Drop for PreciseTimers {
    fn drop(&mut self) {
        if self.0 {
            let _ = set_current_timer_slack(Some(DEFAULT_SLACK_NS));
        }
    }
}

/// `struct sched_attr`, see sched_setattr(2), in its first version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedAttr {
    size: u32,
    pub policy: u32,
    flags: u64,
    pub nice: i32,
    priority: u32,
    /// Of SCHED_OTHER: the slice. 0 asks for the default.
    slice_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const _: () = assert!(size_of::<SchedAttr>() == 48);

/// SCHED_FLAG_KEEP_POLICY: one that somebody chooses meanwhile stays.
const KEEP_POLICY: u64 = 0x08;

impl SchedAttr {
    /// Of a thread of this process; `None` is the calling one.
    pub fn read(thread: Option<Pid>) -> Option<SchedAttr> {
        let mut attributes = SchedAttr::default();
        let size = size_of::<SchedAttr>() as u32;
        let id = Pid::as_raw(thread);
        let into = &raw mut attributes;
        // SAFETY: the kernel writes at most `size` bytes to a structure of that size.
        let got = unsafe { libc::syscall(libc::SYS_sched_getattr, id, into, size, 0) };
        (got == 0).then_some(attributes)
    }

    fn is_sched_other(&self) -> bool {
        self.policy == libc::SCHED_OTHER as u32
    }

    /// Whether nobody has chosen a policy or a nice value.
    pub fn is_default_priority(&self) -> bool {
        self.is_sched_other() && self.nice == 0
    }

    fn with_slice(mut self, slice_ns: u64) -> SchedAttr {
        self.slice_ns = slice_ns;
        self
    }

    pub fn with_min_slice(self, slice_ns: u64) -> SchedAttr {
        self.with_slice(self.slice_ns.max(slice_ns))
    }

    #[cfg(test)]
    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    pub fn with_policy(mut self, policy: i32) -> SchedAttr {
        self.policy = policy.cast_unsigned();
        self
    }

    pub fn with_nice(mut self, nice: i32) -> SchedAttr {
        self.nice = nice;
        self
    }

    /// Gives them to a thread, but for the policy; returns whether the kernel took them.
    fn write(mut self, thread: Option<Pid>) -> bool {
        self.flags = KEEP_POLICY;
        self.write_with_flags(thread)
    }

    /// Gives all of them to a thread; returns whether the kernel took them.
    pub fn write_all(mut self, thread: Option<Pid>) -> bool {
        self.flags = 0;
        self.write_with_flags(thread)
    }

    fn write_with_flags(mut self, thread: Option<Pid>) -> bool {
        self.size = size_of::<SchedAttr>() as u32;
        let id = Pid::as_raw(thread);
        // SAFETY: the kernel reads `size` bytes of the structure, no more.
        let set = unsafe { libc::syscall(libc::SYS_sched_setattr, id, &raw const self, 0) };
        set == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_precise_for_a_while_unless_their_slack_was_chosen() {
        let slack = || current_timer_slack().unwrap();
        set_current_timer_slack(Some(DEFAULT_SLACK_NS)).unwrap();
        let precise = PreciseTimers::enable();
        assert_eq!(slack(), 1);
        drop(precise);
        assert_eq!(slack(), DEFAULT_SLACK_NS.get());
        for chosen in [1_u64, 2_000_000] {
            set_current_timer_slack(NonZeroU64::new(chosen)).unwrap();
            let precise = PreciseTimers::enable();
            assert_eq!(slack(), chosen);
            drop(precise);
            assert_eq!(slack(), chosen);
        }
    }

    #[test]
    fn to_learn_what_is_given_changes_nothing() {
        // A thread of its own, as it is for threads of ours.
        let learn = || {
            let before = (SchedAttr::read(None).unwrap(), sched_getaffinity(None).unwrap());
            let defaults = Defaults::detect().unwrap();
            assert_eq!(SchedAttr::read(None), Some(before.0));
            assert_eq!(sched_getaffinity(None).unwrap(), before.1);
            // A choice that the thread has inherited stays.
            let chosen = before.0.with_slice(1_500_000);
            let mut only = CpuSet::new();
            only.set((0..CpuSet::MAX_CPU).find(|&cpu| before.1.is_set(cpu)).unwrap());
            sched_setaffinity(None, &only).unwrap();
            if defaults.slice_ns != 0 {
                assert!(chosen.write(None));
            }
            let again = Defaults::detect().unwrap();
            assert_eq!((again.slice_ns, again.cpus), (defaults.slice_ns, defaults.cpus));
            assert_eq!(sched_getaffinity(None).unwrap(), only);
            if defaults.slice_ns != 0 {
                assert_eq!(SchedAttr::read(None), Some(chosen));
            }
        };
        std::thread::spawn(learn).join().unwrap();
    }
}
