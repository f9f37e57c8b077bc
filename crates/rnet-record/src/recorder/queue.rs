//! What waits between who follows and who writes, bounded by bytes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What an entry of the queue takes beside its bytes.
const ENTRY_LEN_BYTES: usize = 128;
/// The writer is woken for this much; else it looks by itself.
const WAKE_LEN_BYTES: usize = 512 << 10;
/// A message from this length on is moved into the queue, and a shorter one copied.
pub const LARGE_LEN_BYTES: usize = 64 << 10;
/// Memory of so many is kept at most.
const MAX_SPARE: usize = 2;

/// A queue with several that put and one that takes. Entries come and go many at a time: a lock for each of them would
/// cost as much as what is done with a small message.
pub struct Queue<T> {
    inner: Mutex<Inner<T>>,
    ready: Condvar,
    limit: usize,
    /// Bytes of all, those that the writer has taken and not done with among them. Nothing else is read by it.
    len: AtomicUsize,
}

struct Inner<T> {
    items: VecDeque<T>,
    /// Bytes of those in `items`.
    waiting: usize,
    /// Memory of large messages that were written: a new one each time would cost as much as another copy.
    spare: Vec<Vec<u8>>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// A queue for `limit` bytes. Entries are taken in until it is full, also those that are longer than its rest.
    pub fn new(limit: usize) -> Self {
        let (items, spare) = (VecDeque::new(), Vec::new());
        let inner = Inner { items, waiting: 0, spare, is_closed: false };
        Queue { inner: Mutex::new(inner), ready: Condvar::new(), limit, len: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // Whoever panicked left whole entries.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is full with `more` bytes that are not in it yet; nothing should be put then.
    pub fn is_full(&self, more: usize) -> bool {
        self.len.load(Ordering::Relaxed) + more >= self.limit
    }

    /// Puts an entry with this many bytes.
    pub fn put(&self, item: T, bytes: usize) {
        self.put_all(&mut Vec::from([item]), bytes);
    }

    /// Puts entries in their order, which have this many bytes together.
    pub fn put_all(&self, items: &mut Vec<T>, bytes: usize) {
        if items.is_empty() {
            return;
        }
        let len = bytes + items.len() * ENTRY_LEN_BYTES;
        // Before the writer can be done with any.
        self.len.fetch_add(len, Ordering::Relaxed);
        let mut inner = self.lock();
        inner.items.extend(items.drain(..));
        let before = inner.waiting;
        inner.waiting += len;
        if before < WAKE_LEN_BYTES && inner.waiting >= WAKE_LEN_BYTES {
            self.ready.notify_one();
        }
    }

    /// Nothing more will be put.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.ready.notify_one();
    }

    /// Takes all that wait into `items`, which is empty, after `limit` or when much has come. Whether anything will ever
    /// come.
    pub fn take(&self, limit: Duration, items: &mut VecDeque<T>) -> bool {
        let enough = |inner: &mut Inner<T>| inner.waiting < WAKE_LEN_BYTES && !inner.is_closed;
        let waited = self.ready.wait_timeout_while(self.lock(), limit, enough);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        inner.waiting = 0;
        std::mem::swap(&mut inner.items, items);
        !(items.is_empty() && inner.is_closed)
    }

    /// So many entries that were taken are done with, which have this many bytes together.
    pub fn release(&self, entries: usize, bytes: usize) {
        self.len.fetch_sub(bytes + entries * ENTRY_LEN_BYTES, Ordering::Relaxed);
    }

    /// Memory for a large message.
    pub fn spare(&self) -> Vec<u8> {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Gives the memory of a message back.
    pub fn recycle(&self, bytes: Vec<u8>) {
        if bytes.len() < LARGE_LEN_BYTES || bytes.capacity() > self.limit / 8 {
            return;
        }
        let mut inner = self.lock();
        if inner.spare.len() < MAX_SPARE {
            inner.spare.push(bytes);
        }
    }

    /// Bytes that are held now.
    pub fn len_bytes(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}
