//! Optional metadata of a message.

use crate::LossCause;

/// Metadata of a message, stored in the extension words of its record. A message without metadata has no
/// overhead.
///
/// ```
/// use rnet_core::{LossCause, Meta, Origin};
/// let meta = Meta::default()
///     .with_origin(Origin { host: 7, publisher: 12, seq: 3 })
///     .with_correlation(42)
///     .with_gap(LossCause::Link, 5);
/// assert_eq!(meta.correlation, Some(42));
/// assert_eq!(meta.source_ns, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Meta {
    /// Where a forwarded message was first sent.
    pub origin: Option<Origin>,
    /// Time of the observation, or of the first send, in ns since 1970 UTC, by the clock of the source.
    pub source_ns: Option<i64>,
    /// Correlation with another message: in a reply, the number of the request.
    pub correlation: Option<u64>,
    /// Messages known to be missing directly before this one.
    pub gap: Option<KnownGap>,
    /// Whether this is the publisher's last will: a message that is delivered after the publisher's process
    /// has died.
    pub last_will: bool,
}

/// Origin of a forwarded message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Id of the host on which it was sent.
    pub host: u64,
    /// Id of the publisher that sent it.
    pub publisher: u64,
    /// Its sequence number at that publisher, starting at 0.
    pub seq: u64,
}

/// A number of messages that are known to be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KnownGap {
    /// Cause of the loss.
    pub cause: LossCause,
    /// Number of missing messages.
    pub size: u64,
}

impl Meta {
    /// Sets where the message was first sent.
    pub fn with_origin(self, origin: Origin) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// Sets the time of its source, in ns since 1970 UTC.
    pub fn with_source_ns(self, source_ns: i64) -> Self {
        Self { source_ns: Some(source_ns), ..self }
    }

    /// Sets the correlation with another message.
    pub fn with_correlation(self, correlation: u64) -> Self {
        Self { correlation: Some(correlation), ..self }
    }

    /// Marks the message as its publisher's last will.
    pub fn as_last_will(self) -> Self {
        Self { last_will: true, ..self }
    }

    /// Sets the cause and number of the messages that are missing directly before it.
    pub fn with_gap(self, cause: LossCause, size: u64) -> Self {
        Self { gap: Some(KnownGap { cause, size }), ..self }
    }
}
