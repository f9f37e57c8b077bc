//! The send queue of a page: bounded, and never blocking for the sender.
//!
//! Answers stay in order and are never dropped. If the queue is full, the oldest data is dropped, and the
//! next data of the same subscription contains the number of dropped items. *Whole* data replaces the queued
//! data of its subscription, because only the newest is needed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::json;
use tokio::sync::Notify;

use crate::app_state::lock;
use crate::wire;

/// Maximum number of queued bytes.
const MAX_LEN_BYTES: usize = 4 << 20;
/// Maximum number of queued frames.
const MAX_FRAMES: usize = 256;

/// Maximum number of unacknowledged data items of a subscription: one on the network, and one that the page
/// draws.
const MAX_UNACKNOWLEDGED: u32 = 2;

/// A WebSocket frame.
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

/// State of a subscription.
#[derive(Default)]
struct SubState {
    /// Data dropped since the last sent item.
    dropped: u64,
    /// Whether a change was dropped, so that the next data has to be whole.
    needs_full: bool,
    /// Number of unacknowledged items, if the page acknowledges them.
    unacknowledged: Option<u32>,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<QueuedFrame>,
    len_bytes: usize,
    subs: BTreeMap<u64, SubState>,
    is_closed: bool,
    /// Whether an answer did not fit.
    answers_overflow: bool,
}

/// The send queue of a page.
#[derive(Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
    ready: Notify,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Queues an answer.
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

    /// The page has drawn data of this subscription; `false` if none was unacknowledged.
    pub fn acknowledge(&self, sub: u64) -> bool {
        self.queue().acknowledge(sub)
    }

    /// Removes a subscription.
    pub fn forget(&self, sub: u64) {
        let mut queue = self.queue();
        queue.remove(sub);
        queue.subs.remove(&sub);
    }

    /// Drops everything, and ignores later items.
    pub fn close(&self) {
        let mut queue = self.queue();
        *queue = Queue { is_closed: true, ..Queue::default() };
    }

    /// Whether the page is disconnected.
    pub fn is_closed(&self) -> bool {
        self.queue().is_closed
    }

    /// Whether an answer did not fit: the page does not read.
    pub fn answers_overflow(&self) -> bool {
        self.queue().answers_overflow
    }

    /// The next queued frame, if any.
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

    /// Waits until an item may be available.
    pub async fn wait(&self) {
        self.ready.notified().await;
    }
}

/// The output of a subscription.
pub struct Output {
    sub: u64,
    outbox: Arc<Outbox>,
    /// The last data of [`Output::send_if_changed`] and the last error of [`Output::error_once`].
    last_sent: String,
    last_error: Option<String>,
}

impl Output {
    pub fn new(sub: u64, outbox: Arc<Outbox>) -> Output {
        Output { sub, outbox, last_sent: String::new(), last_error: None }
    }

    /// Queues data.
    pub fn data(&self, json: String) {
        self.push(json, None);
    }

    /// Queues data with a payload.
    pub fn binary(&self, json: String, payload: Vec<u8>) {
        self.push(json, Some(payload));
    }

    /// Queues data that replaces the queued data of this subscription.
    pub fn replace(&self, json: String) {
        let dropped = self.outbox.queue().remove(self.sub);
        if dropped > 0 {
            self.outbox.queue().subs.entry(self.sub).or_default().dropped += dropped;
        }
        self.push(json, None);
    }

    /// Like `replace`, but only if the data changed (`None` means unchanged) or the previous data was
    /// dropped.
    pub fn send_if_changed(&mut self, json: Option<String>) {
        let needs_full = self.take_needs_full() && !self.last_sent.is_empty();
        let new = json.filter(|json| *json != self.last_sent);
        if new.is_some() || needs_full {
            self.last_sent = new.unwrap_or_else(|| std::mem::take(&mut self.last_sent));
            self.replace(self.last_sent.clone());
        }
    }

    /// Queues an error; the subscription continues.
    pub fn error(&mut self, refusal: &wire::Refusal) {
        self.last_sent.clear();
        self.outbox.answer(json!({"sub": self.sub, "error": refusal.json()}).to_string());
    }

    /// Like `error`, unless it is the last error again: many undecodable messages must not flood the page.
    pub fn error_once(&mut self, why: String) {
        if self.last_error.as_ref() != Some(&why) {
            self.error(&wire::Refusal::failed(why.as_str()));
            self.last_error = Some(why);
        }
    }

    /// Clears the last error.
    pub fn clear_error(&mut self) {
        self.last_error = None;
    }

    /// Enables acknowledgement: the page acknowledges each drawn item of this subscription.
    pub fn enable_acknowledgement(&self) {
        self.outbox.queue().subs.entry(self.sub).or_default().unacknowledged = Some(0);
    }

    /// Whether the page has acknowledged enough data of this subscription. More items would be stale when
    /// drawn, and delay all other data of the page.
    pub fn may_send(&self) -> bool {
        let queue = self.outbox.queue();
        let unacknowledged = queue.subs.get(&self.sub).and_then(|sub| sub.unacknowledged);
        unacknowledged.is_none_or(|count| count < MAX_UNACKNOWLEDGED)
    }

    /// Whether a change of this subscription was dropped since the last call.
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
    /// Removes the queued data of a subscription, and returns their number.
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
                // A dropped item will not be acknowledged by the page.
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
    fn drops_and_counts_oldest_data_and_keeps_answers() {
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
    fn limits_bytes_and_detects_unread_answers() {
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
    fn limits_unacknowledged_data() {
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
        // A frame that was taken is not yet drawn.
        assert!(outbox.take().is_some() && outbox.take().is_some());
        assert!(!send());
        assert!(outbox.acknowledge(1));
        assert!(send() && !send());
        // Dropped data is not awaited.
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
    fn whole_data_replaces_queued_data() {
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
