//! What waits between who follows and who writes, bounded by bytes.

use std::collections::VecDeque;
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

/// A queue with one that puts and one that takes.
pub struct Queue<T> {
    inner: Mutex<Inner<T>>,
    ready: Condvar,
    limit: usize,
}

struct Inner<T> {
    items: VecDeque<T>,
    /// Bytes of all, those that the writer has taken and not done with among them.
    len: usize,
    /// Bytes of those in `items`.
    waiting: usize,
    /// Memory of large messages that were written: a new one each time would cost as much as another copy.
    spare: Vec<Vec<u8>>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// A queue for `limit` bytes. An entry of more is taken into an empty one.
    pub fn new(limit: usize) -> Self {
        let (items, spare) = (VecDeque::new(), Vec::new());
        let inner = Inner { items, len: 0, waiting: 0, spare, is_closed: false };
        Queue { inner: Mutex::new(inner), ready: Condvar::new(), limit }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // Whoever panicked left whole entries.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is full; nothing should be put then.
    pub fn is_full(&self) -> bool {
        self.lock().len >= self.limit
    }

    /// Puts an entry with this many bytes.
    pub fn put(&self, item: T, bytes: usize) {
        let mut inner = self.lock();
        let len = bytes + ENTRY_LEN_BYTES;
        inner.items.push_back(item);
        inner.len += len;
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

    /// Takes all that wait, after `limit` or when much has come; `None` if nothing will come any more.
    pub fn take(&self, limit: Duration) -> Option<VecDeque<T>> {
        let enough = |inner: &mut Inner<T>| inner.waiting < WAKE_LEN_BYTES && !inner.is_closed;
        let waited = self.ready.wait_timeout_while(self.lock(), limit, enough);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if inner.items.is_empty() && inner.is_closed {
            return None;
        }
        inner.waiting = 0;
        Some(std::mem::take(&mut inner.items))
    }

    /// An entry that was taken is done with.
    pub fn done(&self, bytes: usize) {
        let mut inner = self.lock();
        inner.len = inner.len.saturating_sub(bytes + ENTRY_LEN_BYTES);
    }

    /// Memory for a large message.
    pub fn spare(&self) -> Vec<u8> {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Gives the memory of a large message back.
    pub fn give_back(&self, bytes: Vec<u8>) {
        let is_kept = bytes.len() >= LARGE_LEN_BYTES && bytes.capacity() <= self.limit / 8;
        let mut inner = self.lock();
        if is_kept && inner.spare.len() < MAX_SPARE {
            inner.spare.push(bytes);
        }
    }

    /// Bytes that are held now.
    pub fn len_bytes(&self) -> usize {
        self.lock().len
    }
}
