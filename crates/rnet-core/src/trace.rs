//! The trace record of a message, and the topic that carries the records.
//!
//! docs/design/trace.md describes the writers and the conditions.

use crate::types::{Field, FieldType, PlainType, Prim};
use crate::{Result, TopicName};

/// Prefix of trace topics.
const TRACE_ROOT: &str = "/_rnet/trace";

/// Maximum number of traced messages per second and subscription. Above it, a sample is traced.
pub const MAX_TRACED_PER_S: u64 = 2000;

/// The topic of the trace records of `topic`.
///
/// # Errors
/// `BadName` if the name is too long with its prefix.
pub fn trace_topic(topic: &TopicName) -> Result<TopicName> {
    TopicName::new(&format!("{TRACE_ROOT}{topic}"))
}

/// The traced topic of a trace topic; `None` for another topic.
pub fn traced_topic(name: &str) -> Option<&str> {
    name.strip_prefix(TRACE_ROOT).filter(|rest| rest.starts_with('/'))
}

/// Trace of one message through one subscription.
///
/// Times are CLOCK_MONOTONIC of the subscription's host in ns; 0 for a step that did not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceRecord {
    /// The subscription.
    pub subscription: u64,
    /// The publisher on this host, possibly a proxy.
    pub publisher: u64,
    /// Sequence number at that publisher.
    pub seq: u64,
    /// The original publisher on another host; 0 for a local message.
    pub origin_publisher: u64,
    /// Sequence number at the original publisher.
    pub origin_seq: u64,
    /// Length of the message, in bytes.
    pub len_bytes: u64,
    /// Send time. For a message of another host it is as precise as the known clock offset.
    pub sent_ns: u64,
    /// Uncertainty of `sent_ns`: 0 for a local message; `u64::MAX` if unknown.
    pub uncertain_ns: u64,
    /// When the receiving thread woke for the message; 0 if the thread was busy at the send time.
    pub woken_ns: u64,
    /// When the message was copied out of shared memory, possibly in a batch.
    pub taken_ns: u64,
    /// When the callback started, or the receive returned.
    pub began_ns: u64,
    /// When the callback returned, or the next receive started.
    pub ended_ns: u64,
    /// Number of messages received by the subscription including this one. A step above 1 shows that some
    /// were not traced.
    pub received: u64,
    /// When the record was written.
    pub written_ns: u64,
}

const FIELDS: [&str; 14] = [
    "subscription",
    "publisher",
    "seq",
    "origin_publisher",
    "origin_seq",
    "len_bytes",
    "sent_ns",
    "uncertain_ns",
    "woken_ns",
    "taken_ns",
    "began_ns",
    "ended_ns",
    "received",
    "written_ns",
];

impl TraceRecord {
    /// Length of a record in a message, in bytes.
    pub const LEN_BYTES: usize = 8 * FIELDS.len();

    /// The message type of trace topics.
    pub fn plain_type() -> PlainType {
        let field = |(at, name): (usize, &&str)| Field {
            name: (*name).to_owned(),
            offset: 8 * at,
            ty: FieldType::Prim(Prim::U64),
        };
        let fields = FIELDS.iter().enumerate().map(field).collect();
        let name = "rnet.TraceRecord".to_owned();
        PlainType { name, size: Self::LEN_BYTES, align: 8, tail: false, fields }
    }

    /// Encodes the record as a message.
    pub fn to_bytes(self) -> [u8; Self::LEN_BYTES] {
        let mut bytes = [0; Self::LEN_BYTES];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.words()) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    fn words(self) -> [u64; FIELDS.len()] {
        [
            self.subscription,
            self.publisher,
            self.seq,
            self.origin_publisher,
            self.origin_seq,
            self.len_bytes,
            self.sent_ns,
            self.uncertain_ns,
            self.woken_ns,
            self.taken_ns,
            self.began_ns,
            self.ended_ns,
            self.received,
            self.written_ns,
        ]
    }

    /// Decodes a message; `None` if the length differs.
    pub fn from_bytes(bytes: &[u8]) -> Option<TraceRecord> {
        let bytes: &[u8; Self::LEN_BYTES] = bytes.try_into().ok()?;
        let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or_default();
        Some(TraceRecord {
            subscription: next(),
            publisher: next(),
            seq: next(),
            origin_publisher: next(),
            origin_seq: next(),
            len_bytes: next(),
            sent_ns: next(),
            uncertain_ns: next(),
            woken_ns: next(),
            taken_ns: next(),
            began_ns: next(),
            ended_ns: next(),
            received: next(),
            written_ns: next(),
        })
    }

    /// Identity of the message on all hosts: its first publisher, and its sequence number there.
    pub fn message(&self) -> (u64, u64) {
        match self.origin_publisher {
            0 => (self.publisher, self.seq),
            _ => (self.origin_publisher, self.origin_seq),
        }
    }

    /// Whether the times are in a possible order; a record may be hostile.
    pub fn is_consistent(&self) -> bool {
        let woken_ns = if self.woken_ns == 0 { self.sent_ns } else { self.woken_ns };
        let times = [self.sent_ns, woken_ns, self.began_ns, self.ended_ns, self.written_ns];
        self.sent_ns > 0
            && times.is_sorted()
            && (self.sent_ns..=self.began_ns).contains(&self.taken_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_matches_its_type() {
        TraceRecord::plain_type().validate().unwrap();
        let bytes: Vec<u8> = (0..TraceRecord::LEN_BYTES as u8).collect();
        let record = TraceRecord::from_bytes(&bytes).unwrap();
        assert_eq!(record.to_bytes()[..], bytes[..]);
        assert_eq!(TraceRecord::from_bytes(&bytes[1..]), None);
        let last = TraceRecord { written_ns: 7, ..TraceRecord::default() }.to_bytes();
        assert_eq!(last[TraceRecord::LEN_BYTES - 8], 7);
    }

    #[test]
    fn trace_topic_is_separate() {
        let imu = TopicName::new("/arm/imu").unwrap();
        let trace = trace_topic(&imu).unwrap();
        assert_eq!(trace.as_str(), "/_rnet/trace/arm/imu");
        assert_eq!(traced_topic(trace.as_str()), Some("/arm/imu"));
        assert_eq!(traced_topic("/_rnet/traces"), None);
        let long = TopicName::new(&format!("/{}", "a".repeat(250))).unwrap();
        assert!(trace_topic(&long).is_err());
    }

    #[test]
    fn times_out_of_order_are_inconsistent() {
        let record = TraceRecord {
            sent_ns: 1,
            woken_ns: 2,
            taken_ns: 3,
            began_ns: 4,
            ended_ns: 5,
            written_ns: 6,
            ..TraceRecord::default()
        };
        assert!(record.is_consistent());
        assert!(TraceRecord { woken_ns: 0, ..record }.is_consistent());
        for wrong in [
            TraceRecord { sent_ns: 9, ..record },
            TraceRecord { taken_ns: 0, ..record },
            TraceRecord { ended_ns: 3, ..record },
            TraceRecord::default(),
        ] {
            assert!(!wrong.is_consistent(), "{wrong:?}");
        }
    }
}
