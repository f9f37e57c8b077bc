//! A mutex for what one thread may hold for long, because it waits for messages with it.
//!
//! - Threads get it in the order in which they asked: a thread that lets go of it and asks again
//!   is behind those who asked meanwhile.
//! - Who only wants a look ([`Fair::lock_for_a_look`]) is ahead of those who want to wait, and is
//!   given a chance to ask the holder to let go. What it asks of one holder the next does not
//!   hear: who got the lock for a look, and then waits with it, has to see that nobody stands
//!   behind it ([`Guard::is_wanted`]).
//! - Who wants to wait ([`Fair::lock_to_wait`]) gives up when its time is over, or when a signal
//!   comes, for which Python may have a handler.
//!
//! Never taken with the GIL held, except by [`Fair::try_lock`]: its holder may want the GIL next.
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

use crate::futex::{Parker, Slept};
use crate::lock::lock;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody may stand in the queue.
const WANTED: u32 = 2;

#[derive(Debug)]
pub(crate) struct Fair<T> {
    state: AtomicU32,
    /// Changed only with `state` at [`WANTED`] or about to be.
    queue: Mutex<Queue>,
    value: UnsafeCell<T>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Who wants a look.
    looks: VecDeque<Parker>,
    /// Who wants to wait; after those.
    turns: VecDeque<Parker>,
}

impl Queue {
    fn pop(&mut self) -> Option<Parker> {
        self.looks.pop_front().or_else(|| self.turns.pop_front())
    }

    fn is_empty(&self) -> bool {
        self.looks.is_empty() && self.turns.is_empty()
    }
}

// SAFETY: the value is used by whoever has the guard, of which there is one at a time.
unsafe impl<T: Send> Sync for Fair<T> {}

impl<T> Fair<T> {
    pub(crate) fn new(value: T) -> Fair<T> {
        let (state, queue) = (AtomicU32::new(FREE), Mutex::default());
        Fair { state, queue, value: UnsafeCell::new(value) }
    }

    /// Takes the lock if it is free, with or without the GIL.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire: what the last holder did is seen.
        let had = self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        had.is_ok().then(|| Guard { lock: self, _stays: PhantomData })
    }

    /// Takes the lock, ahead of those who want to wait with it; `ask` is run if it is taken, once
    /// the place in the queue is sure. Release the GIL first.
    pub(crate) fn lock_for_a_look(&self, ask: impl FnOnce()) -> Guard<'_, T> {
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        let place = match self.queue_up(|queue| &mut queue.looks) {
            Ok(guard) => return guard,
            Err(place) => place,
        };
        ask();
        while place.sleep(None) != Slept::Woken {}
        Guard { lock: self, _stays: PhantomData }
    }

    /// Takes the lock to wait with it, in turn with others who do; says what is left of `limit`, too.
    /// Release the GIL first.
    pub(crate) fn lock_to_wait(
        &self,
        limit: Duration,
        timed_out: impl FnOnce() -> Error,
    ) -> rnet::Result<(Guard<'_, T>, Duration)> {
        if let Some(guard) = self.try_lock() {
            return Ok((guard, limit));
        }
        let began = Instant::now();
        let guard = self.lock_in_turn(limit)?.ok_or_else(timed_out)?;
        Ok((guard, limit.saturating_sub(began.elapsed())))
    }

    /// Takes the lock to wait with it and with others: not for long, since nobody hears those meanwhile.
    /// For `turn` in turn, after that ahead of those who want to wait. Release the GIL first.
    pub(crate) fn lock_with_others(
        &self,
        turn: Duration,
        ask: impl FnOnce(),
    ) -> rnet::Result<Guard<'_, T>> {
        let guard = if turn.is_zero() { None } else { self.lock_in_turn(turn)? };
        Ok(guard.unwrap_or_else(|| self.lock_for_a_look(ask)))
    }

    /// Takes the lock, in turn; `None` if that is not possible within `limit`. Release the GIL first.
    ///
    /// # Errors
    /// `Interrupted` when a signal comes.
    pub(crate) fn lock_in_turn(&self, limit: Duration) -> rnet::Result<Option<Guard<'_, T>>> {
        if let Some(guard) = self.try_lock() {
            return Ok(Some(guard));
        }
        let place = match self.queue_up(|queue| &mut queue.turns) {
            Ok(guard) => return Ok(Some(guard)),
            Err(place) => place,
        };
        let why = match place.sleep(Some(limit)) {
            Slept::Woken => return Ok(Some(Guard { lock: self, _stays: PhantomData })),
            Slept::TimedOut => Ok(None),
            Slept::Signal => Err(Error::Interrupted),
        };
        if self.give_up(&place) {
            return why;
        }
        // The lock was given to us meanwhile.
        while place.sleep(None) != Slept::Woken {}
        Ok(Some(Guard { lock: self, _stays: PhantomData }))
    }

    /// Stands in the queue; or has the lock, if it became free meanwhile.
    fn queue_up(
        &self,
        line: impl FnOnce(&mut Queue) -> &mut VecDeque<Parker>,
    ) -> Result<Guard<'_, T>, Parker> {
        let mut queue = lock(&self.queue);
        // Whoever lets go from here on finds WANTED, and then waits for the queue.
        if self.state.swap(WANTED, Ordering::Acquire) == FREE {
            // The queue was empty, or it would have been given to the first.
            self.state.store(HELD, Ordering::Relaxed);
            return Ok(Guard { lock: self, _stays: PhantomData });
        }
        let place = Parker::default();
        line(&mut queue).push_back(place.clone());
        Err(place)
    }

    /// Leaves the queue of those who want to wait; `false` if the lock was given to us meanwhile.
    fn give_up(&self, place: &Parker) -> bool {
        let turns = &mut lock(&self.queue).turns;
        let at = turns.iter().position(|other| other.is(place));
        // An empty queue under WANTED is found by the holder when it lets go.
        at.and_then(|at| turns.remove(at)).is_some()
    }

    #[cold]
    fn pass_on(&self) {
        let mut queue = lock(&self.queue);
        let Some(first) = queue.pop() else {
            // Release: what we did is seen by who takes it.
            self.state.store(FREE, Ordering::Release);
            return;
        };
        if queue.is_empty() {
            self.state.store(HELD, Ordering::Relaxed);
        }
        drop(queue);
        // The word lives on in our `Arc`, whatever its owner does.
        first.wake();
    }
}

/// Whoever has it has the lock.
#[derive(Debug)]
pub(crate) struct Guard<'a, T> {
    lock: &'a Fair<T>,
    /// Stays in its thread, as the guards of other locks do.
    _stays: PhantomData<*const ()>,
}

impl<T> Guard<'_, T> {
    /// Whether somebody wants a look. Who comes after this was asked asks for it himself.
    pub(crate) fn is_wanted(&self) -> bool {
        // Relaxed: the queue says what is so.
        self.lock.state.load(Ordering::Relaxed) == WANTED
            && !lock(&self.lock.queue).looks.is_empty()
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time, and this borrows it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time, and this borrows it mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let state = &self.lock.state;
        // Release: what we did is seen by who takes it.
        if state.compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.lock.pass_on();
        }
    }
}
