//! The positions of the publishers of lost hosts, for the hosts' return.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::transport::HostId;

/// A publisher, by host and endpoint.
type PublisherKey = (HostId, u64);

/// The position of a publisher's proxy, and its readers.
#[derive(Clone, Debug, Default)]
pub struct ResumePoint {
    pub next_seq: Option<u64>,
    pub readers: BTreeSet<u64>,
    /// Losses that its publisher knew of there, by cause.
    pub known_lost: Option<[u64; 4]>,
}

/// Resume points by publisher. At the limit, the oldest is dropped.
pub struct ResumePoints {
    limit: usize,
    points: HashMap<PublisherKey, (u64, ResumePoint)>,
    /// The order in which they were added.
    order: BTreeMap<u64, PublisherKey>,
    next: u64,
}

impl ResumePoints {
    /// Creates a store of at most `limit` points.
    pub fn new(limit: usize) -> ResumePoints {
        ResumePoints { limit, points: HashMap::new(), order: BTreeMap::new(), next: 0 }
    }

    /// Whether this publisher has a point.
    pub fn has(&self, of: &PublisherKey) -> bool {
        self.points.contains_key(of)
    }

    /// Takes the point of a publisher that is back.
    pub fn take(&mut self, of: &PublisherKey) -> Option<ResumePoint> {
        let (at, place) = self.points.remove(of)?;
        self.order.remove(&at);
        Some(place)
    }

    /// Adds the point of a publisher; it replaces an earlier one.
    pub fn insert(&mut self, of: PublisherKey, place: ResumePoint) {
        self.take(&of);
        if self.points.len() >= self.limit
            && let Some((_, first)) = self.order.pop_first()
        {
            self.points.remove(&first);
        }
        self.order.insert(self.next, of);
        self.points.insert(of, (self.next, place));
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(endpoint: u64) -> PublisherKey {
        (HostId(1), endpoint)
    }

    fn at(next_seq: u64) -> ResumePoint {
        ResumePoint { next_seq: Some(next_seq), ..ResumePoint::default() }
    }

    #[test]
    fn oldest_point_is_dropped_at_the_limit() {
        let mut points = ResumePoints::new(3);
        for endpoint in 1..=3 {
            points.insert(of(endpoint), at(endpoint));
        }
        // Inserted again, the first becomes the newest and takes no slot of another.
        points.insert(of(1), at(10));
        let left =
            |points: &ResumePoints| (1..=5).filter(|n| points.has(&of(*n))).collect::<Vec<u64>>();
        assert_eq!(left(&points), [1, 2, 3]);
        points.insert(of(4), at(4));
        assert_eq!(left(&points), [1, 3, 4]);
        assert_eq!(points.take(&of(1)).and_then(|place| place.next_seq), Some(10));
        assert!(points.take(&of(1)).is_none());
        // The taken point has left a free slot.
        points.insert(of(5), at(5));
        assert_eq!(left(&points), [3, 4, 5]);
        assert_eq!((points.points.len(), points.order.len()), (3, 3));
    }
}
