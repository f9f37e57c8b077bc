//! Async calls: wakes their tasks, and reads for them on a thread.

use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use rnet_core::Result;
use rnet_node::sync;

use super::super::Bytes;
use super::super::calls_guard::{CallsGuard, lock};
use super::super::open_call::{CallOutput, OpenCall};
use super::super::open_calls::OpenCalls;
use super::{ClientCore, SERVER_POLL_INTERVAL};

impl ClientCore {
    /// As [`ClientCore::next`] without waiting: the task is woken later.
    pub fn poll(
        self: &Arc<ClientCore>,
        context: &mut Context<'_>,
        (number, output): (u32, CallOutput),
        after: Duration,
    ) -> Option<Result<Option<Bytes>>> {
        let mut calls = lock(&self.calls);
        let Some(open) = calls.by_number.get_mut(&number) else {
            return Some(Err(ClientCore::cancelled(&calls)));
        };
        if let Some(next) = open.next(output) {
            return Some(next);
        }
        if open.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            ClientCore::time_out(&mut calls, number, after);
            return calls.by_number.get_mut(&number).and_then(|open| open.next(output));
        }
        self.register_waker(calls, context, (number, output)).err().map(Err)
    }

    /// Whether the call has a result; if not, the task is woken once it has.
    pub fn poll_ready(
        self: &Arc<ClientCore>,
        context: &mut Context<'_>,
        (number, output): (u32, CallOutput),
    ) -> bool {
        let calls = lock(&self.calls);
        let over =
            |open: &OpenCall| open.deadline.is_some_and(|deadline| deadline <= Instant::now());
        calls.has_next(number, output)
            || calls.by_number.get(&number).is_none_or(|open| over(open))
            // Without a thread, nothing would wake the task, so it gets the error.
            || self.register_waker(calls, context, (number, output)).is_err()
    }

    fn register_waker(
        self: &Arc<ClientCore>,
        mut calls: CallsGuard<'_>,
        context: &mut Context<'_>,
        (number, output): (u32, CallOutput),
    ) -> Result<()> {
        let Some(open) = calls.by_number.get_mut(&number) else { return Ok(()) };
        open.wakers[output as usize] = Some(context.waker().clone());
        let (has_reader, waits) = (calls.has_reader, calls.async_reader_waits);
        drop(calls);
        let mut async_reader = sync::lock(&self.async_reader);
        if async_reader.is_none() {
            let this = self.clone();
            *async_reader =
                Some(rnet_shm::os::thread::spawn("rnet-call", move || this.read_for_tasks())?);
        }
        drop(async_reader);
        if waits {
            self.async_reader_condvar.notify_one();
        }
        if has_reader {
            self.wait_handle.interrupt();
        }
        Ok(())
    }

    /// Reads for async calls while any exist and no other thread reads; enforces their time limits.
    fn read_for_tasks(&self) {
        let mut calls = lock(&self.calls);
        while !calls.closed {
            let now = Instant::now();
            let OpenCalls { by_number, to_wake, .. } = &mut *calls;
            let awaited = by_number.values_mut().filter(|open| open.has_waiting_task());
            let mut first = None;
            for open in awaited {
                if open.deadline.is_some_and(|deadline| deadline <= now) {
                    // Its task sees that the time limit has passed.
                    to_wake.extend(open.wakers.iter_mut().filter_map(Option::take));
                } else {
                    first = [first, open.deadline].into_iter().flatten().min();
                }
            }
            let any = calls.by_number.values().any(|open| open.has_waiting_task());
            if any && !calls.has_reader {
                calls.has_reader = true;
                let soon = now + SERVER_POLL_INTERVAL;
                let until = match calls.any_unsent() {
                    true => Some(first.map_or(soon, |first| first.min(soon))),
                    false => first,
                };
                drop(calls);
                (calls, _) = self.read_answers(until, false);
                calls.has_reader = false;
                calls.wake_one();
            } else {
                calls.async_reader_waits = true;
                calls = calls.wait(&self.async_reader_condvar, first);
                calls.async_reader_waits = false;
            }
        }
    }
}
