//! A thread that reads ahead, so that publishing does not wait for the disk or for decompression.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use super::order::{DueMessage, OrderedMessages};
use crate::read::{ReadError, Recording, Select};

/// Maximum bytes of messages that wait to be published.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of messages that wait to be published.
const MAX_MESSAGES: usize = 16_384;

/// The messages that were read ahead. Dropping it stops the thread.
pub struct ReadAhead {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Result<DueMessage, ReadError>>,
    bytes: usize,
    /// The last message was read.
    ended: bool,
    /// Restart reading at this log time.
    restart: Option<u64>,
    /// The player or the reading thread has finished.
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadAhead {
    pub fn start(recording: &Recording, select: &Select) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new() });
        let (of_thread, recording, select) = (shared.clone(), recording.clone(), select.clone());
        let thread = Builder::new().name("rnet-read".to_owned());
        thread.spawn(move || read(&of_thread, &recording, select))?;
        Ok(Self { shared })
    }

    /// The next message; `None` at the end. Propagates a panic of the thread.
    pub fn next(&mut self) -> Option<Result<DueMessage, ReadError>> {
        let mut queue = self.shared.lock();
        loop {
            if let Some(item) = queue.items.pop_front() {
                queue.bytes -= len(&item);
                self.shared.changed.notify_one();
                return Some(item);
            }
            assert!(!queue.closed, "the thread that reads ahead has panicked");
            if queue.ended {
                return None;
            }
            queue = self.shared.wait(queue);
        }
    }

    /// Restarts reading at this log time.
    pub fn restart(&mut self, ns: u64) {
        let mut queue = self.shared.lock();
        queue.items.clear();
        queue.bytes = 0;
        queue.ended = false;
        queue.restart = Some(ns);
        self.shared.changed.notify_one();
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// Closes the queue when the reading thread exits, so that the player does not wait forever after a panic.
struct CloseOnDrop<'a>(&'a Shared);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn len(item: &Result<DueMessage, ReadError>) -> usize {
    item.as_ref().map_or(0, |due| due.message.data().len())
}

fn read(shared: &Shared, recording: &Recording, mut select: Select) {
    let _guard = CloseOnDrop(shared);
    // At every start position, subscribers get the messages that transient_local publishers kept there.
    select.with_latched = true;
    loop {
        for item in OrderedMessages::new(recording, select.clone()) {
            let mut queue = shared.lock();
            let bytes = len(&item);
            while !queue.closed
                && queue.restart.is_none()
                && !queue.items.is_empty()
                && (queue.bytes + bytes > MAX_BYTES || queue.items.len() >= MAX_MESSAGES)
            {
                queue = shared.wait(queue);
            }
            if queue.closed {
                return;
            }
            if queue.restart.is_some() {
                break;
            }
            queue.bytes += bytes;
            queue.items.push_back(item);
            shared.changed.notify_one();
        }
        let mut queue = shared.lock();
        if queue.restart.is_none() {
            queue.ended = true;
            shared.changed.notify_one();
        }
        while queue.restart.is_none() && !queue.closed {
            queue = shared.wait(queue);
        }
        match queue.restart.take() {
            Some(ns) if !queue.closed => select.start_ns = Some(ns),
            _ => return,
        }
    }
}
