//! Where the records of a traced subscription go; `trace` says what this is for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sync::lock;
use rnet_core::{Meta, TraceRecord};
use rnet_shm::publisher::Writer;

/// The publisher of the records of one subscription.
pub struct Outlet {
    writer: Writer,
    /// Takes the endpoint back.
    close: Option<Box<dyn FnOnce() + Send>>,
}

impl Outlet {
    /// Of this writer; `close` is called at its end.
    pub fn new(writer: Writer, close: impl FnOnce() + Send + 'static) -> Outlet {
        Outlet { writer, close: Some(Box::new(close)) }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if let Some(close) = self.close.take() {
            close();
        }
    }
}

/// Where a subscription's records go; shared by the thread that receives and the control thread.
#[derive(Default)]
pub struct TraceSlot {
    open: Mutex<Open>,
    /// Counts the outlets: a message that began before one was opened ends in no record.
    session: AtomicU32,
}

#[derive(Default)]
struct Open {
    outlet: Option<Outlet>,
    /// The subscription has ended.
    closed: bool,
}

impl TraceSlot {
    /// Puts an outlet there, or takes it away. The one that was there is dropped when nothing is locked.
    pub fn set(&self, outlet: Option<Outlet>) {
        let mut open = lock(&self.open);
        let over = match open.closed {
            true => outlet,
            false => std::mem::replace(&mut open.outlet, outlet),
        };
        self.session.fetch_add(1, Ordering::Relaxed);
        drop(open);
        drop(over);
    }

    /// Takes the outlet away for good.
    pub fn close(&self) {
        let mut open = lock(&self.open);
        open.closed = true;
        let outlet = open.outlet.take();
        drop(open);
        drop(outlet);
    }

    /// Whether records are wanted.
    pub fn is_open(&self) -> bool {
        lock(&self.open).outlet.is_some()
    }

    /// Which outlet it is, of all that were there.
    pub fn session(&self) -> u32 {
        self.session.load(Ordering::Relaxed)
    }

    /// Writes a record; `false` if nobody wants any.
    pub fn put(&self, record: TraceRecord) -> bool {
        let mut open = lock(&self.open);
        let Some(outlet) = &mut open.outlet else { return false };
        // It waits for nobody. Without memory there is no record, and a number in the next shows it. Its stamp is what
        // the record says: a tracer on another host finds by both how far apart the clocks are.
        let stamp = Some(record.written_ns);
        let _ = outlet.writer.send_with(&record.to_bytes(), &Meta::default(), stamp);
        true
    }
}
