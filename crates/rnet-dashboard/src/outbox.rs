//! What waits for a page: bounded, and never waited for by who has something to say.
//!
//! Answers stay in order and are never dropped. Of data the oldest is dropped when there is no room, and the next data of
//! the same subscription tells how often that was so. Data that is *whole* takes the place of what waits of its
//! subscription: only the newest is of interest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::json;
use tokio::sync::Notify;

use crate::app_state::lock;
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

enum QueuedFrame {
    Answer(String),
    Data { sub: u64, json: String, payload: Option<Vec<u8>> },
}

impl QueuedFrame {
    fn len_bytes(&self) -> usize {
        match self {
            QueuedFrame::Answer(text) => text.len(),
            QueuedFrame::Data { json, payload, .. } => {
                json.len() + payload.as_ref().map_or(0, Vec::len)
            }
        }
    }

    fn is_of(&self, of: u64) -> bool {
        matches!(self, QueuedFrame::Data { sub, .. } if *sub == of)
    }
}

/// What is known of a subscription.
#[derive(Default)]
struct SubState {
    /// Data that were dropped since the last that was sent.
    dropped: u64,
    /// A change was dropped, so that the next data has to be whole.
    needs_full: bool,
    /// How many data it has not acknowledged yet, if it acknowledges.
    unacknowledged: Option<u32>,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<QueuedFrame>,
    len_bytes: usize,
    subs: BTreeMap<u64, SubState>,
    is_closed: bool,
    /// There was no room for an answer.
    answers_overflow: bool,
}

/// The queue of one page.
#[derive(Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
    ready: Notify,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// An answer.
    pub fn answer(&self, text: String) {
        let mut queue = self.queue();
        if queue.is_closed {
            return;
        }
        queue.len_bytes += text.len();
        queue.frames.push_back(QueuedFrame::Answer(text));
        queue.drop_oldest();
        queue.answers_overflow |=
            queue.len_bytes > MAX_LEN_BYTES || queue.frames.len() > MAX_FRAMES;
        drop(queue);
        self.ready.notify_one();
    }

    /// The page has drawn data of this subscription; `false` if there was none under way.
    pub fn acknowledge(&self, sub: u64) -> bool {
        self.queue().acknowledge(sub)
    }

    /// Forgets a subscription.
    pub fn forget(&self, sub: u64) {
        let mut queue = self.queue();
        queue.remove(sub);
        queue.subs.remove(&sub);
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
    pub fn answers_overflow(&self) -> bool {
        self.queue().answers_overflow
    }

    /// The next frame, if one waits.
    pub fn take(&self) -> Option<Frame> {
        let mut queue = self.queue();
        let waiting = queue.frames.pop_front()?;
        queue.len_bytes -= waiting.len_bytes();
        Some(match waiting {
            QueuedFrame::Answer(text) => Frame::Text(text),
            QueuedFrame::Data { sub, json, payload } => {
                let of = queue.subs.get_mut(&sub);
                let dropped = match of.map_or(0, |of| std::mem::take(&mut of.dropped)) {
                    0 => String::new(),
                    dropped => format!(",\"dropped\":{dropped}"),
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

/// What a subscription has to say to its page.
pub struct Output {
    sub: u64,
    outbox: Arc<Outbox>,
    /// What was said last by [`Output::send_if_changed`] and [`Output::error_once`].
    last_sent: String,
    last_error: Option<String>,
}

impl Output {
    pub fn new(sub: u64, outbox: Arc<Outbox>) -> Output {
        Output { sub, outbox, last_sent: String::new(), last_error: None }
    }

    /// Data.
    pub fn data(&self, json: String) {
        self.push(json, None);
    }

    /// Data with a payload.
    pub fn binary(&self, json: String, payload: Vec<u8>) {
        self.push(json, Some(payload));
    }

    /// Data in place of all that waits of this subscription.
    pub fn replace(&self, json: String) {
        let dropped = self.outbox.queue().remove(self.sub);
        if dropped > 0 {
            self.outbox.queue().subs.entry(self.sub).or_default().dropped += dropped;
        }
        self.push(json, None);
    }

    /// The same, if they are not those of before, which `None` means, or those of before had no room.
    pub fn send_if_changed(&mut self, json: Option<String>) {
        let needs_full = self.take_needs_full() && !self.last_sent.is_empty();
        let new = json.filter(|json| *json != self.last_sent);
        if new.is_some() || needs_full {
            self.last_sent = new.unwrap_or_else(|| std::mem::take(&mut self.last_sent));
            self.replace(self.last_sent.clone());
        }
    }

    /// What is wrong with the subscription, which goes on.
    pub fn error(&mut self, refusal: &wire::Refusal) {
        self.last_sent.clear();
        self.outbox.answer(json!({"sub": self.sub, "error": refusal.json()}).to_string());
    }

    /// The same, unless it was said last: a flood of what cannot be decoded is not to be one of words.
    pub fn error_once(&mut self, why: String) {
        if self.last_error.as_ref() != Some(&why) {
            self.error(&wire::Refusal::failed(why.as_str()));
            self.last_error = Some(why);
        }
    }

    /// Nothing is wrong any more.
    pub fn clear_error(&mut self) {
        self.last_error = None;
    }

    /// The page acknowledges each data of this subscription that it has drawn.
    pub fn enable_acknowledgement(&self) {
        self.outbox.queue().subs.entry(self.sub).or_default().unacknowledged = Some(0);
    }

    /// Whether the page is not behind with data of this subscription, as far as it says. What is under way too long would
    /// be old when it is drawn, and keep everything else of the page waiting.
    pub fn may_send(&self) -> bool {
        let queue = self.outbox.queue();
        let unacknowledged = queue.subs.get(&self.sub).and_then(|sub| sub.unacknowledged);
        unacknowledged.is_none_or(|count| count < MAX_UNACKNOWLEDGED)
    }

    /// Whether a change of this subscription was dropped since the last question.
    pub fn take_needs_full(&self) -> bool {
        let mut queue = self.outbox.queue();
        queue.subs.get_mut(&self.sub).is_some_and(|sub| std::mem::take(&mut sub.needs_full))
    }

    fn push(&self, json: String, payload: Option<Vec<u8>>) {
        let mut queue = self.outbox.queue();
        if queue.is_closed {
            return;
        }
        let sub = self.sub;
        let data = QueuedFrame::Data { sub, json, payload };
        if let Some(unacknowledged) =
            queue.subs.get_mut(&sub).and_then(|sub| sub.unacknowledged.as_mut())
        {
            *unacknowledged += 1;
        }
        queue.len_bytes += data.len_bytes();
        queue.frames.push_back(data);
        queue.drop_oldest();
        drop(queue);
        self.outbox.ready.notify_one();
    }
}

impl Queue {
    /// Removes what waits of a subscription; how many data that were.
    fn remove(&mut self, sub: u64) -> u64 {
        let before = self.frames.len();
        self.frames.retain(|waiting| !waiting.is_of(sub));
        self.len_bytes = self.frames.iter().map(QueuedFrame::len_bytes).sum();
        (before - self.frames.len()) as u64
    }

    fn acknowledge(&mut self, sub: u64) -> bool {
        let unacknowledged = self.subs.get_mut(&sub).and_then(|sub| sub.unacknowledged.as_mut());
        let Some(unacknowledged) = unacknowledged else { return false };
        let some = *unacknowledged > 0;
        *unacknowledged = unacknowledged.saturating_sub(1);
        some
    }

    fn drop_oldest(&mut self) {
        while self.len_bytes > MAX_LEN_BYTES || self.frames.len() > MAX_FRAMES {
            let is_data = |waiting: &QueuedFrame| matches!(waiting, QueuedFrame::Data { .. });
            let Some(at) = self.frames.iter().position(is_data) else { return };
            let Some(waiting) = self.frames.remove(at) else { return };
            self.len_bytes -= waiting.len_bytes();
            if let QueuedFrame::Data { sub, .. } = waiting {
                // Nobody will acknowledge it.
                self.acknowledge(sub);
                let of = self.subs.entry(sub).or_default();
                (of.dropped, of.needs_full) = (of.dropped + 1, true);
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
        let outbox = Arc::new(Outbox::default());
        let of = |sub| Output::new(sub, outbox.clone());
        outbox.answer("\"a\"".into());
        for n in 0..MAX_FRAMES {
            of(7).data(n.to_string());
        }
        let all = texts(&outbox);
        assert_eq!(all.len(), MAX_FRAMES);
        assert_eq!(all[0], "\"a\"");
        assert_eq!(all[1], r#"{"sub":7,"data":1,"dropped":1}"#);
        assert_eq!(all[2], r#"{"sub":7,"data":2}"#);
        assert!(of(7).take_needs_full());
        assert!(!of(7).take_needs_full());
        assert!(!outbox.answers_overflow());
    }

    #[test]
    fn bytes_are_bounded_and_answers_that_nobody_reads_are_noticed() {
        let outbox = Arc::new(Outbox::default());
        let of = |sub| Output::new(sub, outbox.clone());
        for _ in 0..8 {
            of(1).data("x".repeat(MAX_LEN_BYTES / 4));
        }
        assert!(texts(&outbox).len() <= 4);
        assert!(!outbox.answers_overflow());
        for _ in 0..=MAX_FRAMES {
            outbox.answer(String::new());
        }
        assert!(outbox.answers_overflow());
    }

    #[test]
    fn no_more_is_under_way_than_the_page_acknowledges() {
        let outbox = Arc::new(Outbox::default());
        let of = |sub| Output::new(sub, outbox.clone());
        of(1).enable_acknowledgement();
        let send = || {
            let may = of(1).may_send();
            if may {
                of(1).binary("{}".into(), vec![0; 16]);
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
        of(2).data("x".repeat(MAX_LEN_BYTES));
        assert!(send() && !send());
        assert!(outbox.acknowledge(1) && outbox.acknowledge(1));
        assert!(!outbox.acknowledge(1), "more than was sent");
        assert!(!outbox.acknowledge(2), "that one does not acknowledge");
        assert!(of(2).may_send());
        outbox.forget(1);
        assert!(!outbox.acknowledge(1));
    }

    #[test]
    fn whole_data_takes_the_place_of_what_waits() {
        let outbox = Arc::new(Outbox::default());
        let of = |sub| Output::new(sub, outbox.clone());
        of(1).replace("1".into());
        of(2).data("2".into());
        of(1).replace("3".into());
        assert_eq!(texts(&outbox), [r#"{"sub":2,"data":2}"#, r#"{"sub":1,"data":3,"dropped":1}"#]);
        of(2).data("4".into());
        outbox.forget(2);
        assert!(outbox.take().is_none());
    }
}
