//! Messages that a page draws: at the rate that it asks for, and no faster than it draws them.

use std::time::Instant;

use rnet::inspect::ObservedMessage;
use serde_json::Value as Json;

use super::sink::{RateLimiter, TopicSink};
use crate::outbox::Output;

/// What is sent of one message: the fields of its head, and the payload.
pub type EncodedPicture = (Json, Vec<u8>);

/// Makes of a message what a page draws of it, or says in words why it cannot be drawn.
pub type EncodePicture =
    Box<dyn Fn(&ObservedMessage<'_>, &[u8]) -> Result<EncodedPicture, String> + Send>;

/// A subscription to pictures.
pub struct PictureSink {
    output: Output,
    rate_limiter: RateLimiter,
    encode: EncodePicture,
}

impl PictureSink {
    pub fn new(output: Output, hz: f64, encode: EncodePicture) -> PictureSink {
        PictureSink { output, rate_limiter: RateLimiter::new(hz), encode }
    }
}

impl TopicSink for PictureSink {
    fn message(&mut self, heard: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64) {
        let now = Instant::now();
        if !self.rate_limiter.is_due(now) || !self.output.may_send() {
            return;
        }
        self.rate_limiter.take(now);
        match (self.encode)(heard, bytes) {
            Ok((mut head, payload)) => {
                self.output.clear_error();
                head["node"] = heard.node.into();
                head["seq"] = heard.stamp.seq.into();
                head["sent_s"] = sent_s.into();
                self.output.binary(head.to_string(), payload);
            }
            Err(why) => self.output.error_once(why),
        }
    }

    fn tick(&mut self, _: Instant, _: f64) {}
}
