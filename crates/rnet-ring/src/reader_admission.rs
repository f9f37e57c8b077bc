//! The reader's half of an admission, from the request to the end of the log.
//!
//! A follower requests admission, polls for the answer, and reads until the answer is no longer valid. Then
//! it requests admission again; if the publisher is gone, it reads the rest. docs/design/admission.md shows
//! the states and transitions.

use crate::admission::{self, AdmissionTable, RequestId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The request has not been answered yet, as far as known.
    AwaitingAdmission,
    /// This entry answered the request.
    Reading { place: usize },
    /// The publisher is gone and keeps nothing for the reader. The remaining log can still be read.
    Draining,
}

/// The position at which a follower starts to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStart {
    /// The byte position of the first message.
    pub start: u64,
    /// Its sequence number.
    pub start_seq: u64,
    /// Messages before it that were lost because the follower was detached.
    pub missed: u64,
}

/// Next action of a detached follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDetach {
    /// Publish this request and ring the publisher.
    Request(RequestId),
    /// Read the rest; there is no publisher to request admission from.
    Drain,
}

/// Next action of a follower whose publisher exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterExit {
    /// Continue in the current state.
    Continue,
    /// Start to read: it was admitted without having seen it.
    Begin(ReadStart),
    /// Read nothing: it has no promise for this log.
    Nothing,
}

/// Cause of missing messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The writer overwrote them, as it may for a best_effort reader.
    Overrun,
    /// The follower was detached.
    Detached,
}

/// The reader's side of its admission by one publisher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follower {
    request: RequestId,
    phase: Phase,
    /// Whether the publisher is gone.
    publisher_gone: bool,
    /// Whether it was detached since the last read. Missing messages are then attributed to that.
    detached: bool,
}

impl Follower {
    /// A follower that has published this request.
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

    /// Whether it has not found an answer yet.
    #[inline]
    pub fn is_awaiting_admission(&self) -> bool {
        matches!(self.phase, Phase::AwaitingAdmission)
    }

    /// Whether it reads from a live publisher.
    pub fn is_served(&self) -> bool {
        matches!(self.phase, Phase::Reading { .. }) && !self.publisher_gone
    }

    /// Whether the publisher is gone.
    #[inline]
    pub fn has_left(&self) -> bool {
        self.publisher_gone
    }

    /// Whether it waits and the answer is available.
    pub fn is_answered(&self, entries: AdmissionTable<'_>) -> bool {
        self.is_awaiting_admission() && admission::find(entries, self.request).is_some()
    }

    /// Starts to read if the request was answered. An answer that is no longer valid counts too, because it
    /// states what was promised. `expected` is the number of the next message if an earlier answer promised
    /// one.
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

    /// Whether the current answer is no longer valid and this was not reported yet.
    #[inline]
    pub fn was_detached(&self, entries: AdmissionTable<'_>) -> bool {
        match self.phase {
            Phase::Reading { place } => !admission::is_active(entries.at(place), self.request),
            Phase::AwaitingAdmission | Phase::Draining => false,
        }
    }

    /// Records a detachment, which the caller reports to the user exactly once. `next` is the number of its
    /// subscription's next request.
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

    /// The publisher is gone. What it promised can be read as far as the log still holds it.
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
        // A follower that was detached and requested admission again was promised the rest.
        if self.detached { AfterExit::Continue } else { AfterExit::Nothing }
    }

    /// Whether nothing more will come once the log is read to its end.
    #[inline]
    pub fn is_finished(&self, entries: AdmissionTable<'_>) -> bool {
        self.publisher_gone && !self.was_detached(entries)
    }

    /// Cause of the gap before the message just read.
    pub fn gap(&self, entries: AdmissionTable<'_>) -> Gap {
        let draining = self.phase == Phase::Draining && self.detached;
        if draining || self.was_detached(entries) { Gap::Detached } else { Gap::Overrun }
    }
}
