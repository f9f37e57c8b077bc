//! The persister's lease: one word in the region's header, which says who keeps and that he moves.
//!
//! The kernel's lock on the store tells the living from the dead, but not a process that is stopped
//! from one that works. The word does: its persister adds a beat now and then while he has work, and
//! who waits for him and sees it stand still takes it over by counting its epoch up. All change it
//! by compare-and-swap alone, so each epoch has one persister, and an old one notices at his next
//! look. docs/design/durable-state.md draws what follows from that on disk.

use std::sync::Arc;
use std::time::Duration;

use super::file::Fence;

/// How often the persister adds a beat while he has work.
pub(crate) const BEAT: Duration = Duration::from_millis(100);
/// For how long the word stands still before its persister counts as stopped.
pub(crate) const STALL: Duration = Duration::from_millis(500);
/// What one look at the word counts at most, however long ago the one before it was: who was
/// himself suspended, with the persister or without him, has not watched him.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

const BEAT_BITS: u32 = 20;
const BEATS: u64 = (1 << BEAT_BITS) - 1;

/// Where the word stands: `epoch << 20 | beats`, 0 in a new region. Both in one order with all
/// others, and with what is done before and after (`SeqCst`).
pub(crate) trait Pulse: Send + Sync + std::fmt::Debug {
    /// What the word reads.
    fn read(&self) -> u64;
    /// Changes it, if it still reads `seen`.
    fn swap(&self, seen: u64, next: u64) -> bool;
}

/// The lease as its persister has it.
#[derive(Debug)]
pub(crate) struct Lease {
    pulse: Arc<dyn Pulse>,
    epoch: u64,
}

impl Lease {
    /// Takes the lease if the word still reads `seen`.
    pub fn take(pulse: &Arc<dyn Pulse>, seen: u64) -> Option<Arc<Lease>> {
        let epoch = (seen >> BEAT_BITS) + 1;
        let taken = pulse.swap(seen, epoch << BEAT_BITS);
        taken.then(|| Arc::new(Lease { pulse: pulse.clone(), epoch }))
    }

    /// Shows that the persister moves; `false` if he is none any more.
    pub fn beat(&self) -> bool {
        let seen = self.pulse.read();
        let next = self.epoch << BEAT_BITS | (seen + 1) & BEATS;
        // Where the swap fails, another thread of this persister has beaten, which is as good, or
        // another persister has come.
        seen >> BEAT_BITS == self.epoch && (self.pulse.swap(seen, next) || self.holds())
    }
}

impl Fence for Lease {
    fn holds(&self) -> bool {
        self.pulse.read() >> BEAT_BITS == self.epoch
    }
}

/// What one who waits has seen of the persister.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    seen: Option<u64>,
    last_look_ns: u64,
    still: Duration,
}

impl Suspicion {
    /// Looks at the word, at `now_ns` of the monotonic clock. Gives what it reads once it has stood
    /// still for [`STALL`]; that is what [`Lease::take`] wants to find.
    pub fn look(&mut self, pulse: &dyn Pulse, now_ns: u64) -> Option<u64> {
        let word = pulse.read();
        if self.seen == Some(word) {
            let passed = Duration::from_nanos(now_ns.saturating_sub(self.last_look_ns));
            self.still += passed.min(LOOK);
        } else {
            self.seen = Some(word);
            self.still = Duration::ZERO;
        }
        self.last_look_ns = now_ns;
        (self.still >= STALL).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Word;
    use super::*;

    const MS: u64 = 1_000_000;

    fn take(pulse: &Arc<dyn Pulse>) -> Arc<Lease> {
        Lease::take(pulse, pulse.read()).expect("nobody else is there")
    }

    #[test]
    fn the_lease_goes_to_one_and_the_old_persister_notices() {
        let pulse: Arc<dyn Pulse> = Arc::new(Word::default());
        let first = Lease::take(&pulse, 0).expect("it is free");
        assert!(Lease::take(&pulse, 0).is_none(), "the word has changed");
        assert!(first.holds() && first.beat());
        let second = take(&pulse);
        assert!(!first.holds() && !first.beat());
        assert!(second.holds() && second.beat());
    }

    #[test]
    fn beats_count_round_without_touching_the_epoch() {
        let pulse: Arc<dyn Pulse> = Arc::new(Word::new(6 << BEAT_BITS));
        let lease = take(&pulse);
        // As many as there are, and five more.
        for _ in 0..=BEATS + 5 {
            assert!(lease.beat());
        }
        assert_eq!(pulse.read(), 7 << BEAT_BITS | 5);
    }

    #[test]
    fn who_stands_still_is_suspected_and_who_beats_is_not() {
        let pulse: Arc<dyn Pulse> = Arc::new(Word::default());
        let lease = take(&pulse);
        let mut suspicion = Suspicion::default();
        // The first look is the start, each further one counts 50 ms.
        let looks = (0..).take_while(|i| suspicion.look(&*pulse, i * 50 * MS).is_none()).count();
        assert_eq!(looks, 10);
        assert!(lease.beat());
        assert_eq!(suspicion.look(&*pulse, 1_000 * MS), None, "a beat clears him");
        // Who was away for an hour has seen one look's worth.
        assert_eq!(suspicion.look(&*pulse, 3_600_000 * MS), None);
        let more = (1..).map(|i| suspicion.look(&*pulse, 3_600_000 * MS + i * 50 * MS));
        assert_eq!(more.take(9).collect::<Vec<_>>()[7..], [None, Some(pulse.read())]);
    }
}
