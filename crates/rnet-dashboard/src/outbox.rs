//! What waits for a page: bounded, and never waited for by who has something to say.
//!
//! Answers stay in order and are never dropped. Of data the oldest is dropped when there is no room, and the next data of
//! the same subscription tells how often that was so. Data that is *whole* takes the place of what waits of its
//! subscription: only the newest is of interest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::wire;

/// Bytes that wait for a page.
const MAX_LEN_BYTES: usize = 4 << 20;
/// Frames that wait for a page.
const MAX_FRAMES: usize = 256;

/// Data of a subscription that are under way until the page acknowledges them: one on the network, one that it draws.
const MAX_UNACKNOWLEDGED: u32 = 2;

/// A frame as it is sent.
#[derive(Debug, PartialEq)]
pub enum Frame {
    Text(String),
    Binary(Vec<u8>),
}

enum Waiting {
    Answer(String),
    Data { sub: u64, json: String, payload: Option<Vec<u8>> },
}

impl Waiting {
    fn len_bytes(&self) -> usize {
        match self {
            Waiting::Answer(text) => text.len(),
            Waiting::Data { json, payload, .. } => {
                json.len() + payload.as_ref().map_or(0, Vec::len)
            }
        }
    }

    fn is_of(&self, of: u64) -> bool {
        matches!(self, Waiting::Data { sub, .. } if *sub == of)
    }
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Waiting>,
    len_bytes: usize,
    /// Data that were dropped since the last that was sent, by subscription.
    dropped: BTreeMap<u64, u64>,
    /// Subscriptions of which a change was dropped, so that the next data has to be whole.
    broken: Vec<u64>,
    /// Of those that acknowledge: how many data they have not acknowledged yet.
    under_way: BTreeMap<u64, u32>,
    is_closed: bool,
    /// There was no room for an answer.
    is_full: bool,
}

/// The queue of one page.
#[derive(Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
    ready: Notify,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer.
    pub fn answer(&self, text: String) {
        let mut queue = self.queue();
        if queue.is_closed {
            return;
        }
        queue.len_bytes += text.len();
        queue.frames.push_back(Waiting::Answer(text));
        queue.make_room();
        queue.is_full |= queue.len_bytes > MAX_LEN_BYTES || queue.frames.len() > MAX_FRAMES;
        drop(queue);
        self.ready.notify_one();
    }

    /// Data of a subscription.
    pub fn data(&self, sub: u64, json: String) {
        self.push(sub, json, None);
    }

    /// Data of a subscription, with a payload.
    pub fn binary(&self, sub: u64, json: String, payload: Vec<u8>) {
        self.push(sub, json, Some(payload));
    }

    /// Data in place of all that waits of this subscription.
    pub fn whole(&self, sub: u64, json: String) {
        let mut queue = self.queue();
        let before = queue.frames.len();
        let gone: usize =
            queue.frames.iter().filter(|w| w.is_of(sub)).map(Waiting::len_bytes).sum();
        queue.frames.retain(|waiting| !waiting.is_of(sub));
        queue.len_bytes -= gone;
        let dropped = before - queue.frames.len();
        if dropped > 0 {
            *queue.dropped.entry(sub).or_default() += dropped as u64;
        }
        drop(queue);
        self.push(sub, json, None);
    }

    /// What is wrong with a subscription.
    pub fn trouble(&self, sub: u64, refusal: &wire::Refusal, ended: bool) {
        let mut json = serde_json::json!({"sub": sub, "error": refusal.json()});
        if ended {
            json["ended"] = true.into();
        }
        self.answer(json.to_string());
    }

    /// The page acknowledges each data of this subscription that it has drawn.
    pub fn acknowledged(&self, sub: u64) {
        self.queue().under_way.insert(sub, 0);
    }

    /// Whether the page is not behind with data of this subscription, as far as it says. What is under way too long would
    /// be old when it is drawn, and keep everything else of the page waiting.
    pub fn may_send(&self, sub: u64) -> bool {
        self.queue().under_way.get(&sub).is_none_or(|count| *count < MAX_UNACKNOWLEDGED)
    }

    /// The page has drawn data of this subscription; `false` if there was none under way.
    pub fn acknowledge(&self, sub: u64) -> bool {
        self.queue().arrived(sub)
    }

    /// Whether a change of this subscription was dropped since the last question.
    pub fn take_broken(&self, sub: u64) -> bool {
        let mut queue = self.queue();
        let before = queue.broken.len();
        queue.broken.retain(|of| *of != sub);
        before != queue.broken.len()
    }

    fn push(&self, sub: u64, json: String, payload: Option<Vec<u8>>) {
        let mut queue = self.queue();
        if queue.is_closed {
            return;
        }
        let data = Waiting::Data { sub, json, payload };
        if let Some(under_way) = queue.under_way.get_mut(&sub) {
            *under_way += 1;
        }
        queue.len_bytes += data.len_bytes();
        queue.frames.push_back(data);
        queue.make_room();
        drop(queue);
        self.ready.notify_one();
    }

    /// Forgets a subscription.
    pub fn forget(&self, sub: u64) {
        let mut queue = self.queue();
        let gone: usize =
            queue.frames.iter().filter(|w| w.is_of(sub)).map(Waiting::len_bytes).sum();
        queue.frames.retain(|waiting| !waiting.is_of(sub));
        queue.len_bytes -= gone;
        queue.dropped.remove(&sub);
        queue.under_way.remove(&sub);
        queue.broken.retain(|of| *of != sub);
    }

    /// Nothing is taken any more.
    pub fn close(&self) {
        let mut queue = self.queue();
        *queue = Queue { is_closed: true, ..Queue::default() };
    }

    /// Whether the page is gone.
    pub fn is_closed(&self) -> bool {
        self.queue().is_closed
    }

    /// Whether there was no room for an answer: the page does not read.
    pub fn is_full(&self) -> bool {
        self.queue().is_full
    }

    /// The next frame, if one waits.
    pub fn take(&self) -> Option<Frame> {
        let mut queue = self.queue();
        let waiting = queue.frames.pop_front()?;
        queue.len_bytes -= waiting.len_bytes();
        Some(match waiting {
            Waiting::Answer(text) => Frame::Text(text),
            Waiting::Data { sub, json, payload } => {
                let dropped = match queue.dropped.remove(&sub) {
                    Some(dropped) => format!(",\"dropped\":{dropped}"),
                    None => String::new(),
                };
                let text = format!("{{\"sub\":{sub},\"data\":{json}{dropped}}}");
                match payload {
                    Some(payload) => Frame::Binary(wire::binary(&text, &payload)),
                    None => Frame::Text(text),
                }
            }
        })
    }

    /// Waits until something may be there.
    pub async fn wait(&self) {
        self.ready.notified().await;
    }
}

impl Queue {
    fn arrived(&mut self, sub: u64) -> bool {
        let Some(under_way) = self.under_way.get_mut(&sub) else { return false };
        let some = *under_way > 0;
        *under_way = under_way.saturating_sub(1);
        some
    }

    fn make_room(&mut self) {
        while self.len_bytes > MAX_LEN_BYTES || self.frames.len() > MAX_FRAMES {
            let is_data = |waiting: &Waiting| matches!(waiting, Waiting::Data { .. });
            let Some(at) = self.frames.iter().position(is_data) else { return };
            let Some(waiting) = self.frames.remove(at) else { return };
            self.len_bytes -= waiting.len_bytes();
            if let Waiting::Data { sub, .. } = waiting {
                // Nobody will acknowledge it.
                self.arrived(sub);
                *self.dropped.entry(sub).or_default() += 1;
                if !self.broken.contains(&sub) {
                    self.broken.push(sub);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(outbox: &Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.take())
            .map(|frame| match frame {
                Frame::Text(text) => text,
                Frame::Binary(_) => panic!("no binary"),
            })
            .collect()
    }

    #[test]
    fn the_oldest_data_is_dropped_and_told_and_answers_stay() {
        let outbox = Outbox::default();
        outbox.answer("\"a\"".into());
        for n in 0..MAX_FRAMES {
            outbox.data(7, n.to_string());
        }
        let all = texts(&outbox);
        assert_eq!(all.len(), MAX_FRAMES);
        assert_eq!(all[0], "\"a\"");
        assert_eq!(all[1], r#"{"sub":7,"data":1,"dropped":1}"#);
        assert_eq!(all[2], r#"{"sub":7,"data":2}"#);
        assert!(outbox.take_broken(7));
        assert!(!outbox.take_broken(7));
        assert!(!outbox.is_full());
    }

    #[test]
    fn bytes_are_bounded_and_answers_that_nobody_reads_are_noticed() {
        let outbox = Outbox::default();
        for _ in 0..8 {
            outbox.data(1, "x".repeat(MAX_LEN_BYTES / 4));
        }
        assert!(texts(&outbox).len() <= 4);
        assert!(!outbox.is_full());
        for _ in 0..=MAX_FRAMES {
            outbox.answer(String::new());
        }
        assert!(outbox.is_full());
    }

    #[test]
    fn no_more_is_under_way_than_the_page_acknowledges() {
        let outbox = Outbox::default();
        outbox.acknowledged(1);
        let send = || {
            let may = outbox.may_send(1);
            if may {
                outbox.binary(1, "{}".into(), vec![0; 16]);
            }
            may
        };
        assert!(send() && send() && !send());
        // Taken is not drawn.
        assert!(outbox.take().is_some() && outbox.take().is_some());
        assert!(!send());
        assert!(outbox.acknowledge(1));
        assert!(send() && !send());
        // What is dropped is acknowledged by nobody, and so not waited for.
        outbox.data(2, "x".repeat(MAX_LEN_BYTES));
        assert!(send() && !send());
        assert!(outbox.acknowledge(1) && outbox.acknowledge(1));
        assert!(!outbox.acknowledge(1), "more than was sent");
        assert!(!outbox.acknowledge(2), "that one does not acknowledge");
        assert!(outbox.may_send(2));
        outbox.forget(1);
        assert!(!outbox.acknowledge(1));
    }

    #[test]
    fn whole_data_takes_the_place_of_what_waits() {
        let outbox = Outbox::default();
        outbox.whole(1, "1".into());
        outbox.data(2, "2".into());
        outbox.whole(1, "3".into());
        assert_eq!(texts(&outbox), [r#"{"sub":2,"data":2}"#, r#"{"sub":1,"data":3,"dropped":1}"#]);
        outbox.data(2, "4".into());
        outbox.forget(2);
        assert!(outbox.take().is_none());
    }
}
