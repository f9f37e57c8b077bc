//! The descriptor of a stream: readable while the stream may have something.
//!
//! The dispatch thread that wakes the stream's task wakes an [`Event`] in its place. **Level**: the event stays
//! raised until a receive finds nothing. It is then lowered, and the stream asked once more; so what came
//! between the look and the lowering raises it again, and nothing is slept through.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rnet_core::Result;
use rnet_shm::event::Event;

/// The event of a stream, once its descriptor was asked for.
#[derive(Debug, Default)]
pub struct ReadyFd(Option<Arc<Event>>);

impl ReadyFd {
    /// The event, made and armed if it is not there yet. `poll_ready` is that of the stream.
    pub fn open(&mut self, poll_ready: impl FnOnce(&mut Context<'_>) -> Poll<()>) -> Result<()> {
        if self.0.is_none() {
            let event = Arc::new(Event::new()?);
            arm(&event, poll_ready);
            self.0 = Some(event);
        }
        Ok(())
    }

    /// The descriptor, if it was opened.
    pub fn get(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(|event| event.as_fd())
    }

    /// A receive has found nothing.
    pub fn drained(&self, poll_ready: impl FnOnce(&mut Context<'_>) -> Poll<()>) {
        if let Some(event) = self.0.as_ref().filter(|event| event.lower()) {
            arm(event, poll_ready);
        }
    }
}

fn arm(event: &Arc<Event>, poll_ready: impl FnOnce(&mut Context<'_>) -> Poll<()>) {
    let waker = Waker::from(event.clone());
    if poll_ready(&mut Context::from_waker(&waker)).is_ready() {
        event.raise();
    }
}
