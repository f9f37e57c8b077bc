//! The bounded send queue of a client, so that a slow client uses limited memory.
//!
//! Topic messages may be dropped: the oldest is removed and counted. Control messages (channels, replies) are
//! never dropped; if too many of them are queued, the client is disconnected.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::outgoing;

/// Maximum number and bytes of queued topic messages. A larger message is queued alone.
pub const MAX_DATA: usize = 1024;
pub const MAX_DATA_LEN_BYTES: usize = 32 << 20;
/// Maximum number and bytes of queued control messages.
pub const MAX_CONTROL: usize = 4096;
pub const MAX_CONTROL_LEN_BYTES: usize = 128 << 20;

#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<QueueState>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    data: VecDeque<Bytes>,
    data_len: usize,
    control: VecDeque<Message>,
    control_len: usize,
    dropped: u64,
    /// Why the client is disconnected.
    close_reason: Option<&'static str>,
}

/// The next item of a queue.
pub enum QueueItem {
    Message(Message),
    /// The queue is closed, for this reason.
    Closed(&'static str),
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a topic message; drops older ones if the queue is full.
    pub fn push_data(&self, frame: Bytes) {
        let mut state = self.lock();
        while !state.data.is_empty()
            && (state.data.len() >= MAX_DATA || state.data_len + frame.len() > MAX_DATA_LEN_BYTES)
        {
            let oldest = state.data.pop_front().map_or(0, |oldest| oldest.len());
            state.data_len -= oldest;
            state.dropped += 1;
        }
        state.data_len += frame.len();
        state.data.push_back(frame);
        drop(state);
        self.wake.notify_one();
    }

    /// Queues a control message, which precedes topic messages.
    pub fn push_control(&self, message: Message) {
        let mut state = self.lock();
        if state.control.len() >= MAX_CONTROL
            || state.control_len + message.len() > MAX_CONTROL_LEN_BYTES
        {
            state.close_reason = Some("too slow: the queue for this client is full");
        } else if state.close_reason.is_none() {
            state.control_len += message.len();
            state.control.push_back(message);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Queues the time, and replaces a queued one, which is stale for a slow client.
    pub fn push_time(&self, message: Message) {
        let mut state = self.lock();
        let old = state.control.iter().rposition(outgoing::is_time);
        if let Some(old) = old.and_then(|at| state.control.remove(at)) {
            state.control_len -= old.len();
        }
        drop(state);
        self.push_control(message);
    }

    /// Disconnects the client.
    pub fn close(&self, why: &'static str) {
        self.lock().close_reason.get_or_insert(why);
        self.wake.notify_one();
    }

    /// Waits for the next item.
    pub async fn next(&self) -> QueueItem {
        loop {
            {
                let mut state = self.lock();
                if let Some(why) = state.close_reason {
                    return QueueItem::Closed(why);
                }
                if let Some(message) = state.control.pop_front() {
                    state.control_len -= message.len();
                    return QueueItem::Message(message);
                }
                if let Some(frame) = state.data.pop_front() {
                    state.data_len -= frame.len();
                    return QueueItem::Message(Message::Binary(frame));
                }
            }
            self.wake.notified().await;
        }
    }

    /// Topic messages dropped so far.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(queue: &Queue) -> Option<Message> {
        let next = std::pin::pin!(queue.next());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::future::Future::poll(next, &mut context) {
            std::task::Poll::Ready(QueueItem::Message(message)) => Some(message),
            _ => None,
        }
    }

    #[test]
    fn drops_and_counts_oldest_messages() {
        let queue = Queue::default();
        for number in 0..MAX_DATA as u32 + 3 {
            queue.push_data(number.to_le_bytes().to_vec().into());
        }
        queue.push_control(Message::text("first"));
        assert_eq!(queue.dropped(), 3);
        assert_eq!(take(&queue), Some(Message::text("first")));
        assert_eq!(take(&queue), Some(Message::binary(3u32.to_le_bytes().to_vec())));
        // A large message replaces all others, and is queued alone.
        queue.push_data(vec![0; MAX_DATA_LEN_BYTES + 1].into());
        assert_eq!(queue.dropped(), 3 + MAX_DATA as u64 - 1);
        assert_eq!(take(&queue).unwrap().len(), MAX_DATA_LEN_BYTES + 1);
        assert_eq!(take(&queue), None);
    }

    #[test]
    fn queues_only_the_newest_time() {
        let queue = Queue::default();
        let limit = MAX_CONTROL as u64;
        queue.push_time(outgoing::time(0));
        queue.push_control(Message::text("reply"));
        (1..=limit).for_each(|now_ns| queue.push_time(outgoing::time(now_ns)));
        assert_eq!(queue.lock().control_len, "reply".len() + outgoing::time(0).len());
        assert_eq!(take(&queue), Some(Message::text("reply")));
        assert_eq!(take(&queue), Some(outgoing::time(limit)));
        assert_eq!(take(&queue), None);
    }

    #[test]
    fn closes_queue_with_too_many_control_messages() {
        let queue = Queue::default();
        for _ in 0..=MAX_CONTROL {
            queue.push_control(Message::text("x"));
        }
        assert_eq!(take(&queue), None);
        let close_reason = queue.lock().close_reason;
        assert!(close_reason.unwrap().contains("too slow"));
    }
}
