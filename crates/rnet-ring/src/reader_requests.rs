//! The publisher's half of an admission: which request of which subscription has which entry.
//!
//! A subscription that was answered once keeps its entry until it unsubscribes or its process ends,
//! also while it is let go: it reads there what became of its request, whenever it looks. The
//! states and what leads from one to the next are drawn in docs/design/admission.md.

use std::collections::BTreeMap;

use crate::admission::{self, AdmissionState, AdmissionTable, Grant, RequestId};
use crate::fail_point;

/// What became of the last request of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RequestState {
    place: usize,
    generation: u64,
    state: AdmissionState,
    /// Whether the answer stands in the entry; until then the entry holds an older one, or none.
    answered: bool,
}

/// The requests of one publisher's readers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReaderRequests(BTreeMap<u64, RequestState>);

impl ReaderRequests {
    /// Where the request stands; `None` if it is a new one.
    pub fn state(&self, id: RequestId) -> Option<AdmissionState> {
        let request = self.0.get(&id.subscription)?;
        (request.generation == id.generation).then_some(request.state)
    }

    /// The place among `places` for a subscription: the one that it has, else the first that is free. `None` if
    /// it has none and all are taken.
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

    /// Takes the request that [`ReaderRequests::entry_for`] has found for a new request.
    pub fn reserve(&mut self, id: RequestId, place: usize) {
        let (generation, state) = (id.generation, AdmissionState::Active);
        self.0.insert(id.subscription, RequestState { place, generation, state, answered: false });
    }

    /// Answers a request that has a request. A reader that was let go since is told that as well.
    pub fn answer(&mut self, entries: AdmissionTable<'_>, grant: Grant) -> Option<AdmissionState> {
        let request = self.0.get_mut(&grant.request.subscription)?;
        if request.generation != grant.request.generation {
            return None;
        }
        request.answered = true;
        admission::answer(entries.at(request.place), grant, request.state);
        Some(request.state)
    }

    /// Lets a reader go that stood still for too long. Its request stays, for the time that it asks
    /// again.
    pub fn detach(&mut self, entries: AdmissionTable<'_>, subscription: u64) {
        let Some(request) = self.0.get_mut(&subscription) else { return };
        request.state = AdmissionState::Detached;
        fail_point!("detach.noted");
        // Else the answer is still to come, and says so.
        if request.answered {
            admission::detach(entries.at(request.place));
        }
    }

    /// Forgets a subscription that is gone, and frees its entry.
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
