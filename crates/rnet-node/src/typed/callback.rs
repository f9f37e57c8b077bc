//! Subscribers with a callback that a dispatch thread runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dispatch::Task;
use crate::receiver::{Receiver, is_refusal};
use crate::trace;
use crate::wait_source::WaitSource;
use rnet_core::{Error, Lane, Result};

use super::sample::Sample;
use super::subscriber::{Decode, Subscriber};
use crate::{Message, Subscription};

/// Messages that one subscriber may take before the others get their turn.
const MAX_MESSAGES_PER_TURN: usize = 32;

/// Result of a check for a message.
enum StepResult {
    Continue,
    Empty,
    /// The turn is over; whether there was work.
    Stop(bool),
}

/// A subscriber with a callback.
struct CallbackTask<T: Message + ?Sized, F> {
    id: u64,
    receiver: Receiver,
    callback: F,
    finished: bool,
    /// Set when the [`Subscription`] is dropped, possibly by the callback itself.
    cancelled: Arc<AtomicBool>,
    buffer: T::DecodeBuffer,
}

impl<T, F> Task for CallbackTask<T, F>
where
    T: Message + ?Sized,
    F: FnMut(Result<Sample<'_, T>>) + Send + 'static,
{
    fn id(&self) -> u64 {
        self.id
    }
    fn describe(&self) -> String {
        format!("the callback of {}", self.receiver.topic())
    }
    fn set_bell(&mut self, bell: u64) {
        self.receiver.set_bell(bell);
    }
    fn lane(&self) -> Option<Lane> {
        self.receiver.lane()
    }
    fn run(&mut self, lane: Lane, must_yield: &dyn Fn() -> bool) -> bool {
        // Before the first message of a publisher, and after its end.
        let count = self.receiver.count_publishers();
        self.receiver.state.matched_publishers.set_count(count);
        let busy = self.run_turn(lane, must_yield);
        self.receiver.state.matched_publishers.set_count(self.receiver.admitted_count());
        busy
    }
    fn wait_sources(&self, visit: &mut dyn FnMut(&dyn WaitSource)) {
        visit(&self.receiver);
    }
    fn is_finished(&self) -> bool {
        self.finished
    }
    fn move_to(self: Box<Self>, lane: Lane) {
        let node = self.receiver.node().clone();
        node.dispatcher(lane).add(self);
    }
}

impl<T, F> CallbackTask<T, F>
where
    T: Message + ?Sized,
    F: FnMut(Result<Sample<'_, T>>) + Send + 'static,
{
    fn run_turn(&mut self, lane: Lane, must_yield: &dyn Fn() -> bool) -> bool {
        for done in 0..MAX_MESSAGES_PER_TURN {
            // At least one message: timers that are always due must not block every message.
            if done > 0 && must_yield() {
                return true;
            }
            if self.cancelled.load(Ordering::Acquire) {
                self.finished = true;
                return true;
            }
            let step = match self.receiver.state.needs_attention() {
                true => self.step::<true>(lane),
                false => self.step::<false>(lane),
            };
            match step {
                StepResult::Continue => {}
                StepResult::Empty => return done > 0,
                StepResult::Stop(busy) => return busy,
            }
        }
        true
    }

    /// Processes one message, if there is one. Only `SLOW_PATH` checks more than messages.
    #[inline]
    fn step<const SLOW_PATH: bool>(&mut self, lane: Lane) -> StepResult {
        if SLOW_PATH {
            self.receiver.drain_inbox();
        }
        // The first publisher may have matched just now, on the other lane: then even its first message must
        // not run here.
        if self.lane().is_some_and(|now| now != lane) {
            return StepResult::Stop(true);
        }
        let mut trace = None;
        let result = match self.receiver.advance_channels() {
            Ok(None) => return StepResult::Empty,
            Ok(Some(at)) => {
                if SLOW_PATH {
                    trace = self.receiver.start_trace(at);
                }
                self.receiver.sample::<T>(at, &mut self.buffer)
            }
            Err(error) => Err(error),
        };
        // Until the user drops a sample, there is nothing to do here.
        let starved = matches!(result, Err(Error::TooManyPins { .. }));
        if SLOW_PATH && let Some(trace) = &mut trace {
            trace.begin();
        }
        // The dispatch thread drops a callback that panics, with its subscription.
        (self.callback)(result);
        if self.receiver.is_from_parent() {
            return StepResult::Stop(true);
        }
        if SLOW_PATH && let Some(trace) = trace {
            trace::end(&self.receiver.state, self.receiver.id, trace);
        }
        if starved { StepResult::Stop(false) } else { StepResult::Continue }
    }
}

impl<T: Message + ?Sized> Subscriber<T> {
    /// Calls `callback` for each message, on the dispatch thread of the topic's lane, until the
    /// returned [`Subscription`] is dropped.
    ///
    /// The callbacks of one lane share a thread: a slow callback delays the others of its lane, but not those
    /// of the other lane. A callback that panics is not called again. If the thread cannot be started,
    /// [`Subscription::error`] returns the reason, and the start is retried. Errors of single publishers
    /// (`PeerLost`, `Detached`, …) are counted and shown by the tools; use [`Subscriber::on_result`] to
    /// receive them.
    pub fn on(self, mut callback: impl FnMut(Sample<'_, T>) + Send + 'static) -> Subscription {
        self.on_result(move |result| {
            if let Ok(sample) = result {
                callback(sample);
            }
        })
    }

    /// As [`Subscriber::on`], but also called with each error.
    pub fn on_result(
        self,
        callback: impl FnMut(Result<Sample<'_, T>>) + Send + 'static,
    ) -> Subscription {
        let (mut receiver, core, buffer) = self.into_parts();
        let forked = receiver.is_from_parent();
        let (id, topic) = (core.state.next_task(), receiver.topic().clone());
        let (file, state) = (receiver.file().clone(), receiver.state.clone());
        if !forked {
            receiver.drain_inbox();
            state
                .matched_publishers
                .retain_refused(receiver.errors.iter().filter(|e| is_refusal(e)).cloned());
        }
        // Without a known publisher the lane is not known either: the urgent thread waits for the first one,
        // because that thread is never delayed.
        let lane = receiver.lane().unwrap_or(Lane::Urgent);
        let cancelled = Arc::new(AtomicBool::new(false));
        let finished = false;
        let task =
            CallbackTask { id, receiver, callback, finished, cancelled: cancelled.clone(), buffer };
        if forked {
            // This process has no thread to run the task, and what the task holds belongs to the parent.
            std::mem::forget(task);
        } else {
            core.state.dispatcher(lane).add(Box::new(task));
        }
        Subscription { id, topic, file, state, cancelled, core: Some(core) }
    }
}
