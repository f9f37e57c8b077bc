//! Interrupting and resuming a wait for slow subscribers.

use rnet_shm::channel::publisher::InterruptedWait;

use super::Publisher;
use crate::{Interrupter, Message};

impl<T: Message + ?Sized> Publisher<T> {
    /// Lets a signal interrupt a wait for slow subscribers with `Interrupted`, in which case nothing was
    /// sent; otherwise the wait continues after the handler.
    ///
    /// Each such wait also ends with `Interrupted` after a second, because a signal may arrive while the
    /// publisher is awake. Check for signals and for interrupts by an [`Interrupter`], and send the message
    /// again after [`Publisher::resume_wait`].
    pub fn set_interruptible(&mut self, yes: bool) {
        self.writer.set_interruptible(yes);
    }

    /// The wait for slow subscribers that was just interrupted in a send or a loan; `None` if it did not
    /// wait.
    pub fn interrupted_wait(&self) -> Option<InterruptedWait> {
        self.writer.interrupted_wait()
    }

    /// Continues this wait with the next message: the limit of [`rnet_core::OnFull`] applies to all attempts
    /// together, from the start of the first. With `None`, and after each sent message, a new wait starts.
    ///
    /// Threads that share a publisher pass the wait of their own message before each attempt. A loan waits
    /// once when it is made and once when it is sent: after resuming the first wait, pass `None` before the
    /// second.
    pub fn resume_wait(&mut self, wait: Option<InterruptedWait>) {
        self.writer.resume_wait(wait);
    }

    /// A handle with which other threads can end this publisher's waits, in a send or a loan that waits for
    /// slow subscribers. Nothing is sent then.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::of_publisher(self.writer.interrupt_handle())
    }
}
