//! One-line constructors of frequent errors.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::Error;
use crate::time::ms_ceil;

impl Error {
    /// Creates an [`Error::BadValue`].
    pub fn bad_value(what: impl Into<String>, why: impl Into<String>) -> Error {
        Error::BadValue { what: what.into(), why: why.into() }
    }

    /// Creates an [`Error::LimitReached`].
    pub fn limit_reached(what: impl Into<String>, limit: usize, hint: impl Into<String>) -> Error {
        Error::LimitReached { what: what.into(), limit, hint: hint.into() }
    }

    /// Creates an [`Error::Timeout`].
    pub fn timeout(
        topic: impl Into<Arc<str>>,
        what: impl Into<Cow<'static, str>>,
        after: Duration,
    ) -> Error {
        Error::Timeout { topic: topic.into(), what: what.into(), after_ms: ms_ceil(after) }
    }

    /// Creates an [`Error::Closed`].
    pub fn closed(what: impl Into<String>) -> Error {
        Error::Closed { what: what.into() }
    }
}
