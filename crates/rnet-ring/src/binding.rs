//! Binds a reader's page to one publisher at a time, while any publisher may search for its own binding.

use crate::fail_point;
use crate::layout::{BindLine, SLOT_BOUND, SLOT_FREE};
use crate::sync::{Ordering, fence};

/// A reader's request to a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindRequest {
    /// The publisher.
    pub publisher: u64,
    /// The requesting subscription.
    pub subscription: u64,
    /// Whether the writer must wait for the reader.
    pub reliable: bool,
    /// Requested past messages, an encoded [`HistoryRequest`].
    pub history: u64,
}

/// The past messages that a reader requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryRequest {
    /// This number of the newest messages.
    Newest(u64),
    /// The messages from this sequence number on, as far as the log has them.
    From(u64),
}

impl HistoryRequest {
    /// Flag bit: the other bits are a sequence number.
    const FROM: u64 = 1 << 63;

    /// Encodes the request. A sequence number that does not fit is clamped; it lies beyond every log.
    pub fn to_word(self) -> u64 {
        match self {
            HistoryRequest::Newest(count) => count.min(HistoryRequest::FROM - 1),
            HistoryRequest::From(seq) => HistoryRequest::FROM | seq.min(HistoryRequest::FROM - 1),
        }
    }

    /// Decodes any word.
    pub fn from_word(word: u64) -> HistoryRequest {
        if word & HistoryRequest::FROM == 0 {
            HistoryRequest::Newest(word)
        } else {
            HistoryRequest::From(word & !HistoryRequest::FROM)
        }
    }
}

/// Reader side: binds a free page, with a request numbered `generation`. A subscription never reuses a
/// number, on any page. All other fields that the writer reads must be set before.
pub fn bind(line: &BindLine, request: BindRequest, generation: u64) {
    // SYNC-BIND: release, so that a writer that sees it also sees that the page was free before; and the
    // fence, so that a writer that sees any later store sees it.
    line.publisher.store(request.publisher, Ordering::Release);
    fence(Ordering::Release);
    fail_point!("bind.publisher");
    line.subscription.store(request.subscription, Ordering::Relaxed);
    fail_point!("bind.subscription");
    line.reliable.store(u64::from(request.reliable), Ordering::Relaxed);
    fail_point!("bind.reliable");
    line.history.store(request.history, Ordering::Relaxed);
    fail_point!("bind.history");
    line.generation.store(generation, Ordering::Release);
    fail_point!("bind.generation");
    line.state.store(SLOT_BOUND, Ordering::Release);
    fail_point!("bind.bound");
}

/// Reader side: repeats the request to the same publisher, without past messages. A concurrent reader of the
/// earlier binding may also see the request without past messages; that binding was detached and is no longer
/// served.
pub fn renew_request(line: &BindLine, generation: u64) {
    line.history.store(0, Ordering::Relaxed);
    fail_point!("again.history");
    line.generation.store(generation, Ordering::Release);
    fail_point!("again.generation");
}

/// Reader side: the page can be bound to another publisher.
pub fn free(line: &BindLine) {
    line.state.store(SLOT_FREE, Ordering::Release);
}

/// Writer side: the request of the page to `publisher`, and its number; `None` if the page is bound to
/// another publisher, unbound, or being bound.
pub fn read(line: &BindLine, publisher: u64) -> Option<(BindRequest, u64)> {
    // SYNC-BIND: the publisher is loaded before the state. The state seen then is at least as new as this
    // binding's, and so is everything stored before it.
    let is_its = || {
        line.publisher.load(Ordering::Acquire) == publisher
            && line.state.load(Ordering::Acquire) == SLOT_BOUND
    };
    if !is_its() {
        return None;
    }
    let generation = line.generation.load(Ordering::Acquire);
    let request = BindRequest {
        publisher,
        subscription: line.subscription.load(Ordering::Relaxed),
        reliable: line.reliable.load(Ordering::Relaxed) == 1,
        history: line.history.load(Ordering::Relaxed),
    };
    // The reader may have bound the page to another publisher meanwhile, and back to this one.
    fence(Ordering::Acquire);
    (is_its() && line.generation.load(Ordering::Relaxed) == generation)
        .then_some((request, generation))
}
