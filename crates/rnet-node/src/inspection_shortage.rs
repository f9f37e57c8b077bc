//! Shortages that keep a node from being inspected, reported to waits for a match.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::sync::lock;
use rnet_core::Error;

/// The current shortage of a node.
#[derive(Debug, Default)]
pub struct InspectionShortage(Mutex<Shortage>);

#[derive(Debug, Default)]
struct Shortage {
    /// Number of shortages so far.
    number: u64,
    /// The error while the shortage lasts.
    error: Option<Error>,
}

impl InspectionShortage {
    /// Starts a shortage; `false` if it is already known.
    pub fn begin(&self, error: Error) -> bool {
        let mut shortage = lock(&self.0);
        let new = shortage.error.is_none();
        shortage.number += u64::from(new);
        shortage.error = Some(error);
        new
    }

    /// Ends the shortage.
    pub fn end(&self) {
        lock(&self.0).error = None;
    }
}

/// Reports each shortage once to the waits at one endpoint.
#[derive(Debug)]
pub struct ShortageReporter {
    shortage: Arc<InspectionShortage>,
    reported: AtomicU64,
}

impl ShortageReporter {
    /// A reporter that has not reported anything.
    pub fn new(shortage: Arc<InspectionShortage>) -> ShortageReporter {
        ShortageReporter { shortage, reported: AtomicU64::new(0) }
    }

    /// The current shortage, if no wait has reported it.
    pub fn take(&self) -> Option<Error> {
        let shortage = lock(&self.shortage.0);
        let error = shortage.error.as_ref()?;
        let untold = self.reported.swap(shortage.number, Ordering::Relaxed) != shortage.number;
        untold.then(|| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shortage_is_reported_once_per_endpoint() {
        let shortage = Arc::new(InspectionShortage::default());
        let ends = [(); 2].map(|()| ShortageReporter::new(shortage.clone()));
        let error = || Error::Closed { what: "an inspection".to_owned() };
        for _ in 0..3 {
            assert!(ends.iter().all(|end| end.take().is_none()));
            assert!(shortage.begin(error()) && !shortage.begin(error()));
            for end in &ends {
                assert_eq!((end.take(), end.take()), (Some(error()), None));
            }
            shortage.end();
        }
        // A shortage that ended before anyone took it is not reported.
        assert!(shortage.begin(error()));
        shortage.end();
        assert!(ends.iter().all(|end| end.take().is_none()));
    }
}
