//! Where the publishers of hosts that are lost had come to, for when they come back.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::transport::HostId;

/// A publisher, by host and endpoint.
type Of = (HostId, u64);

/// How far the proxy of a publisher had come, and who read it.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub next_seq: Option<u64>,
    pub readers: BTreeSet<u64>,
    /// What its publisher knew to be missing there, by cause.
    pub known_lost: Option<[u64; 4]>,
}

/// Places by publisher. Of too many the one that was kept first goes.
pub struct Kept {
    limit: usize,
    places: HashMap<Of, (u64, Place)>,
    /// In which order they were kept.
    order: BTreeMap<u64, Of>,
    next: u64,
}

impl Kept {
    /// At most so many.
    pub fn new(limit: usize) -> Kept {
        Kept { limit, places: HashMap::new(), order: BTreeMap::new(), next: 0 }
    }

    /// Whether there is one of this publisher.
    pub fn has(&self, of: &Of) -> bool {
        self.places.contains_key(of)
    }

    /// That of a publisher which is back.
    pub fn take(&mut self, of: &Of) -> Option<Place> {
        let (at, place) = self.places.remove(of)?;
        self.order.remove(&at);
        Some(place)
    }

    /// Keeps that of a publisher, in place of what there was of it.
    pub fn keep(&mut self, of: Of, place: Place) {
        self.take(&of);
        if self.places.len() >= self.limit
            && let Some((_, first)) = self.order.pop_first()
        {
            self.places.remove(&first);
        }
        self.order.insert(self.next, of);
        self.places.insert(of, (self.next, place));
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(endpoint: u64) -> Of {
        (HostId(1), endpoint)
    }

    fn at(next_seq: u64) -> Place {
        Place { next_seq: Some(next_seq), ..Place::default() }
    }

    #[test]
    fn of_too_many_the_first_goes_and_the_others_stay() {
        let mut kept = Kept::new(3);
        for endpoint in 1..=3 {
            kept.keep(of(endpoint), at(endpoint));
        }
        // Kept again, the first is the last, and takes no room of another.
        kept.keep(of(1), at(10));
        let left = |kept: &Kept| (1..=5).filter(|n| kept.has(&of(*n))).collect::<Vec<u64>>();
        assert_eq!(left(&kept), [1, 2, 3]);
        kept.keep(of(4), at(4));
        assert_eq!(left(&kept), [1, 3, 4]);
        assert_eq!(kept.take(&of(1)).and_then(|place| place.next_seq), Some(10));
        assert!(kept.take(&of(1)).is_none());
        // Which has left room for one.
        kept.keep(of(5), at(5));
        assert_eq!(left(&kept), [3, 4, 5]);
        assert_eq!((kept.places.len(), kept.order.len()), (3, 3));
    }
}
