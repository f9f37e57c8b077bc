//! The destination of the records of a traced subscription; see [`crate::trace`].

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sync::lock;
use rnet_core::{Meta, TraceRecord};
use rnet_shm::channel::publisher::Writer;

/// The publisher of the records of one subscription.
pub struct TracePublisher {
    writer: Writer,
    /// Withdraws the endpoint.
    close: Option<Box<dyn FnOnce() + Send>>,
}

impl TracePublisher {
    /// Wraps this writer; `close` is called on drop.
    pub fn new(writer: Writer, close: impl FnOnce() + Send + 'static) -> TracePublisher {
        TracePublisher { writer, close: Some(Box::new(close)) }
    }
}

impl Drop for TracePublisher {
    fn drop(&mut self) {
        if let Some(close) = self.close.take() {
            close();
        }
    }
}

/// The destination of a subscription's records, shared by the receiving thread and the control thread.
#[derive(Default)]
pub struct TraceSlot {
    open: Mutex<SlotState>,
    /// Counts the publishers: a message received before a publisher was opened gets no record.
    session: AtomicU32,
}

#[derive(Default)]
struct SlotState {
    publisher: Option<TracePublisher>,
    /// The subscription is closed.
    closed: bool,
}

impl TraceSlot {
    /// Sets or removes the publisher. The old one is dropped after the lock is released.
    pub fn set(&self, publisher: Option<TracePublisher>) {
        let mut open = lock(&self.open);
        let over = match open.closed {
            true => publisher,
            false => std::mem::replace(&mut open.publisher, publisher),
        };
        self.session.fetch_add(1, Ordering::Relaxed);
        drop(open);
        drop(over);
    }

    /// Removes the publisher permanently.
    pub fn close(&self) {
        let mut open = lock(&self.open);
        open.closed = true;
        let publisher = open.publisher.take();
        drop(open);
        drop(publisher);
    }

    /// Whether records are wanted.
    pub fn is_open(&self) -> bool {
        lock(&self.open).publisher.is_some()
    }

    /// Number of the current publisher.
    pub fn session(&self) -> u32 {
        self.session.load(Ordering::Relaxed)
    }

    /// Writes a record; `false` if no records are wanted.
    pub fn put(&self, record: TraceRecord) -> bool {
        let mut open = lock(&self.open);
        let Some(publisher) = &mut open.publisher else { return false };
        // It does not wait. Without memory the record is dropped, and a number in the next record shows it.
        // Its stamp is the time in the record: a tracer on another host uses both to find the offset between
        // the clocks.
        let stamp = Some(record.written_ns);
        let _ = publisher.writer.send_with(&record.to_bytes(), &Meta::default(), stamp);
        true
    }
}
