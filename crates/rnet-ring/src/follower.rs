//! The reader's half of an admission: from a request to the end of the log.
//!
//! A follower asks, finds the answer whenever it looks, and reads until the answer no longer holds.
//! Then it asks again; or, if the publisher is gone, it reads what is left. The states and what
//! leads from one to the next are drawn in docs/design/admission.md.

use crate::admission::{self, AdmissionTable, RequestId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The request is not answered, for all we have seen.
    AwaitingAdmission,
    /// The request was answered, in this entry.
    Reading { place: usize },
    /// The publisher is gone, and keeps nothing for us: what the log holds can still be read.
    Draining,
}

/// Where a follower begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStart {
    /// The byte position of the first message.
    pub start: u64,
    /// Its sequence number.
    pub start_seq: u64,
    /// Messages before it that were lost because the follower had been let go.
    pub missed: u64,
}

/// What a follower does that was let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDetach {
    /// It has to publish this request, and to ring the publisher.
    Request(RequestId),
    /// There is nobody left to ask.
    Drain,
}

/// What a follower does whose publisher is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterExit {
    /// Goes on where it is.
    Continue,
    /// Begins to read: it had been admitted without having seen it.
    Begin(ReadStart),
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
    request: RequestId,
    phase: Phase,
    /// Whether the publisher is gone.
    publisher_gone: bool,
    /// Whether we were let go since we read last: what is missing then is lost for that.
    detached: bool,
}

impl Follower {
    /// One that has published this request.
    pub fn new(request: RequestId) -> Follower {
        Follower {
            request,
            phase: Phase::AwaitingAdmission,
            publisher_gone: false,
            detached: false,
        }
    }

    /// The request that it waits for or reads under.
    pub fn request(&self) -> RequestId {
        self.request
    }

    /// Whether it has found no answer yet.
    #[inline]
    pub fn is_awaiting_admission(&self) -> bool {
        matches!(self.phase, Phase::AwaitingAdmission)
    }

    /// Whether it reads from a publisher that is there.
    pub fn is_served(&self) -> bool {
        matches!(self.phase, Phase::Reading { .. }) && !self.publisher_gone
    }

    /// Whether the publisher is gone.
    #[inline]
    pub fn has_left(&self) -> bool {
        self.publisher_gone
    }

    /// Whether it asks and the answer is there.
    pub fn is_answered(&self, entries: AdmissionTable<'_>) -> bool {
        self.is_awaiting_admission() && admission::find(entries, self.request).is_some()
    }

    /// Begins to read if the request was answered. An answer that holds no more is one as well: it
    /// says what was promised. `expected` is the number of the next message, if any was promised
    /// before.
    pub fn begin(
        &mut self,
        entries: AdmissionTable<'_>,
        expected: Option<u64>,
    ) -> Option<ReadStart> {
        if !self.is_awaiting_admission() {
            return None;
        }
        let (place, grant, _) = admission::find(entries, self.request)?;
        let start_seq = grant.start_seq;
        let missed = expected.filter(|_| self.detached).map_or(0, |e| start_seq.saturating_sub(e));
        self.phase = Phase::Reading { place };
        self.detached = false;
        Some(ReadStart { start: grant.start, start_seq, missed })
    }

    /// Whether the answer under which it reads no longer holds, of which nobody was told yet.
    #[inline]
    pub fn was_detached(&self, entries: AdmissionTable<'_>) -> bool {
        match self.phase {
            Phase::Reading { place } => !admission::is_active(entries.at(place), self.request),
            Phase::AwaitingAdmission | Phase::Draining => false,
        }
    }

    /// Notes that it was let go; its user is to be told, now and not again. `next` is the number of
    /// its subscription's next request.
    pub fn note_detach(&mut self, next: impl FnOnce() -> u64) -> AfterDetach {
        self.detached = true;
        if self.publisher_gone {
            self.phase = Phase::Draining;
            return AfterDetach::Drain;
        }
        self.request.generation = next();
        self.phase = Phase::AwaitingAdmission;
        AfterDetach::Request(self.request)
    }

    /// The publisher is gone: what it had promised can be read as far as the log still holds it.
    pub fn publisher_left(
        &mut self,
        entries: AdmissionTable<'_>,
        expected: Option<u64>,
    ) -> AfterExit {
        self.publisher_gone = true;
        if !self.is_awaiting_admission() {
            return AfterExit::Continue;
        }
        if let Some(begun) = self.begin(entries, expected) {
            return AfterExit::Begin(begun);
        }
        self.phase = Phase::Draining;
        // One that was let go and asked again had been promised what follows.
        if self.detached { AfterExit::Continue } else { AfterExit::Nothing }
    }

    /// Whether all is over once the log is read to its end.
    #[inline]
    pub fn is_finished(&self, entries: AdmissionTable<'_>) -> bool {
        self.publisher_gone && !self.was_detached(entries)
    }

    /// Why the messages are missing before the one just read.
    pub fn gap(&self, entries: AdmissionTable<'_>) -> Gap {
        let draining = self.phase == Phase::Draining && self.detached;
        if draining || self.was_detached(entries) { Gap::Detached } else { Gap::Overrun }
    }
}
