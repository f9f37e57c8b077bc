//! What waits to be sent to a client. It is bounded, so that a client that reads slowly costs a known memory.
//!
//! Messages of topics give way: the oldest goes, and is counted. What a client cannot do without (channels, replies) does
//! not; a client that lets too much of it stand is cut off.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::say;

/// Messages of topics that wait for a client, and their bytes. One that is larger waits alone.
pub const MAX_DATA: usize = 1024;
pub const MAX_DATA_LEN_BYTES: usize = 32 << 20;
/// The same of everything else.
pub const MAX_CONTROL: usize = 4096;
pub const MAX_CONTROL_LEN_BYTES: usize = 128 << 20;

#[derive(Debug, Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    data: VecDeque<Bytes>,
    data_len: usize,
    control: VecDeque<Message>,
    control_len: usize,
    dropped: u64,
    /// Why the client is cut off.
    closed: Option<&'static str>,
}

/// What comes next of a queue.
pub enum Next {
    Message(Message),
    /// Nothing more; why.
    Closed(&'static str),
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message of a topic. Older ones give way.
    pub fn data(&self, frame: Bytes) {
        let mut waiting = self.lock();
        while !waiting.data.is_empty()
            && (waiting.data.len() >= MAX_DATA
                || waiting.data_len + frame.len() > MAX_DATA_LEN_BYTES)
        {
            let oldest = waiting.data.pop_front().map_or(0, |oldest| oldest.len());
            waiting.data_len -= oldest;
            waiting.dropped += 1;
        }
        waiting.data_len += frame.len();
        waiting.data.push_back(frame);
        drop(waiting);
        self.wake.notify_one();
    }

    /// Anything else, which goes first.
    pub fn control(&self, message: Message) {
        let mut waiting = self.lock();
        if waiting.control.len() >= MAX_CONTROL
            || waiting.control_len + message.len() > MAX_CONTROL_LEN_BYTES
        {
            waiting.closed = Some("too slow: the queue for this client is full");
        } else if waiting.closed.is_none() {
            waiting.control_len += message.len();
            waiting.control.push_back(message);
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// What time it is, in place of the time that still waits: to a client that reads slowly an old one is of no use.
    pub fn time(&self, message: Message) {
        let mut waiting = self.lock();
        let old = waiting.control.iter().rposition(say::is_time);
        if let Some(old) = old.and_then(|at| waiting.control.remove(at)) {
            waiting.control_len -= old.len();
        }
        drop(waiting);
        self.control(message);
    }

    /// Cuts the client off.
    pub fn close(&self, why: &'static str) {
        self.lock().closed.get_or_insert(why);
        self.wake.notify_one();
    }

    /// What is next, when there is something.
    pub async fn next(&self) -> Next {
        loop {
            {
                let mut waiting = self.lock();
                if let Some(why) = waiting.closed {
                    return Next::Closed(why);
                }
                if let Some(message) = waiting.control.pop_front() {
                    waiting.control_len -= message.len();
                    return Next::Message(message);
                }
                if let Some(frame) = waiting.data.pop_front() {
                    waiting.data_len -= frame.len();
                    return Next::Message(Message::Binary(frame));
                }
            }
            self.wake.notified().await;
        }
    }

    /// Messages that gave way so far.
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
            std::task::Poll::Ready(Next::Message(message)) => Some(message),
            _ => None,
        }
    }

    #[test]
    fn the_oldest_messages_give_way_and_are_counted() {
        let queue = Queue::default();
        for number in 0..MAX_DATA as u32 + 3 {
            queue.data(number.to_le_bytes().to_vec().into());
        }
        queue.control(Message::text("first"));
        assert_eq!(queue.dropped(), 3);
        assert_eq!(take(&queue), Some(Message::text("first")));
        assert_eq!(take(&queue), Some(Message::binary(3u32.to_le_bytes().to_vec())));
        // A large one takes the place of all, and stands alone.
        queue.data(vec![0; MAX_DATA_LEN_BYTES + 1].into());
        assert_eq!(queue.dropped(), 3 + MAX_DATA as u64 - 1);
        assert_eq!(take(&queue).unwrap().len(), MAX_DATA_LEN_BYTES + 1);
        assert_eq!(take(&queue), None);
    }

    #[test]
    fn only_the_newest_time_waits() {
        let queue = Queue::default();
        let limit = MAX_CONTROL as u64;
        queue.time(say::time(0));
        queue.control(Message::text("reply"));
        (1..=limit).for_each(|now_ns| queue.time(say::time(now_ns)));
        assert_eq!(queue.lock().control_len, "reply".len() + say::time(0).len());
        assert_eq!(take(&queue), Some(Message::text("reply")));
        assert_eq!(take(&queue), Some(say::time(limit)));
        assert_eq!(take(&queue), None);
    }

    #[test]
    fn who_does_not_take_what_matters_is_cut_off() {
        let queue = Queue::default();
        for _ in 0..=MAX_CONTROL {
            queue.control(Message::text("x"));
        }
        assert_eq!(take(&queue), None);
        let closed = queue.lock().closed;
        assert!(closed.unwrap().contains("too slow"));
    }
}
