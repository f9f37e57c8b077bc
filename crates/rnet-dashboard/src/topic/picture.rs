//! Messages that a page draws: at the requested rate, and not faster than the page draws them.

use std::time::Instant;

use rnet::inspect::ObservedMessage;
use serde_json::Value as Json;

use super::sink::{RateLimiter, TopicSink};
use crate::outbox::Output;

/// Data of one message: the fields of the header, and the payload.
pub type EncodedPicture = (Json, Vec<u8>);

/// Converts a message to a picture, or returns why it cannot be drawn, as text.
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
    fn message(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64) {
        let now = Instant::now();
        if !self.rate_limiter.is_due(now) || !self.output.may_send() {
            return;
        }
        self.rate_limiter.take(now);
        match (self.encode)(observed, bytes) {
            Ok((mut head, payload)) => {
                self.output.clear_error();
                head["node"] = observed.node.into();
                head["seq"] = observed.stamp.seq.into();
                head["sent_s"] = sent_s.into();
                self.output.binary(head.to_string(), payload);
            }
            Err(why) => self.output.error_once(why),
        }
    }

    fn tick(&mut self, _: Instant, _: f64) {}
}
