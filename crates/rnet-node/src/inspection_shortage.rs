//! Why some node cannot be looked at, for those who wait for one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::sync::lock;
use rnet_core::Error;

/// What a node knows of it.
#[derive(Debug, Default)]
pub struct InspectionShortage(Mutex<Shortage>);

#[derive(Debug, Default)]
struct Shortage {
    /// Counts those that there were.
    number: u64,
    /// While it lasts.
    error: Option<Error>,
}

impl InspectionShortage {
    /// Something is short; `false` if that is known.
    pub fn begin(&self, error: Error) -> bool {
        let mut shortage = lock(&self.0);
        let new = shortage.error.is_none();
        shortage.number += u64::from(new);
        shortage.error = Some(error);
        new
    }

    /// Nothing is.
    pub fn end(&self) {
        lock(&self.0).error = None;
    }
}

/// Tells the waits at one endpoint, each shortage once.
#[derive(Debug)]
pub struct ShortageReporter {
    shortage: Arc<InspectionShortage>,
    reported: AtomicU64,
}

impl ShortageReporter {
    /// Nothing was told at it.
    pub fn new(shortage: Arc<InspectionShortage>) -> ShortageReporter {
        ShortageReporter { shortage, reported: AtomicU64::new(0) }
    }

    /// The present shortage, if no wait has told of it.
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
    fn each_shortage_is_told_once_at_each_endpoint() {
        let shortage = Arc::new(InspectionShortage::default());
        let ends = [(); 2].map(|()| ShortageReporter::new(shortage.clone()));
        let error = || Error::Closed { what: "a look".to_owned() };
        for _ in 0..3 {
            assert!(ends.iter().all(|end| end.take().is_none()));
            assert!(shortage.begin(error()) && !shortage.begin(error()));
            for end in &ends {
                assert_eq!((end.take(), end.take()), (Some(error()), None));
            }
            shortage.end();
        }
        // One that nobody has heard of while it lasted is over.
        assert!(shortage.begin(error()));
        shortage.end();
        assert!(ends.iter().all(|end| end.take().is_none()));
    }
}
