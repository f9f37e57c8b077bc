//! The expiry times of keys on disk: the persister deletes expired keys there, as other processes do in
//! memory.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::record::Change;

/// Maximum interval of time notes on disk while a key has an expiry time. A key may live this much longer per
/// power cut.
const TIME_NOTE_INTERVAL_NS: u64 = 60_000_000_000;

/// The persister's index of expiry times, by CLOCK_BOOTTIME, in ns.
#[derive(Debug, Default)]
pub(super) struct ExpiryIndex {
    by_time: BTreeSet<(u64, String)>,
    by_key: HashMap<String, u64>,
    last_noted_ns: u64,
}

impl ExpiryIndex {
    /// Sets the expiry time of a key on disk; 0: none, or the key is absent.
    pub fn set(&mut self, key: &str, ends_ns: u64) {
        if let Some((key, before)) = self.by_key.remove_entry(key) {
            self.by_time.remove(&(before, key));
        }
        if ends_ns != 0 {
            self.by_time.insert((ends_ns, key.to_owned()));
            self.by_key.insert(key.to_owned(), ends_ns);
        }
    }

    /// Records that these changes are on disk, together with the current time.
    pub fn on_written(&mut self, changes: &[Change<'_>], now_ns: u64) {
        for change in changes {
            self.set(change.key, change.saved.map_or(0, |saved| saved.expires_boot_ns));
        }
        self.last_noted_ns = now_ns;
    }

    /// The expired keys.
    pub fn expired(&self, now_ns: u64) -> Vec<String> {
        let over = self.by_time.iter().take_while(|(ends, _)| *ends <= now_ns);
        over.map(|(_, key)| key.clone()).collect()
    }

    /// Whether a write is due without a request.
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.due_at().is_some_and(|at| at <= now_ns)
    }

    fn due_at(&self) -> Option<u64> {
        let (ends, _) = self.by_time.first()?;
        Some((*ends).min(self.last_noted_ns.saturating_add(TIME_NOTE_INTERVAL_NS)))
    }

    /// Maximum sleep of the persister.
    pub fn sleep_limit(&self, now_ns: u64) -> Duration {
        self.due_at().map_or(Duration::MAX, |at| Duration::from_nanos(at.saturating_sub(now_ns)))
    }

    /// Whether all keys are without expiry time.
    pub fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persister_is_due_at_the_next_expiry_and_once_a_minute() {
        let mut ends = ExpiryIndex::default();
        assert!(!ends.is_due(u64::MAX) && ends.sleep_limit(5) == Duration::MAX);
        ends.on_written(&[], 1000);
        ends.set("/far", 10 * TIME_NOTE_INTERVAL_NS);
        ends.set("/near", 5000);
        assert!(!ends.is_due(4999) && ends.sleep_limit(2000) == Duration::from_nanos(3000));
        assert_eq!(ends.expired(5000), ["/near"]);
        // Renewed before it expired.
        ends.set("/near", 7000);
        assert!(!ends.is_due(6999));
        ends.on_written(&[Change { key: "/near", saved: None }], 8000);
        assert_eq!(ends.expired(9 * TIME_NOTE_INTERVAL_NS), [""; 0]);
        assert!(!ends.is_due(TIME_NOTE_INTERVAL_NS) && ends.is_due(8000 + TIME_NOTE_INTERVAL_NS));
        ends.set("/far", 0);
        assert!(ends.is_empty());
    }
}
