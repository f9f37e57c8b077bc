//! The one ordering that loom cannot model: a compiler fence on the side that publishes, `membarrier`
//! on the side that sleeps. Two processes play the handshake of `wake` over shared memory, round after
//! round, and no round may end with the message unseen and the sleeper not rung.
//!
//! `make soak` plays 10^6 rounds of each (`LITMUS_ROUNDS`). Why it holds is argued in
//! docs/decisions/0020-admission-and-the-barrier-pair.md.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use rnet_ring::sync::Barrier;
use rnet_ring::wake;
use rnet_shm::os::barrier::{
    self, ConditionalBarrier, PublisherBarrier, RATE_WINDOW_MESSAGES, SleeperBarrier,
};

/// Rounds of a usual test: enough to see that it runs.
const ROUNDS: u64 = 2000;
/// Rounds between two changes of the publisher's side.
const TURN: u64 = 16;
/// Spins before the other process is given the processor.
const SPINS: u32 = 1000;

fn rounds() -> u64 {
    std::env::var("LITMUS_ROUNDS").map_or(ROUNDS, |n| n.parse().expect("a number"))
}

/// A word that shares its cache line with no other.
#[repr(C, align(128))]
struct Line(AtomicU64);

/// What the two processes share.
#[repr(C)]
struct Shared {
    /// The round that is played.
    go: Line,
    /// The round that the publisher is done with, and in the lowest bit, whether it would have rung.
    done: Line,
    /// What a commit stores.
    tail: Line,
    asleep: Line,
    asymmetric: Line,
}

/// How the two sides order their store before their load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pair {
    /// Compiler fence and `membarrier`.
    Asymmetric,
    /// The publisher changes sides again and again, as the pace of its messages does.
    Changing,
    /// Compiler fence and full fence, which is one fence too few.
    Broken,
}

/// The publisher, in a process of its own: a forked child, which allocates nothing.
fn publish(shared: &Shared, pair: Pair, rounds: u64) {
    barrier::register();
    let mut side = PublisherBarrier::default();
    let (mut now_ns, mut rung) = (1, 0);
    for round in 1..=rounds {
        if pair == Pair::Changing && round % TURN == 0 {
            // Fast and slow in turn.
            now_ns +=
                if (round / TURN).is_multiple_of(2) { 1 } else { RATE_WINDOW_MESSAGES * 1_000_000 };
            side.update_send_rate(now_ns, &shared.asymmetric.0);
        } else if round == 1 {
            side.update_send_rate(now_ns, &shared.asymmetric.0);
        }
        wait_for(&shared.go.0, |go| go == round);
        shake(round, 32);
        shared.tail.0.store(round, Ordering::Release);
        side.light();
        let rings = wake::must_ring(&shared.asleep.0, &mut rung);
        shared.done.0.store(round << 1 | u64::from(rings), Ordering::Release);
    }
}

/// Waits for the other process; gives up when that is gone.
fn wait_for(word: &AtomicU64, is_it: impl Fn(u64) -> bool) -> u64 {
    let mut spins = 0;
    loop {
        let now = word.load(Ordering::Acquire);
        if is_it(now) {
            return now;
        }
        spins += 1;
        if spins % SPINS == 0 {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// Up to `most` steps of a cycle or two, so that the two sides meet in all ways.
fn shake(round: u64, most: u64) {
    let steps = (round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % most;
    (0..steps).for_each(|step| _ = std::hint::black_box(step));
}

/// Plays; returns the rounds after which neither side had seen the other.
fn play(pair: Pair, rounds: u64) -> u64 {
    let len = size_of::<Shared>();
    let (rw, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever the kernel likes.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, rw, shared, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    // SAFETY: mapped above for reading and writing and never unmapped, page-aligned, zeroed, which is a value of
    // atomics; two processes use it by atomics alone.
    let shared = unsafe { &*at.cast::<Shared>() };
    // SAFETY: the child calls nothing that another thread of this process may hold a lock of: atomics, membarrier,
    // sched_yield and _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: takes no pointers. Nobody else would end the child of a test that was killed.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        publish(shared, pair, rounds);
        // SAFETY: ends the child without running what is the parent's.
        unsafe { libc::_exit(0) };
    }
    let asking = ConditionalBarrier(|| shared.asymmetric.0.load(Ordering::Acquire) != 0);
    let mut unseen = 0;
    for round in 1..=rounds {
        shared.go.0.store(round, Ordering::Release);
        // The publisher hears of the round some hundred cycles later.
        shake(round, 512);
        match pair {
            Pair::Asymmetric => {
                wake::announce(|place| place(&shared.asleep.0), round, &SleeperBarrier)
            }
            Pair::Changing => wake::announce(|place| place(&shared.asleep.0), round, &asking),
            Pair::Broken => wake::announce(|place| place(&shared.asleep.0), round, &FenceAlone),
        }
        let seen = shared.tail.0.load(Ordering::Acquire) == round;
        let done = wait_for(&shared.done.0, |done| done >> 1 == round);
        unseen += u64::from(!seen && done & 1 == 0);
        wake::withdraw(|place| place(&shared.asleep.0));
    }
    let mut status = 0;
    // SAFETY: the child that was forked above, waited for once.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0));
    unseen
}

/// The sleeper's side without the kernel's help.
struct FenceAlone;

impl Barrier for FenceAlone {
    fn light(&self) {
        fence(Ordering::SeqCst);
    }
    fn heavy(&self) {
        fence(Ordering::SeqCst);
    }
}

#[test]
fn nobody_sleeps_through_a_message_that_is_published_without_a_fence() {
    assert_eq!(play(Pair::Asymmetric, rounds()), 0);
}

#[test]
fn nor_while_the_publisher_changes_sides() {
    assert_eq!(play(Pair::Changing, rounds()), 0);
}

/// That the run can tell: with one fence too few it finds rounds in which both sides missed the other.
#[test]
#[ignore = "shows what the run can see; part of `make soak`"]
fn soak_one_fence_too_few_is_seen() {
    let unseen = play(Pair::Broken, rounds());
    println!("without membarrier: {unseen} of {} rounds unseen by both sides", rounds());
    if unseen == 0 {
        eprintln!(
            "NOT RUN: this machine showed no reordering, so the litmus run proves nothing here"
        );
    }
}
