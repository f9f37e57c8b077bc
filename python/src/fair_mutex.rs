//! A mutex for data that one thread may hold for long, because it waits for messages with it.
//!
//! - Threads get the lock in the order of their requests: a thread that releases it and requests it again
//!   queues behind the requests made meanwhile.
//! - A brief request ([`FairMutex::lock_briefly`]) goes ahead of waits, and can ask the holder to release the
//!   lock. Only the current holder gets that request. So a thread that took the lock briefly and then waits
//!   with it must check that no other brief request is queued ([`FairMutexGuard::has_brief_waiter`]).
//! - A wait ([`FairMutex::lock_to_wait`]) gives up at its time limit, or on a signal, for which Python may
//!   have a handler.
//!
//! Never taken with the GIL held, except by [`FairMutex::try_lock`]: the holder may need the GIL next.
//!
//! Without contention, the lock is one atomic word. Waiters queue, and the thread that unlocks passes the
//! lock directly to the first of them, so that no other thread can barge in.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rnet::Error;

use crate::futex::{Parker, SleepEnd};
use crate::lock::lock;

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and the queue may contain waiters.
const CONTENDED: u32 = 2;

#[derive(Debug)]
pub(crate) struct FairMutex<T> {
    state: AtomicU32,
    /// Changed only with `state` at [`CONTENDED`] or about to be.
    queue: Mutex<Queue>,
    value: UnsafeCell<T>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Brief requests.
    brief: VecDeque<Parker>,
    /// Requests of waits; served after the brief ones.
    waits: VecDeque<Parker>,
}

impl Queue {
    fn pop(&mut self) -> Option<Parker> {
        self.brief.pop_front().or_else(|| self.waits.pop_front())
    }

    fn is_empty(&self) -> bool {
        self.brief.is_empty() && self.waits.is_empty()
    }
}

// SAFETY: only the holder of the guard uses the value, and one guard exists at a time.
unsafe impl<T: Send> Sync for FairMutex<T> {}

impl<T> FairMutex<T> {
    pub(crate) fn new(value: T) -> FairMutex<T> {
        let (state, queue) = (AtomicU32::new(UNLOCKED), Mutex::default());
        FairMutex { state, queue, value: UnsafeCell::new(value) }
    }

    /// Takes the lock if it is free, with or without the GIL.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<FairMutexGuard<'_, T>> {
        // Acquire: makes the writes of the last holder visible.
        let had =
            self.state.compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed);
        had.is_ok().then(|| FairMutexGuard { lock: self, _stays: PhantomData })
    }

    /// Takes the lock ahead of the threads that want to wait with it. If it is taken, `ask` runs after this
    /// thread has joined the queue. Release the GIL first.
    pub(crate) fn lock_briefly(&self, ask: impl FnOnce()) -> FairMutexGuard<'_, T> {
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        let place = match self.enqueue(|queue| &mut queue.brief) {
            Ok(guard) => return guard,
            Err(place) => place,
        };
        ask();
        while place.sleep(None) != SleepEnd::Woken {}
        FairMutexGuard { lock: self, _stays: PhantomData }
    }

    /// Takes the lock in order to wait with it, in turn with other waiters. Also returns the rest of `limit`.
    /// Release the GIL first.
    pub(crate) fn lock_to_wait(
        &self,
        limit: Duration,
        timed_out: impl FnOnce() -> Error,
    ) -> rnet::Result<(FairMutexGuard<'_, T>, Duration)> {
        if let Some(guard) = self.try_lock() {
            return Ok((guard, limit));
        }
        let began = Instant::now();
        let guard = self.lock_in_turn(limit)?.ok_or_else(timed_out)?;
        Ok((guard, limit.saturating_sub(began.elapsed())))
    }

    /// Takes the lock in order to wait with it together with other locks. The caller must not wait here for
    /// long, because requests for those other locks are not noticed meanwhile. It waits for `turn` in turn,
    /// and after that ahead of the threads that want to wait. Release the GIL first.
    pub(crate) fn lock_for_wait_set(
        &self,
        turn: Duration,
        ask: impl FnOnce(),
    ) -> rnet::Result<FairMutexGuard<'_, T>> {
        let guard = if turn.is_zero() { None } else { self.lock_in_turn(turn)? };
        Ok(guard.unwrap_or_else(|| self.lock_briefly(ask)))
    }

    /// Takes the lock in turn; `None` if that is not possible within `limit`. Release the GIL first.
    ///
    /// # Errors
    /// `Interrupted` when a signal comes.
    pub(crate) fn lock_in_turn(
        &self,
        limit: Duration,
    ) -> rnet::Result<Option<FairMutexGuard<'_, T>>> {
        if let Some(guard) = self.try_lock() {
            return Ok(Some(guard));
        }
        let place = match self.enqueue(|queue| &mut queue.waits) {
            Ok(guard) => return Ok(Some(guard)),
            Err(place) => place,
        };
        let why = match place.sleep(Some(limit)) {
            SleepEnd::Woken => return Ok(Some(FairMutexGuard { lock: self, _stays: PhantomData })),
            SleepEnd::TimedOut => Ok(None),
            SleepEnd::Signal => Err(Error::Interrupted),
        };
        if self.leave_queue(&place) {
            return why;
        }
        // The lock was passed to this thread meanwhile.
        while place.sleep(None) != SleepEnd::Woken {}
        Ok(Some(FairMutexGuard { lock: self, _stays: PhantomData }))
    }

    /// Joins the queue, or takes the lock if it became free meanwhile.
    fn enqueue(
        &self,
        line: impl FnOnce(&mut Queue) -> &mut VecDeque<Parker>,
    ) -> Result<FairMutexGuard<'_, T>, Parker> {
        let mut queue = lock(&self.queue);
        // An unlocking thread finds CONTENDED from here on, and then waits for the queue.
        if self.state.swap(CONTENDED, Ordering::Acquire) == UNLOCKED {
            // The queue was empty; otherwise its first thread would hold the lock.
            self.state.store(LOCKED, Ordering::Relaxed);
            return Ok(FairMutexGuard { lock: self, _stays: PhantomData });
        }
        let place = Parker::default();
        line(&mut queue).push_back(place.clone());
        Err(place)
    }

    /// Leaves the queue of waits; `false` if the lock was passed to this thread meanwhile.
    fn leave_queue(&self, place: &Parker) -> bool {
        let turns = &mut lock(&self.queue).waits;
        let at = turns.iter().position(|other| other.is(place));
        // If the queue is now empty, the holder finds that out when it unlocks.
        at.and_then(|at| turns.remove(at)).is_some()
    }

    #[cold]
    fn hand_off(&self) {
        let mut queue = lock(&self.queue);
        let Some(first) = queue.pop() else {
            // Release: makes this thread's writes visible to the next holder.
            self.state.store(UNLOCKED, Ordering::Release);
            return;
        };
        if queue.is_empty() {
            self.state.store(LOCKED, Ordering::Relaxed);
        }
        drop(queue);
        // The atomic word stays alive in our `Arc`, even if the waiter drops its own.
        first.wake();
    }
}

/// Proof that its owner holds the lock.
#[derive(Debug)]
pub(crate) struct FairMutexGuard<'a, T> {
    lock: &'a FairMutex<T>,
    /// Not `Send`: a guard stays in its thread, as with other locks.
    _stays: PhantomData<*const ()>,
}

impl<T> FairMutexGuard<'_, T> {
    /// Whether a brief request is queued. A request made after this check interrupts the holder itself.
    pub(crate) fn has_brief_waiter(&self) -> bool {
        // Relaxed: the queue has the exact answer.
        self.lock.state.load(Ordering::Relaxed) == CONTENDED
            && !lock(&self.lock.queue).brief.is_empty()
    }
}

impl<T> Deref for FairMutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: one guard exists at a time, and this borrows it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for FairMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: one guard exists at a time, and this borrows it mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for FairMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let state = &self.lock.state;
        // Release: makes this thread's writes visible to the next holder.
        if state.compare_exchange(LOCKED, UNLOCKED, Ordering::Release, Ordering::Relaxed).is_err() {
            self.lock.hand_off();
        }
    }
}
