//! The publisher's half of an admission: the entry of each request of each subscription.
//!
//! An answered subscription keeps its entry until it unsubscribes or its process exits, also while it is
//! detached: it reads the state of its request there. docs/design/admission.md shows the states and
//! transitions.

use std::collections::BTreeMap;

use crate::admission::{self, AdmissionState, AdmissionTable, Grant, RequestId};
use crate::fail_point;

/// State of the last request of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RequestState {
    place: usize,
    generation: u64,
    state: AdmissionState,
    /// Whether the answer is in the entry; until then the entry holds an older one or none.
    answered: bool,
}

/// The requests of one publisher's readers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReaderRequests(BTreeMap<u64, RequestState>);

impl ReaderRequests {
    /// State of the request; `None` for a new one.
    pub fn state(&self, id: RequestId) -> Option<AdmissionState> {
        let request = self.0.get(&id.subscription)?;
        (request.generation == id.generation).then_some(request.state)
    }

    /// The entry of a subscription among `places` entries: its present one, otherwise the first free one.
    /// `None` if it has none and all are taken.
    pub fn entry_for(&self, subscription: u64, places: usize) -> Option<usize> {
        if let Some(request) = self.0.get(&subscription) {
            return Some(request.place);
        }
        let mut taken = vec![false; places];
        for request in self.0.values() {
            taken[request.place] = true;
        }
        taken.iter().position(|taken| !taken)
    }

    /// Assigns the entry that [`ReaderRequests::entry_for`] returned to a new request.
    pub fn reserve(&mut self, id: RequestId, place: usize) {
        let (generation, state) = (id.generation, AdmissionState::Active);
        self.0.insert(id.subscription, RequestState { place, generation, state, answered: false });
    }

    /// Answers a reserved request. If the reader was detached meanwhile, the answer contains that.
    pub fn answer(&mut self, entries: AdmissionTable<'_>, grant: Grant) -> Option<AdmissionState> {
        let request = self.0.get_mut(&grant.request.subscription)?;
        if request.generation != grant.request.generation {
            return None;
        }
        request.answered = true;
        admission::answer(entries.at(request.place), grant, request.state);
        Some(request.state)
    }

    /// Detaches a reader that made no progress for too long. Its request remains, for the case that it
    /// requests admission again.
    pub fn detach(&mut self, entries: AdmissionTable<'_>, subscription: u64) {
        let Some(request) = self.0.get_mut(&subscription) else { return };
        request.state = AdmissionState::Detached;
        fail_point!("detach.noted");
        // Otherwise the pending answer will contain it.
        if request.answered {
            admission::detach(entries.at(request.place));
        }
    }

    /// Removes a subscription that is gone, and frees its entry.
    pub fn forget(&mut self, entries: AdmissionTable<'_>, subscription: u64) {
        if let Some(request) = self.0.remove(&subscription) {
            admission::free(entries.at(request.place));
        }
    }

    /// The subscriptions that have a request.
    pub fn subscriptions(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.keys().copied()
    }
}
