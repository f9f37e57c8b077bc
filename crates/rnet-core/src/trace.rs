//! What is recorded of a message while its topic is traced, and the topic that carries the records.
//!
//! docs/design/trace.md says who writes them, and when.

use crate::types::{Field, FieldType, PlainType, Prim};
use crate::{Result, TopicName};

/// What stands before the name of a topic in that of its trace.
const ROOT: &str = "/_rnet/trace";

/// Messages per second and subscription that are traced; of more a sample is.
pub const MAX_TRACED_PER_S: u64 = 2000;

/// The topic of the trace records of `topic`.
///
/// # Errors
/// `BadName` if the name is too long with its prefix.
pub fn trace_topic(topic: &TopicName) -> Result<TopicName> {
    TopicName::new(&format!("{ROOT}{topic}"))
}

/// The topic whose records the topic of this name carries, if it carries any.
pub fn traced_topic(name: &str) -> Option<&str> {
    name.strip_prefix(ROOT).filter(|rest| rest.starts_with('/'))
}

/// Trace of one message through one subscription.
///
/// Times are CLOCK_MONOTONIC of the subscription's host in ns; 0 for a step that did not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceRecord {
    /// The subscription.
    pub subscription: u64,
    /// The publisher on this host, a proxy perhaps.
    pub publisher: u64,
    /// Number of the message at that publisher.
    pub seq: u64,
    /// The publisher on another host whose message it is; 0 for a message of this host.
    pub origin_publisher: u64,
    /// Number of the message there.
    pub origin_seq: u64,
    /// Length of the message, in bytes.
    pub len_bytes: u64,
    /// When it was sent. Of a message of another host, as far as the offset of the clocks is known.
    pub sent_ns: u64,
    /// How far from the truth `sent_ns` may be: 0 for a message of this host, and the largest value if that is not known.
    pub uncertain_ns: u64,
    /// When the thread that took it woke for it; 0 if the thread was at work as it was sent.
    pub woken_ns: u64,
    /// When it was copied out of shared memory, perhaps with others.
    pub taken_ns: u64,
    /// When the callback began, or the receive returned.
    pub began_ns: u64,
    /// When the callback returned, or the next receive began.
    pub ended_ns: u64,
    /// How many messages the subscription had received with this one: where it grew by more than 1, some were not
    /// traced.
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
    /// Length of a record as a message, in bytes.
    pub const LEN_BYTES: usize = 8 * FIELDS.len();

    /// The type of the records' topics.
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

    /// As a message.
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

    /// Reads a message; `None` for one of another length.
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

    /// Whether its times are in the order in which they must have been; a record may be hostile.
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
    fn a_record_is_what_its_type_says() {
        TraceRecord::plain_type().validate().unwrap();
        let bytes: Vec<u8> = (0..TraceRecord::LEN_BYTES as u8).collect();
        let record = TraceRecord::from_bytes(&bytes).unwrap();
        assert_eq!(record.to_bytes()[..], bytes[..]);
        assert_eq!(TraceRecord::from_bytes(&bytes[1..]), None);
        let last = TraceRecord { written_ns: 7, ..TraceRecord::default() }.to_bytes();
        assert_eq!(last[TraceRecord::LEN_BYTES - 8], 7);
    }

    #[test]
    fn a_trace_has_a_topic_of_its_own() {
        let imu = TopicName::new("/arm/imu").unwrap();
        let trace = trace_topic(&imu).unwrap();
        assert_eq!(trace.as_str(), "/_rnet/trace/arm/imu");
        assert_eq!(traced_topic(trace.as_str()), Some("/arm/imu"));
        assert_eq!(traced_topic("/_rnet/traces"), None);
        let long = TopicName::new(&format!("/{}", "a".repeat(250))).unwrap();
        assert!(trace_topic(&long).is_err());
    }

    #[test]
    fn times_out_of_order_are_not_sound() {
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
