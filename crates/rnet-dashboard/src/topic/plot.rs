//! A field of a topic over time.

use std::time::Instant;

use rnet::inspect::ObservedMessage;
use rnet_format::value::unit;
use rnet_record::read::FieldReader;

use super::buckets::Buckets;
use super::sink::{RateLimiter, TopicSink, type_of};
use crate::outbox::Output;
use crate::times::unix_now_s;

/// Data in a second.
const HZ: f64 = 10.0;
/// Publishers of which it is known how to read their messages.
const MAX_PUBLISHERS: usize = 64;

pub struct PlotSink {
    output: Output,
    field: String,
    buckets: Buckets,
    rate_limiter: RateLimiter,
    /// By publisher: how its messages are read, or why they cannot be.
    readers: Vec<(u64, Result<FieldReader, String>)>,
    room: Vec<u8>,
}

impl PlotSink {
    pub fn new(output: Output, field: String, buckets: Buckets) -> PlotSink {
        let (readers, room) = (Vec::new(), Vec::new());
        PlotSink { output, field, buckets, rate_limiter: RateLimiter::new(HZ), readers, room }
    }

    fn reader(&mut self, heard: &ObservedMessage<'_>) -> usize {
        let publisher = heard.stamp.publisher;
        if let Some(at) = self.readers.iter().position(|(of, _)| *of == publisher) {
            return at;
        }
        if self.readers.len() == MAX_PUBLISHERS {
            self.readers.clear();
        }
        let ty = type_of(heard);
        self.buckets.unit = ty.as_ref().ok().and_then(|ty| unit(ty, &self.field));
        let reader = ty.and_then(|ty| FieldReader::single_number(&ty, &self.field));
        self.readers.push((publisher, reader));
        self.readers.len() - 1
    }
}

impl TopicSink for PlotSink {
    fn message(&mut self, heard: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64) {
        let at = self.reader(heard);
        let read = match &self.readers[at].1 {
            Ok(reader) => reader.read_f64(bytes, &mut self.room),
            Err(why) => Err(why.clone()),
        };
        match read {
            // A stamp may be of any time, and one of the future would hide all that is of now.
            Ok(Some(x)) => self.buckets.add(sent_s.min(unix_now_s()), x),
            Ok(None) => self.buckets.add_missing("the message has no value there"),
            Err(why) => self.buckets.add_missing(&why),
        }
    }

    fn missed(&mut self, count: u64) {
        self.buckets.add_lost(count);
    }

    fn tick(&mut self, now: Instant, now_s: f64) {
        if self.rate_limiter.is_due(now)
            && let Some(data) = self.buckets.take(now_s)
        {
            self.rate_limiter.take(now);
            self.output.data(data);
        }
    }
}
