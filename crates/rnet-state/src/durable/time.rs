//! The clock of a store, for the expiry times of its keys.
//!
//! Expiry times on disk cannot use CLOCK_BOOTTIME, which restarts with each boot, or the wall clock, which
//! may be set: a robot without a battery learns the time after it has started. A store therefore has its own
//! clock. It advances like CLOCK_BOOTTIME, is noted with each commit, and continues from the last note after
//! a boot. A restored key has the remaining lifetime as of the last write of the store. The time while the
//! machine was off does not count, because it cannot be determined reliably.

use rnet_shm::state::Clock;

/// A time as noted in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeNote {
    /// The store's time.
    pub store_ns: u64,
    /// CLOCK_BOOTTIME of the same moment, and the boot; 0 if unknown.
    pub boot_ns: u64,
    pub boot: u64,
}

/// The store's clock in this boot.
#[derive(Clone, Debug)]
pub(super) struct StoreTime {
    clock: Clock,
    /// Difference between the store's clock and CLOCK_BOOTTIME.
    offset_ns: u64,
}

impl StoreTime {
    /// Continues from the note. A store without a note is new, or its version used the wall clock.
    pub fn new(noted: Option<TimeNote>, clock: &Clock) -> StoreTime {
        let (now, boot) = (clock.boot_ns(), clock.boot());
        let store_ns = match noted {
            None => clock.unix_ns(),
            Some(note) if note.boot == boot && boot != 0 => {
                note.store_ns.saturating_add(now.saturating_sub(note.boot_ns))
            }
            Some(note) => note.store_ns,
        };
        StoreTime { clock: clock.clone(), offset_ns: store_ns.wrapping_sub(now) }
    }

    /// The current time.
    pub fn note(&self) -> TimeNote {
        let boot_ns = self.clock.boot_ns();
        TimeNote {
            store_ns: boot_ns.wrapping_add(self.offset_ns),
            boot_ns,
            boot: self.clock.boot(),
        }
    }

    /// Converts an expiry time, 0 for never, to the store's clock.
    pub fn to_store(&self, boot_ns: u64) -> u64 {
        // A very late time may exceed the clock's range.
        let sum = i128::from(boot_ns) + i128::from(self.offset_ns as i64);
        if boot_ns == 0 { 0 } else { sum.clamp(1, u64::MAX.into()) as u64 }
    }

    /// Converts it to CLOCK_BOOTTIME. A time before this boot becomes its first moment.
    pub fn to_boot(&self, store_ns: u64) -> u64 {
        let difference = i128::from(store_ns) - i128::from(self.offset_ns as i64);
        if store_ns == 0 { 0 } else { difference.clamp(1, u64::MAX.into()) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(boot: u64, boot_ns: u64, wall: u64) -> Clock {
        Clock::new(move || wall, move || boot_ns).in_boot(boot)
    }

    #[test]
    fn remaining_lifetime_survives_boots_and_clock_changes() {
        let first = StoreTime::new(None, &clock(7, 50_000, 1_700_000_000));
        let end = first.to_store(50_000 + 900);
        assert_eq!(first.to_boot(end), 50_900);
        let note = first.note();
        // Another process of the same boot, at any wall clock time.
        for wall in [0, 5, u64::MAX] {
            let again = StoreTime::new(Some(note), &clock(7, 50_300, wall));
            assert_eq!(again.to_boot(end), 50_900);
            // After a boot, the lifetime that remained at the note remains.
            let after = StoreTime::new(Some(note), &clock(8, 20, wall));
            assert_eq!(after.to_boot(end), 20 + 900);
            let later = StoreTime::new(Some(again.note()), &clock(9, 20, wall));
            assert_eq!(later.to_boot(end), 20 + 600);
        }
        // For a boot without an id, only the note is known.
        let unnamed = StoreTime::new(Some(TimeNote { boot: 0, ..note }), &clock(0, 99_000, 0));
        assert_eq!(unnamed.to_boot(end), 99_900);
    }

    #[test]
    fn expiry_beyond_the_clock_range_is_kept() {
        for (noted, now) in [(3, 80_000), (80_000, 3), (u64::MAX / 3, 5)] {
            let note = TimeNote { store_ns: noted, boot_ns: 1, boot: 1 };
            let time = StoreTime::new(Some(note), &clock(2, now, 0));
            assert_eq!((time.to_store(0), time.to_boot(0)), (0, 0));
            assert!(time.to_boot(time.to_store(u64::MAX)) > u64::MAX / 2);
            assert!(time.to_boot(1) >= 1 && time.to_boot(1) <= now);
        }
    }
}
