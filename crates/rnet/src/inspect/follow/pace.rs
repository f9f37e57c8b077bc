//! How long one sleeps that follows many topics and that no send rings.

use std::time::Duration;

use rnet_core::limits::MAX_INLINE_LEN_BYTES;
use rnet_shm::taken::Stamp;

/// While all publishers are calm. A log holds far more than is sent meanwhile, and the best_effort reader of a log that
/// grows has a second or 512 KiB.
const CALM_SLEEP: Duration = Duration::from_millis(5);
/// While one publisher at least is not.
const BUSY_SLEEP: Duration = Duration::from_millis(2);
/// From here on a publisher is busy that has sent so much from one sleep to the next: a sixteenth of the longest log.
const BUSY_LEN_BYTES: usize = 32 << 10;
/// How long it sleeps at least, and how often it looks from one large message of a publisher to the next: without readers
/// the memory of one is used anew for the next.
const SHORT_SLEEP: Duration = Duration::from_micros(100);
const LOOKS_PER_LARGE: u32 = 4;

/// What one publisher has sent.
#[derive(Default)]
pub struct Sent {
    /// Number of its last large message, and when that was sent.
    last_large: Option<(u64, u64)>,
    /// Bytes of small messages since the last sleep.
    small_bytes: usize,
}

/// What all have sent.
#[derive(Default)]
pub struct Pace {
    /// The shortest time between two large messages of a publisher since the last look, and before it.
    large_every: [Option<Duration>; 2],
    is_busy: bool,
}

impl Pace {
    /// A message of `len` bytes of this publisher has come.
    pub fn message(&mut self, sent: &mut Sent, stamp: &Stamp, len: usize) {
        if len <= MAX_INLINE_LEN_BYTES {
            sent.small_bytes += len;
            self.is_busy |= sent.small_bytes > BUSY_LEN_BYTES;
            return;
        }
        // On the average, if some between them were not seen.
        if let Some((seq, sent_ns)) = sent.last_large.replace((stamp.seq, stamp.sent_ns)) {
            let since = Duration::from_nanos(stamp.sent_ns.saturating_sub(sent_ns));
            let messages = stamp.seq.saturating_sub(seq).max(1);
            let every = since / u32::try_from(messages).unwrap_or(u32::MAX);
            self.large_every[0] = Some(self.large_every[0].map_or(every, |least| least.min(every)));
        }
    }

    /// The domain is looked at.
    pub fn look(&mut self) {
        self.large_every = [None, self.large_every[0]];
    }

    /// How long to sleep now.
    pub fn pause<'a>(&mut self, all: impl Iterator<Item = &'a mut Sent>) -> Duration {
        all.for_each(|sent| sent.small_bytes = 0);
        let longest = if std::mem::take(&mut self.is_busy) { BUSY_SLEEP } else { CALM_SLEEP };
        let large_every = self.large_every.iter().flatten().min();
        let pause = large_every.map_or(longest, |every| *every / LOOKS_PER_LARGE);
        pause.clamp(SHORT_SLEEP, longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sleeps_for_long_while_little_comes() {
        let (mut pace, mut sent) = (Pace::default(), Sent::default());
        let message = |pace: &mut Pace, sent: &mut Sent, ms: u64, len| {
            let sent_ns = ms * 1_000_000;
            let stamp = Stamp { publisher: 1, seq: ms, sent_ns, taken_ns: sent_ns };
            pace.message(sent, &stamp, len);
        };
        let pause = |pace: &mut Pace, sent: &mut Sent| pace.pause(std::iter::once(sent));
        message(&mut pace, &mut sent, 0, 4000);
        assert_eq!(pause(&mut pace, &mut sent), CALM_SLEEP);
        (0..9).for_each(|_| message(&mut pace, &mut sent, 0, 4000));
        assert_eq!(pause(&mut pace, &mut sent), BUSY_SLEEP);
        assert_eq!(pause(&mut pace, &mut sent), CALM_SLEEP, "what came before the sleep is read");
        // Large messages each 8 ms, and then each: 1 ms.
        message(&mut pace, &mut sent, 8, 1 << 20);
        message(&mut pace, &mut sent, 16, 1 << 20);
        assert_eq!(pause(&mut pace, &mut sent), Duration::from_millis(1) / 4);
        pace.look();
        assert_eq!(pause(&mut pace, &mut sent), Duration::from_millis(1) / 4);
        pace.look();
        assert_eq!(pause(&mut pace, &mut sent), CALM_SLEEP);
    }
}
