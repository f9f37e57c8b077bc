//! What a message may carry beside its content.

use crate::LossCause;

/// Metadata of a message, stored in the extension words of its record. A message without metadata has no overhead.
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
    /// Where the message was first sent, if it is forwarded.
    pub origin: Option<Origin>,
    /// Time of the observation, or of the first send: ns since 1970 UTC, by the clock of its source.
    pub source_ns: Option<i64>,
    /// Correlation with another message: the number of a request, in its reply.
    pub correlation: Option<u64>,
    /// Messages known to be missing right before it.
    pub gap: Option<KnownGap>,
    /// Whether it is its publisher's last will: a message that is read when the publisher's process has died.
    pub last_will: bool,
}

/// The message that another one forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Id of the host on which it was sent.
    pub host: u64,
    /// Id of the publisher that sent it.
    pub publisher: u64,
    /// Its number at that publisher, counted from 0.
    pub seq: u64,
}

/// Messages that are known to be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KnownGap {
    /// Why they are missing.
    pub cause: LossCause,
    /// How many they are.
    pub size: u64,
}

impl Meta {
    /// With where the message was first sent.
    pub fn with_origin(self, origin: Origin) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// With the time of its source, ns since 1970 UTC.
    pub fn with_source_ns(self, source_ns: i64) -> Self {
        Self { source_ns: Some(source_ns), ..self }
    }

    /// Sets the correlation with another message.
    pub fn with_correlation(self, correlation: u64) -> Self {
        Self { correlation: Some(correlation), ..self }
    }

    /// As its publisher's last will.
    pub fn as_last_will(self) -> Self {
        Self { last_will: true, ..self }
    }

    /// With `size` messages that are missing right before it.
    pub fn with_gap(self, cause: LossCause, size: u64) -> Self {
        Self { gap: Some(KnownGap { cause, size }), ..self }
    }
}
