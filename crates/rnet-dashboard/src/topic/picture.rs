//! Messages that a page draws: those of one topic, at the rate that it asks for, and no faster than it draws them.

use std::sync::Arc;
use std::time::Instant;

use rnet::inspect::Heard;
use serde_json::Value as Json;

use super::sink::{Pace, TopicSink, Wants};
use crate::outbox::Outbox;
use crate::wire::Refusal;

/// What is sent of one message: the fields of its head, and the payload.
pub type Drawn = (Json, Vec<u8>);

/// What a page draws of a message.
pub trait Picture: Send {
    /// # Errors
    /// In words, why it cannot be drawn.
    fn of(&self, heard: &Heard<'_>, bytes: &[u8]) -> Result<Drawn, String>;
}

/// How a page wants to have its pictures.
pub struct Asked {
    pub sub: u64,
    pub outbox: Arc<Outbox>,
    pub topic: String,
    pub hz: f64,
    /// The page acknowledges what it has drawn, and gets no more meanwhile.
    pub ack: bool,
}

/// A subscription to pictures.
pub struct PictureSink<P> {
    sub: u64,
    outbox: Arc<Outbox>,
    topic: String,
    pace: Pace,
    picture: P,
    /// What was last said to be wrong: it is said once.
    trouble: Option<String>,
}

impl<P: Picture> PictureSink<P> {
    pub fn new(asked: Asked, picture: P) -> PictureSink<P> {
        let Asked { sub, outbox, topic, hz, ack } = asked;
        if ack {
            outbox.acknowledged(sub);
        }
        PictureSink { sub, outbox, topic, pace: Pace::new(hz), picture, trouble: None }
    }
}

impl<P: Picture> TopicSink for PictureSink<P> {
    fn wants(&self) -> Wants {
        Wants::Topic(self.topic.clone())
    }

    fn message(&mut self, heard: &Heard<'_>, bytes: &[u8], sent_s: f64) {
        let now = Instant::now();
        if !self.pace.is_due(now) || !self.outbox.may_send(self.sub) {
            return;
        }
        self.pace.take(now);
        match self.picture.of(heard, bytes) {
            Ok((mut head, payload)) => {
                self.trouble = None;
                head["node"] = heard.node.into();
                head["seq"] = heard.stamp.seq.into();
                head["sent_s"] = sent_s.into();
                self.outbox.binary(self.sub, head.to_string(), payload);
            }
            Err(why) => {
                if self.trouble.as_ref() != Some(&why) {
                    self.outbox.trouble(self.sub, &Refusal::failed(why.as_str()), false);
                    self.trouble = Some(why);
                }
            }
        }
    }

    fn tick(&mut self, _: Instant, _: f64) {}
}
