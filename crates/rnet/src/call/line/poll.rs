//! Async calls: tasks that are woken, and the thread that reads for them.

use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use rnet_core::Result;
use rnet_node::sync;

use super::super::Bytes;
use super::super::book::Book;
use super::super::locked::{Locked, lock};
use super::super::open_call::{Open, Wanted};
use super::{LOOK, Line};

impl Line {
    /// As [`Line::next`] without a wait: the task is woken.
    pub fn poll(
        self: &Arc<Line>,
        context: &mut Context<'_>,
        (number, wanted): (u32, Wanted),
        after: Duration,
    ) -> Option<Result<Option<Bytes>>> {
        let mut book = lock(&self.book);
        let Some(open) = book.calls.get_mut(&number) else {
            return Some(Err(Line::cancelled(&book)));
        };
        if let Some(next) = open.next(wanted) {
            return Some(next);
        }
        if open.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            Line::time_out(&mut book, number, after);
            return book.calls.get_mut(&number).and_then(|open| open.next(wanted));
        }
        self.arm(book, context, (number, wanted)).err().map(Err)
    }

    /// Whether the call has something next; if not, the task is woken once it has.
    pub fn poll_ready(
        self: &Arc<Line>,
        context: &mut Context<'_>,
        (number, wanted): (u32, Wanted),
    ) -> bool {
        let book = lock(&self.book);
        let over = |open: &Open| open.deadline.is_some_and(|deadline| deadline <= Instant::now());
        book.has_next(number, wanted)
            || book.calls.get(&number).is_none_or(|open| over(open))
            // Without a thread nobody would wake it: who looks is told.
            || self.arm(book, context, (number, wanted)).is_err()
    }

    fn arm(
        self: &Arc<Line>,
        mut book: Locked<'_>,
        context: &mut Context<'_>,
        (number, wanted): (u32, Wanted),
    ) -> Result<()> {
        let Some(open) = book.calls.get_mut(&number) else { return Ok(()) };
        open.wakers[wanted as usize] = Some(context.waker().clone());
        let (leading, waits) = (book.leading, book.driver_waits);
        drop(book);
        let mut driver = sync::lock(&self.driver);
        if driver.is_none() {
            let this = self.clone();
            *driver = Some(rnet_shm::thread::spawn("rnet-call", move || this.drive())?);
        }
        drop(driver);
        if waits {
            self.driver_bell.notify_one();
        }
        if leading {
            self.reading.interrupt();
        }
        Ok(())
    }

    /// Reads for async calls while there are any and nobody else does, and ends their time.
    fn drive(&self) {
        let mut book = lock(&self.book);
        while !book.closed {
            let now = Instant::now();
            let Book { calls, woken, .. } = &mut *book;
            let awaited = calls.values_mut().filter(|open| open.is_awaited());
            let mut first = None;
            for open in awaited {
                if open.deadline.is_some_and(|deadline| deadline <= now) {
                    // Its task sees that the time is over.
                    woken.extend(open.wakers.iter_mut().filter_map(Option::take));
                } else {
                    first = [first, open.deadline].into_iter().flatten().min();
                }
            }
            let any = book.calls.values().any(|open| open.is_awaited());
            if any && !book.leading {
                book.leading = true;
                let soon = now + LOOK;
                let until = match book.any_unsent() {
                    true => Some(first.map_or(soon, |first| first.min(soon))),
                    false => first,
                };
                drop(book);
                (book, _) = self.read(until, false);
                book.leading = false;
                book.wake_one();
            } else {
                book.driver_waits = true;
                book = book.wait(&self.driver_bell, first);
                book.driver_waits = false;
            }
        }
    }
}
