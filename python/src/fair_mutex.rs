//! A mutex for what one thread may hold for long, because it waits for messages with it.
//!
//! - Threads get it in the order in which they asked: a thread that lets go of it and asks again
//!   is behind those who asked meanwhile.
//! - Who only wants a look ([`FairMutex::lock_briefly`]) is ahead of those who want to wait, and is
//!   given a chance to ask the holder to let go. What it asks of one holder the next does not
//!   hear: who got the lock for a look, and then waits with it, has to see that nobody stands
//!   behind it ([`FairMutexGuard::has_brief_waiter`]).
//! - Who wants to wait ([`FairMutex::lock_to_wait`]) gives up when its time is over, or when a signal
//!   comes, for which Python may have a handler.
//!
//! Never taken with the GIL held, except by [`FairMutex::try_lock`]: its holder may want the GIL next.
//!
//! Free and taken are one word, which is all that happens while nobody waits. Those who wait
//! stand in a queue; who lets go gives the lock to the first of them,
//! so that nobody can get in between.

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
/// Locked, and somebody may stand in the queue.
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
    /// Who wants a look.
    brief: VecDeque<Parker>,
    /// Who wants to wait; after those.
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

// SAFETY: the value is used by whoever has the guard, of which there is one at a time.
unsafe impl<T: Send> Sync for FairMutex<T> {}

impl<T> FairMutex<T> {
    pub(crate) fn new(value: T) -> FairMutex<T> {
        let (state, queue) = (AtomicU32::new(UNLOCKED), Mutex::default());
        FairMutex { state, queue, value: UnsafeCell::new(value) }
    }

    /// Takes the lock if it is free, with or without the GIL.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<FairMutexGuard<'_, T>> {
        // Acquire: what the last holder did is seen.
        let had =
            self.state.compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed);
        had.is_ok().then(|| FairMutexGuard { lock: self, _stays: PhantomData })
    }

    /// Takes the lock, ahead of those who want to wait with it; `ask` is run if it is taken, once
    /// the place in the queue is sure. Release the GIL first.
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

    /// Takes the lock to wait with it, in turn with others who do; says what is left of `limit`, too.
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

    /// Takes the lock to wait with it and with others: not for long, since nobody hears those meanwhile.
    /// For `turn` in turn, after that ahead of those who want to wait. Release the GIL first.
    pub(crate) fn lock_for_wait_set(
        &self,
        turn: Duration,
        ask: impl FnOnce(),
    ) -> rnet::Result<FairMutexGuard<'_, T>> {
        let guard = if turn.is_zero() { None } else { self.lock_in_turn(turn)? };
        Ok(guard.unwrap_or_else(|| self.lock_briefly(ask)))
    }

    /// Takes the lock, in turn; `None` if that is not possible within `limit`. Release the GIL first.
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
        // The lock was given to us meanwhile.
        while place.sleep(None) != SleepEnd::Woken {}
        Ok(Some(FairMutexGuard { lock: self, _stays: PhantomData }))
    }

    /// Stands in the queue; or has the lock, if it became free meanwhile.
    fn enqueue(
        &self,
        line: impl FnOnce(&mut Queue) -> &mut VecDeque<Parker>,
    ) -> Result<FairMutexGuard<'_, T>, Parker> {
        let mut queue = lock(&self.queue);
        // Whoever lets go from here on finds CONTENDED, and then waits for the queue.
        if self.state.swap(CONTENDED, Ordering::Acquire) == UNLOCKED {
            // The queue was empty, or it would have been given to the first.
            self.state.store(LOCKED, Ordering::Relaxed);
            return Ok(FairMutexGuard { lock: self, _stays: PhantomData });
        }
        let place = Parker::default();
        line(&mut queue).push_back(place.clone());
        Err(place)
    }

    /// Leaves the queue of those who want to wait; `false` if the lock was given to us meanwhile.
    fn leave_queue(&self, place: &Parker) -> bool {
        let turns = &mut lock(&self.queue).waits;
        let at = turns.iter().position(|other| other.is(place));
        // An empty queue under CONTENDED is found by the holder when it lets go.
        at.and_then(|at| turns.remove(at)).is_some()
    }

    #[cold]
    fn hand_off(&self) {
        let mut queue = lock(&self.queue);
        let Some(first) = queue.pop() else {
            // Release: what we did is seen by who takes it.
            self.state.store(UNLOCKED, Ordering::Release);
            return;
        };
        if queue.is_empty() {
            self.state.store(LOCKED, Ordering::Relaxed);
        }
        drop(queue);
        // The word lives on in our `Arc`, whatever its owner does.
        first.wake();
    }
}

/// Whoever has it has the lock.
#[derive(Debug)]
pub(crate) struct FairMutexGuard<'a, T> {
    lock: &'a FairMutex<T>,
    /// Stays in its thread, as the guards of other locks do.
    _stays: PhantomData<*const ()>,
}

impl<T> FairMutexGuard<'_, T> {
    /// Whether somebody wants a look. Who comes after this was asked asks for it himself.
    pub(crate) fn has_brief_waiter(&self) -> bool {
        // Relaxed: the queue says what is so.
        self.lock.state.load(Ordering::Relaxed) == CONTENDED
            && !lock(&self.lock.queue).brief.is_empty()
    }
}

impl<T> Deref for FairMutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time, and this borrows it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for FairMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time, and this borrows it mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for FairMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let state = &self.lock.state;
        // Release: what we did is seen by who takes it.
        if state.compare_exchange(LOCKED, UNLOCKED, Ordering::Release, Ordering::Relaxed).is_err() {
            self.lock.hand_off();
        }
    }
}
