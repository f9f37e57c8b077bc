//! Where the records of a traced subscription go; `trace` says what this is for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sync::lock;
use rnet_core::{Meta, TraceRecord};
use rnet_shm::channel::publisher::Writer;

/// The publisher of the records of one subscription.
pub struct TracePublisher {
    writer: Writer,
    /// Takes the endpoint back.
    close: Option<Box<dyn FnOnce() + Send>>,
}

impl TracePublisher {
    /// Of this writer; `close` is called at its end.
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

/// Where a subscription's records go; shared by the thread that receives and the control thread.
#[derive(Default)]
pub struct TraceSlot {
    open: Mutex<SlotState>,
    /// Counts the publishers: a message that began before one was opened ends in no record.
    session: AtomicU32,
}

#[derive(Default)]
struct SlotState {
    publisher: Option<TracePublisher>,
    /// The subscription has ended.
    closed: bool,
}

impl TraceSlot {
    /// Puts a publisher there, or takes it away. The one that was there is dropped when nothing is locked.
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

    /// Takes the publisher away for good.
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

    /// Which publisher it is, of all that were there.
    pub fn session(&self) -> u32 {
        self.session.load(Ordering::Relaxed)
    }

    /// Writes a record; `false` if nobody wants any.
    pub fn put(&self, record: TraceRecord) -> bool {
        let mut open = lock(&self.open);
        let Some(publisher) = &mut open.publisher else { return false };
        // It waits for nobody. Without memory there is no record, and a number in the next shows it. Its stamp is what
        // the record says: a tracer on another host finds by both how far apart the clocks are.
        let stamp = Some(record.written_ns);
        let _ = publisher.writer.send_with(&record.to_bytes(), &Meta::default(), stamp);
        true
    }
}
