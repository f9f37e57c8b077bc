//! The time of a store, by which its keys end.
//!
//! On disk the end of a key cannot be told by CLOCK_BOOTTIME, which begins anew with each boot, nor by the wall clock, which may
//! be set: a robot without a battery learns the time after it has started. So a store has a clock of its own. It goes on as
//! CLOCK_BOOTTIME does, is noted with each commit, and goes on from that note after a boot. A key that comes back has thus what
//! was left of its time when the store was written last; how long the machine was off does not count, as nothing that it
//! could be told by is sure.

use rnet_shm::state::Clock;

/// A moment as it is noted in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeNote {
    /// The store's time.
    pub store_ns: u64,
    /// CLOCK_BOOTTIME of the same moment, and in which boot; 0 if that is not known.
    pub boot_ns: u64,
    pub boot: u64,
}

/// The store's clock in this boot.
#[derive(Clone, Debug)]
pub(super) struct StoreTime {
    clock: Clock,
    /// What the store's clock says more than CLOCK_BOOTTIME.
    offset_ns: u64,
}

impl StoreTime {
    /// Goes on from what was noted. A store without a note is new, or of a version that had the wall clock for it.
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

    /// Now.
    pub fn note(&self) -> TimeNote {
        let boot_ns = self.clock.boot_ns();
        TimeNote {
            store_ns: boot_ns.wrapping_add(self.offset_ns),
            boot_ns,
            boot: self.clock.boot(),
        }
    }

    /// The end of a key, 0 for never, by the store's clock.
    pub fn to_store(&self, boot_ns: u64) -> u64 {
        // What never comes may be more than the clock can say.
        let sum = i128::from(boot_ns) + i128::from(self.offset_ns as i64);
        if boot_ns == 0 { 0 } else { sum.clamp(1, u64::MAX.into()) as u64 }
    }

    /// The same by CLOCK_BOOTTIME. What was over before this boot was over at its first moment.
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
    fn what_is_left_of_a_time_outlives_boots_and_no_clock_that_is_set_changes_it() {
        let first = StoreTime::new(None, &clock(7, 50_000, 1_700_000_000));
        let end = first.to_store(50_000 + 900);
        assert_eq!(first.to_boot(end), 50_900);
        let note = first.note();
        // Another process of the same boot, whatever the wall clock says by then.
        for wall in [0, 5, u64::MAX] {
            let again = StoreTime::new(Some(note), &clock(7, 50_300, wall));
            assert_eq!(again.to_boot(end), 50_900);
            // After a boot what was left when it was noted is left.
            let after = StoreTime::new(Some(note), &clock(8, 20, wall));
            assert_eq!(after.to_boot(end), 20 + 900);
            let later = StoreTime::new(Some(again.note()), &clock(9, 20, wall));
            assert_eq!(later.to_boot(end), 20 + 600);
        }
        // Of a boot without a name only the note is known.
        let unnamed = StoreTime::new(Some(TimeNote { boot: 0, ..note }), &clock(0, 99_000, 0));
        assert_eq!(unnamed.to_boot(end), 99_900);
    }

    #[test]
    fn ends_that_no_clock_reaches_stay_ends() {
        for (noted, now) in [(3, 80_000), (80_000, 3), (u64::MAX / 3, 5)] {
            let note = TimeNote { store_ns: noted, boot_ns: 1, boot: 1 };
            let time = StoreTime::new(Some(note), &clock(2, now, 0));
            assert_eq!((time.to_store(0), time.to_boot(0)), (0, 0));
            assert!(time.to_boot(time.to_store(u64::MAX)) > u64::MAX / 2);
            assert!(time.to_boot(1) >= 1 && time.to_boot(1) <= now);
        }
    }
}
