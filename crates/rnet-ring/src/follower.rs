//! The reader's half of an admission: from a request to the end of the log.
//!
//! A follower asks, finds the answer whenever it looks, and reads until the answer no longer holds.
//! Then it asks again; or, if the publisher is gone, it reads what is left. The states and what
//! leads from one to the next are drawn in docs/design/admission.md.

use crate::admission::{self, Ask, Table};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The request is not answered, for all we have seen.
    Asking,
    /// The request was answered, in this entry.
    Reading { place: usize },
    /// The publisher is gone, and keeps nothing for us: what the log holds can still be read.
    Draining,
}

/// Where a follower begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The byte position of the first message.
    pub start: u64,
    /// Its sequence number.
    pub start_seq: u64,
    /// Messages before it that were lost because the follower had been let go.
    pub missed: u64,
}

/// What a follower does that was let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetGo {
    /// It has to publish this request, and to ring the publisher.
    AskAgain(Ask),
    /// There is nobody left to ask.
    Drain,
}

/// What a follower does whose publisher is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Goes on where it is.
    GoOn,
    /// Begins to read: it had been admitted without having seen it.
    Begin(Begun),
    /// Nothing in the log was promised to it.
    Nothing,
}

/// Why messages are missing from what a follower reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The writer was faster, as it may be for a best_effort reader.
    Overrun,
    /// The follower had been let go.
    Detached,
}

/// A reader's side of its admission by one publisher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follower {
    ask: Ask,
    phase: Phase,
    /// Whether the publisher is gone.
    left: bool,
    /// Whether we were let go since we read last: what is missing then is lost for that.
    let_go: bool,
}

impl Follower {
    /// One that has published this request.
    pub fn new(ask: Ask) -> Follower {
        Follower { ask, phase: Phase::Asking, left: false, let_go: false }
    }

    /// The request that it waits for or reads under.
    pub fn ask(&self) -> Ask {
        self.ask
    }

    /// Whether it has found no answer yet.
    #[inline]
    pub fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asking)
    }

    /// Whether it reads from a publisher that is there.
    pub fn is_served(&self) -> bool {
        matches!(self.phase, Phase::Reading { .. }) && !self.left
    }

    /// Whether the publisher is gone.
    #[inline]
    pub fn has_left(&self) -> bool {
        self.left
    }

    /// Whether it asks and the answer is there.
    pub fn is_answered(&self, entries: Table<'_>) -> bool {
        self.is_asking() && admission::find(entries, self.ask).is_some()
    }

    /// Begins to read if the request was answered. An answer that holds no more is one as well: it
    /// says what was promised. `expected` is the number of the next message, if any was promised
    /// before.
    pub fn begin(&mut self, entries: Table<'_>, expected: Option<u64>) -> Option<Begun> {
        if !self.is_asking() {
            return None;
        }
        let (place, grant, _) = admission::find(entries, self.ask)?;
        let start_seq = grant.start_seq;
        let missed = expected.filter(|_| self.let_go).map_or(0, |e| start_seq.saturating_sub(e));
        self.phase = Phase::Reading { place };
        self.let_go = false;
        Some(Begun { start: grant.start, start_seq, missed })
    }

    /// Whether the answer under which it reads no longer holds, of which nobody was told yet.
    #[inline]
    pub fn was_let_go(&self, entries: Table<'_>) -> bool {
        match self.phase {
            Phase::Reading { place } => !admission::holds(entries.at(place), self.ask),
            Phase::Asking | Phase::Draining => false,
        }
    }

    /// Notes that it was let go; its user is to be told, now and not again. `next` is the number of
    /// its subscription's next request.
    pub fn be_let_go(&mut self, next: impl FnOnce() -> u64) -> LetGo {
        self.let_go = true;
        if self.left {
            self.phase = Phase::Draining;
            return LetGo::Drain;
        }
        self.ask.generation = next();
        self.phase = Phase::Asking;
        LetGo::AskAgain(self.ask)
    }

    /// The publisher is gone: what it had promised can be read as far as the log still holds it.
    pub fn publisher_left(&mut self, entries: Table<'_>, expected: Option<u64>) -> Left {
        self.left = true;
        if !self.is_asking() {
            return Left::GoOn;
        }
        if let Some(begun) = self.begin(entries, expected) {
            return Left::Begin(begun);
        }
        self.phase = Phase::Draining;
        // One that was let go and asked again had been promised what follows.
        if self.let_go { Left::GoOn } else { Left::Nothing }
    }

    /// Whether all is over once the log is read to its end.
    #[inline]
    pub fn is_over(&self, entries: Table<'_>) -> bool {
        self.left && !self.was_let_go(entries)
    }

    /// Why the messages are missing before the one just read.
    pub fn gap(&self, entries: Table<'_>) -> Gap {
        let draining = self.phase == Phase::Draining && self.let_go;
        if draining || self.was_let_go(entries) { Gap::Detached } else { Gap::Overrun }
    }
}
