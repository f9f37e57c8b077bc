//! A reader's page is bound to one publisher after the other, while any of them looks for its own.

use crate::fail_point;
use crate::layout::{BindLine, SLOT_BOUND, SLOT_FREE};
use crate::sync::{Ordering, fence};

/// What a reader asks of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindRequest {
    /// The publisher.
    pub publisher: u64,
    /// The subscription that asks.
    pub subscription: u64,
    /// Whether the reader holds the writer back.
    pub reliable: bool,
    /// What it asks for of what was sent before, a [`HistoryRequest`] as its word.
    pub history: u64,
}

/// What a reader asks for of what was sent before it was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryRequest {
    /// So many of the newest messages.
    Newest(u64),
    /// The messages from this number on, as far as the log has them.
    From(u64),
}

impl HistoryRequest {
    /// This bit of the word says that the others are a sequence number.
    const FROM: u64 = 1 << 63;

    /// The word that stands in memory. A number that has no room in it is ahead of every log, and stays so.
    pub fn to_word(self) -> u64 {
        match self {
            HistoryRequest::Newest(count) => count.min(HistoryRequest::FROM - 1),
            HistoryRequest::From(seq) => HistoryRequest::FROM | seq.min(HistoryRequest::FROM - 1),
        }
    }

    /// Reads a word, whatever it is.
    pub fn from_word(word: u64) -> HistoryRequest {
        if word & HistoryRequest::FROM == 0 {
            HistoryRequest::Newest(word)
        } else {
            HistoryRequest::From(word & !HistoryRequest::FROM)
        }
    }
}

/// The reader's side: binds a page that is free, with a request that is numbered `generation`; no two of a
/// subscription are numbered alike, on whatever page. What a writer looks at besides has to be set before.
pub fn bind(line: &BindLine, request: BindRequest, generation: u64) {
    // SYNC-BIND: release, so that who sees it sees that the page was free before; and the fence, so that who
    // sees anything of what follows sees it.
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

/// The reader's side: asks the same publisher again, for nothing of the past. Who reads the binding before
/// may be told that it asks for nothing of the past, too; that was let go, and is not served any more.
pub fn renew_request(line: &BindLine, generation: u64) {
    line.history.store(0, Ordering::Relaxed);
    fail_point!("again.history");
    line.generation.store(generation, Ordering::Release);
    fail_point!("again.generation");
}

/// The reader's side: the page can be bound to another.
pub fn free(line: &BindLine) {
    line.state.store(SLOT_FREE, Ordering::Release);
}

/// The writer's side: what the page asks of `publisher`, and the number of that request; `None` if it is
/// bound to another, or to nobody, or just being bound.
pub fn read(line: &BindLine, publisher: u64) -> Option<(BindRequest, u64)> {
    // SYNC-BIND: the publisher before the state. The state that is then seen is no older than this binding's,
    // and with it all that was stored before.
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
    // Its reader may have given the page to another meanwhile, and to this one again.
    fence(Ordering::Acquire);
    (is_its() && line.generation.load(Ordering::Relaxed) == generation)
        .then_some((request, generation))
}
