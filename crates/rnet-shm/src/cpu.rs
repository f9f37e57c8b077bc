//! Where the calling thread runs, and how soon once it is woken.

use std::cell::Cell;

use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Moves the calling thread to another of the processors that it may run on; returns whether it
/// did. The scheduler then keeps it there as long as that is as good. Afterwards it may run where it
/// could before, now by a choice of its own: it does not take part in a later widening of its
/// cpuset, and what another process chose for it in this instant is lost.
///
/// A thread that stays awake for a message holds up its sender if both woke on one processor: the
/// kernel puts a thread that wakes where it slept, and does not look who will wake there next.
pub fn leave() -> bool {
    let Ok(allowed) = sched_getaffinity(None) else { return false };
    let mut others = allowed;
    others.unset(sched_getcpu());
    if others.count() == 0 || sched_setaffinity(None, &others).is_err() {
        return false;
    }
    // Only a change of the machine's processors this moment can make it fail.
    sched_setaffinity(None, &allowed).is_ok()
}

/// The shortest slice that the kernel gives, in ns.
const SHORTEST_SLICE_NS: u64 = 100_000;

/// Asks the scheduler for short time slices for the calling thread, once: it gets no more of the
/// processor than before, but what it gets sooner, before threads that compute.
///
/// Without it a thread that wakes on a busy machine may wait until the slice of another is over,
/// some milliseconds. Needs no rights, and Linux 6.12 or newer; elsewhere nothing changes. Threads
/// of another policy than SCHED_OTHER, real-time ones above all, are left alone.
pub fn ask_for_short_slices() {
    thread_local!(static ASKED: Cell<bool> = const { Cell::new(false) });
    if ASKED.replace(true) {
        return;
    }
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>() as u32;
    // SAFETY: the kernel writes at most `size` bytes to a structure of that size.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    let ordinary = attributes.policy == libc::SCHED_OTHER as u32;
    if got != 0 || !ordinary || (1..=SHORTEST_SLICE_NS).contains(&attributes.runtime_ns) {
        return;
    }
    attributes.size = size;
    attributes.runtime_ns = SHORTEST_SLICE_NS;
    // SAFETY: the kernel reads `size` bytes of the structure, no more.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// `struct sched_attr`, see sched_setattr(2), in its first version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Of SCHED_OTHER: the slice.
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const _: () = assert!(size_of::<Attributes>() == 48);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_and_may_still_run_where_it_did() {
        let (before, here) = (sched_getaffinity(None).unwrap(), sched_getcpu());
        let mut alone = before;
        alone.clear();
        alone.set(here);
        sched_setaffinity(None, &alone).unwrap();
        assert!(!leave(), "there is nowhere to go");
        sched_setaffinity(None, &before).unwrap();
        assert_eq!(leave(), before.count() > 1);
        let after = sched_getaffinity(None).unwrap();
        assert!((0..1024).all(|cpu| after.is_set(cpu) == before.is_set(cpu)));
    }
}
