//! Messages that a page draws: at the rate that it asks for, and no faster than it draws them.

use std::time::Instant;

use rnet::inspect::Heard;
use serde_json::Value as Json;

use super::sink::{Pace, TopicSink};
use crate::outbox::Output;

/// What is sent of one message: the fields of its head, and the payload.
pub type Drawn = (Json, Vec<u8>);

/// Makes of a message what a page draws of it, or says in words why it cannot be drawn.
pub type Draw = Box<dyn Fn(&Heard<'_>, &[u8]) -> Result<Drawn, String> + Send>;

/// A subscription to pictures.
pub struct PictureSink {
    output: Output,
    pace: Pace,
    draw: Draw,
}

impl PictureSink {
    pub fn new(output: Output, hz: f64, draw: Draw) -> PictureSink {
        PictureSink { output, pace: Pace::new(hz), draw }
    }
}

impl TopicSink for PictureSink {
    fn message(&mut self, heard: &Heard<'_>, bytes: &[u8], sent_s: f64) {
        let now = Instant::now();
        if !self.pace.is_due(now) || !self.output.may_send() {
            return;
        }
        self.pace.take(now);
        match (self.draw)(heard, bytes) {
            Ok((mut head, payload)) => {
                self.output.end_trouble();
                head["node"] = heard.node.into();
                head["seq"] = heard.stamp.seq.into();
                head["sent_s"] = sent_s.into();
                self.output.binary(head.to_string(), payload);
            }
            Err(why) => self.output.trouble_once(why),
        }
    }

    fn tick(&mut self, _: Instant, _: f64) {}
}
