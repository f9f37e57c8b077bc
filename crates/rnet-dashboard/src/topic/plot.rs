//! A field of a topic over time.

use std::time::Instant;

use rnet::inspect::ObservedMessage;
use rnet_format::value::unit;
use rnet_record::read::FieldReader;

use super::buckets::Buckets;
use super::sink::{RateLimiter, TopicSink, type_of};
use crate::outbox::Output;
use crate::times::unix_now_s;

/// Data items per second.
const HZ: f64 = 10.0;
/// Maximum number of publishers with a cached reader.
const MAX_PUBLISHERS: usize = 64;

pub struct PlotSink {
    output: Output,
    field: String,
    buckets: Buckets,
    rate_limiter: RateLimiter,
    /// By publisher: the reader of its messages, or why they cannot be read.
    readers: Vec<(u64, Result<FieldReader, String>)>,
    buffer: Vec<u8>,
}

impl PlotSink {
    pub fn new(output: Output, field: String, buckets: Buckets) -> PlotSink {
        let (readers, buffer) = (Vec::new(), Vec::new());
        PlotSink { output, field, buckets, rate_limiter: RateLimiter::new(HZ), readers, buffer }
    }

    fn reader(&mut self, observed: &ObservedMessage<'_>) -> usize {
        let publisher = observed.stamp.publisher;
        if let Some(at) = self.readers.iter().position(|(of, _)| *of == publisher) {
            return at;
        }
        if self.readers.len() == MAX_PUBLISHERS {
            self.readers.clear();
        }
        let ty = type_of(observed);
        self.buckets.unit = ty.as_ref().ok().and_then(|ty| unit(ty, &self.field));
        let reader = ty.and_then(|ty| FieldReader::single_number(&ty, &self.field));
        self.readers.push((publisher, reader));
        self.readers.len() - 1
    }
}

impl TopicSink for PlotSink {
    fn message(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64) {
        let at = self.reader(observed);
        let read = match &self.readers[at].1 {
            Ok(reader) => reader.read_f64(bytes, &mut self.buffer),
            Err(why) => Err(why.clone()),
        };
        match read {
            // A publisher may set any time; a time in the future would hide current values.
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
