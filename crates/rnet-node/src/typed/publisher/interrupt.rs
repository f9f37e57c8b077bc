//! Ending a wait for slow subscribers, and going on with it.

use rnet_shm::channel::publisher::InterruptedWait;

use super::Publisher;
use crate::{Interrupter, Message};

impl<T: Message + ?Sized> Publisher<T> {
    /// Lets a signal interrupt a wait for slow subscribers with `Interrupted`, in which case nothing was sent;
    /// otherwise the wait continues after the handler.
    ///
    /// Each such wait then ends with `Interrupted` after a second, too, as a signal may come in a moment in which the
    /// publisher is awake. Look for signals, and for what an [`Interrupter`] was used for, and send the message again
    /// after [`Publisher::resume_wait`].
    pub fn set_interruptible(&mut self, yes: bool) {
        self.writer.set_interruptible(yes);
    }

    /// The wait for slow subscribers in which a send or a loan was just interrupted; `None` if it did not wait.
    pub fn interrupted_wait(&self) -> Option<InterruptedWait> {
        self.writer.interrupted_wait()
    }

    /// Continues this wait with the next message: the limit of [`rnet_core::OnFull`] applies to all attempts together, from
    /// the start of the first. With `None`, and after each sent message, a new wait starts.
    ///
    /// Threads that share a publisher give the wait of their own message before each attempt. A loan waits once when it
    /// is made and once when it is sent: after the first of these was resumed, give `None` before the second.
    pub fn resume_wait(&mut self, wait: Option<InterruptedWait>) {
        self.writer.resume_wait(wait);
    }

    /// A handle with which other threads can end this publisher's waits: a send or a loan that
    /// waits for slow subscribers. Nothing was sent then.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::of_publisher(self.writer.interrupt_handle())
    }
}
