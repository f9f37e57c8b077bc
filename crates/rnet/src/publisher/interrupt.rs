//! Ending a wait for slow subscribers, and going on with it.

use std::time::Duration;

use super::Publisher;
use crate::{Interrupter, Message};

impl<T: Message + ?Sized> Publisher<T> {
    /// Lets a signal end a wait for slow subscribers with `Interrupted`, in which case nothing was
    /// sent; otherwise the wait goes on after the handler.
    ///
    /// Such a wait ends so after about a second, signal or not: one may come while the publisher is awake.
    /// Look for signals and send the message again: that goes on with the wait, so that the limit of
    /// [`crate::OnFull`] is for all attempts together.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.writer.set_interruptible(yes);
    }

    /// How long the attempts that ended with `Interrupted` have waited for slow subscribers; zero once a message was
    /// sent.
    pub fn interrupted_wait(&self) -> Duration {
        self.writer.interrupted_wait()
    }

    /// Has the next message's wait for slow subscribers go on with one that has lasted for `waited`, instead of the
    /// one that was interrupted last: for publishers that several threads share. Zero begins a wait of its own.
    pub fn resume_wait(&mut self, waited: Duration) {
        self.writer.resume_wait(waited);
    }

    /// A handle with which other threads can end this publisher's waits: a send or a loan that
    /// waits for slow subscribers. Nothing was sent then.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::of_publisher(self.writer.stop())
    }
}
