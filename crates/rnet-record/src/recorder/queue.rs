//! A queue between the topic reader and the writer, bounded by bytes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Size of a queue entry without its bytes.
const ENTRY_LEN_BYTES: usize = 128;
/// The writer is woken at this size; otherwise it polls.
const WAKE_LEN_BYTES: usize = 512 << 10;
/// A message of at least this length is moved into the queue; a shorter one is copied.
pub const LARGE_LEN_BYTES: usize = 64 << 10;
/// Maximum number of spare buffers.
const MAX_SPARE: usize = 2;

/// A queue with several producers and one consumer. Entries are put and taken in batches: a lock per entry
/// would cost as much as processing a small message.
pub struct Queue<T> {
    inner: Mutex<Inner<T>>,
    ready: Condvar,
    limit: usize,
    /// Bytes of all entries, including those that the writer has taken but not released. No other data is
    /// synchronized by it.
    len: AtomicUsize,
}

struct Inner<T> {
    items: VecDeque<T>,
    /// Bytes of the entries in `items`.
    waiting: usize,
    /// Buffers of written large messages: a new allocation per message would cost as much as another copy.
    spare: Vec<Vec<u8>>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// A queue for `limit` bytes. Accepts entries until it is full, including one that exceeds the remaining
    /// capacity.
    pub fn new(limit: usize) -> Self {
        let (items, spare) = (VecDeque::new(), Vec::new());
        let inner = Inner { items, waiting: 0, spare, is_closed: false };
        Queue { inner: Mutex::new(inner), ready: Condvar::new(), limit, len: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // A panic leaves only complete entries.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is full with `more` bytes that are not yet in it; then nothing should be put.
    pub fn is_full(&self, more: usize) -> bool {
        self.len.load(Ordering::Relaxed) + more >= self.limit
    }

    /// Puts an entry with this many bytes.
    pub fn put(&self, item: T, bytes: usize) {
        self.put_all(&mut Vec::from([item]), bytes);
    }

    /// Puts entries in order; `bytes` is their total size.
    pub fn put_all(&self, items: &mut Vec<T>, bytes: usize) {
        if items.is_empty() {
            return;
        }
        let len = bytes + items.len() * ENTRY_LEN_BYTES;
        // Before the writer can release any of them.
        self.len.fetch_add(len, Ordering::Relaxed);
        let mut inner = self.lock();
        inner.items.extend(items.drain(..));
        let before = inner.waiting;
        inner.waiting += len;
        if before < WAKE_LEN_BYTES && inner.waiting >= WAKE_LEN_BYTES {
            self.ready.notify_one();
        }
    }

    /// Marks the end of the entries.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.ready.notify_one();
    }

    /// Takes all waiting entries into `items`, which is empty, after `limit` or when many have arrived.
    /// Returns false once the queue is closed and empty.
    pub fn take(&self, limit: Duration, items: &mut VecDeque<T>) -> bool {
        let enough = |inner: &mut Inner<T>| inner.waiting < WAKE_LEN_BYTES && !inner.is_closed;
        let waited = self.ready.wait_timeout_while(self.lock(), limit, enough);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        inner.waiting = 0;
        std::mem::swap(&mut inner.items, items);
        !(items.is_empty() && inner.is_closed)
    }

    /// Releases entries that were taken; `bytes` is their total size.
    pub fn release(&self, entries: usize, bytes: usize) {
        self.len.fetch_sub(bytes + entries * ENTRY_LEN_BYTES, Ordering::Relaxed);
    }

    /// A buffer for a large message.
    pub fn spare(&self) -> Vec<u8> {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Returns the buffer of a message.
    pub fn recycle(&self, bytes: Vec<u8>) {
        if bytes.len() < LARGE_LEN_BYTES || bytes.capacity() > self.limit / 8 {
            return;
        }
        let mut inner = self.lock();
        if inner.spare.len() < MAX_SPARE {
            inner.spare.push(bytes);
        }
    }

    /// Bytes held now.
    pub fn len_bytes(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}
