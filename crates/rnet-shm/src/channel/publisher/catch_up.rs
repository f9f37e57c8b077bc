//! What a publisher of large messages does for a reliable reader that falls behind: it waits for a moment, so that
//! both go on in memory that is in use already.
//!
//! A publisher on this host is faster than most readers, and far faster than a link to another host. It could be as far
//! ahead as its pool may grow, with new memory for each message, which costs several times as much as to fill it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet_core::{Error, Lane, OnFull};

use super::Writer;
use crate::channel::reader_table::ReaderRef;

/// A reader that is behind by more bytes than these, and by more messages than the publisher's depth of large ones, is
/// far behind.
const MAX_LAG_LEN_BYTES: u64 = 16 << 20;
/// Who reads so much for each millisecond of a wait is worth the next one, however far behind it is.
const MIN_READ_BYTES_PER_MS: u64 = 100 << 10;
/// A reader that is behind by so much more than it has been since the last wait falls behind; another one catches up by
/// itself.
const LAG_GROWTH_LEN_BYTES: u64 = 2 << 20;

/// How a writer has waited for readers that are far behind.
#[derive(Debug)]
pub(super) struct CatchUp {
    /// The longest wait before a message, in ms: long enough for a reader that shares its core with others.
    limit_ms: u16,
    /// After a wait that was of little use there is none until the slowest reader needs nothing before this position
    /// of the log, or none is far behind.
    resume_at: u64,
    /// By how much the slowest reader was behind when it was least so, since the last wait.
    least_bytes: u64,
}

impl Default for CatchUp {
    fn default() -> CatchUp {
        CatchUp { limit_ms: 20, resume_at: 0, least_bytes: 0 }
    }
}

impl Writer {
    /// Before a large message: waits until the slowest reliable reader has read half of what it is behind, if it is far
    /// behind and falls back further, and the publisher is one that waits. One that reads little meanwhile is not waited
    /// for again before it has read all that stands before it now: the pool may grow up to its limit. A reader may be slow
    /// at first only, as a link that has just begun to send. An urgent message waits for no memory.
    pub(super) fn wait_for_catch_up(&mut self) -> Result<(), Error> {
        let (OnFull::Wait(limit) | OnFull::Detach { stall: limit }) = self.qos.on_full else {
            return Ok(());
        };
        if self.pool.bytes() <= MAX_LAG_LEN_BYTES
            || self.qos.lane == Lane::Urgent
            || self.pending_wait.never_waits
        {
            return Ok(());
        }
        self.refresh_readers();
        let Some((slowest, needed)) = self.slowest() else { return Ok(()) };
        let (messages, len_bytes) = self.pool.backlog(needed);
        if len_bytes <= MAX_LAG_LEN_BYTES || messages <= self.qos.large_depth as usize {
            (self.catch_up.resume_at, self.catch_up.least_bytes) = (0, MAX_LAG_LEN_BYTES);
            return Ok(());
        }
        self.catch_up.least_bytes = self.catch_up.least_bytes.min(len_bytes);
        if needed < self.catch_up.resume_at
            || len_bytes < self.catch_up.least_bytes + LAG_GROWTH_LEN_BYTES
        {
            return Ok(());
        }
        let half = messages / 2;
        let Some(wanted) = self.pool.nth_newest_position(half + 1).map(|position| position + 1)
        else {
            return Ok(());
        };
        // What the publisher chose is for a log or a pool that is full, and counts from then on.
        let own_limit = Duration::from_millis(self.catch_up.limit_ms.into());
        let began = Instant::now();
        let waited = self.sleep_until_read(&slowest, wanted, began + own_limit.min(limit / 4));
        // Where others have come meanwhile, the next message waits for whoever is the slowest then.
        if !self.reader_table.is_newer(self.seen_epoch) {
            let left_bytes = self.pool.backlog(slowest.needed()).1;
            let worth_bytes = MIN_READ_BYTES_PER_MS * began.elapsed().as_millis() as u64;
            let is_worth_it = len_bytes.saturating_sub(left_bytes) >= worth_bytes.max(1);
            self.catch_up.resume_at = if is_worth_it { 0 } else { self.log.tail() };
            self.catch_up.least_bytes = left_bytes;
        }
        waited
    }

    /// Other readers wake it, too, and it sleeps again.
    fn sleep_until_read(
        &mut self,
        reader: &Arc<ReaderRef>,
        wanted: u64,
        end: Instant,
    ) -> Result<(), Error> {
        while reader.needed() < wanted && !self.reader_table.is_newer(self.seen_epoch) {
            self.check_interrupted()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.sleep_for_capacity(reader, wanted, left)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rnet_core::{PublisherQos, Reliability};
    use rnet_ring::backpressure;

    use super::super::PublisherMap;
    use super::super::tests::TestDomain;
    use super::*;

    const LEN: usize = 4 << 20;
    /// So many unread messages of [`LEN`] are not far behind.
    const NEAR: usize = 11;
    const LONG: Duration = Duration::from_secs(3600);

    fn writer(domain: &TestDomain, on_full: OnFull, lane: Lane) -> Writer {
        let mut writer = domain.writer(PublisherQos {
            reliability: Reliability::Reliable,
            on_full,
            lane,
            large_depth: NEAR as u32,
            ..PublisherQos::default()
        });
        // A minute: a wait that does not come to its end is the failure of its test.
        writer.catch_up.limit_ms = u16::MAX;
        writer
    }

    /// Does something once the writer sleeps.
    fn asleep(map: Arc<PublisherMap>, then: impl FnOnce()) {
        while map.control().flow.asleep.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        then();
    }

    fn send(writer: &mut Writer, count: usize) {
        for _ in 0..count {
            writer.send(&vec![7; LEN]).unwrap();
        }
    }

    #[test]
    fn a_reader_that_reads_on_is_waited_for_and_the_pool_stays_small() {
        let domain = TestDomain::new();
        let mut writer = writer(&domain, OnFull::Wait(8 * LONG), Lane::Bulk);
        let reader_table = writer.reader_table().clone();
        let (_slow, slot) = domain.admit(&reader_table, true);
        let (_fast, quick) = domain.admit(&reader_table, true);
        let (map, bells, over) = (writer.map.clone(), domain.node.bells(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // Both read only when the writer sleeps. The fast one is first, and wakes the writer for nothing.
            let reader = scope.spawn(|| {
                let flow = &map.control().flow;
                let cursors = [&quick, &slot].map(|slot| &slot.page().cursor.cursor);
                let (mut rung, mut times) = ([0; 2], 0);
                while !over.load(Ordering::Acquire) {
                    for (cursor, rung) in cursors.iter().zip(&mut rung) {
                        std::thread::yield_now();
                        let wanted = flow.wake_position.load(Ordering::Acquire);
                        let sleeps = flow.asleep.load(Ordering::Acquire) != 0;
                        if sleeps
                            && cursor.load(Ordering::Relaxed) < wanted
                            && backpressure::publish_cursor(cursor, wanted, flow, rung)
                        {
                            bells.ring(flow.bell.load(Ordering::Relaxed));
                            times += 1;
                        }
                    }
                }
                times
            });
            send(&mut writer, 10 * NEAR);
            over.store(true, Ordering::Release);
            let times = reader.join().unwrap();
            assert!(times > 10, "it was waited for {times} times");
        });
        assert!(writer.pool.len() <= NEAR + 2, "{} chunks", writer.pool.len());
        assert_eq!(writer.catch_up.resume_at, 0);
        reader_table.remove_dead_node(domain.node.incarnation());
    }

    #[test]
    fn one_that_stands_still_is_waited_for_once() {
        let domain = TestDomain::new();
        let mut writer = writer(&domain, OnFull::Wait(8 * LONG), Lane::Bulk);
        let reader_table = writer.reader_table().clone();
        let (_file, slot) = domain.admit(&reader_table, true);
        writer.catch_up.limit_ms = 1;
        send(&mut writer, NEAR + 2);
        let gave_up_at = writer.catch_up.resume_at;
        assert_ne!(gave_up_at, 0);
        // Another wait would not end; nor if it has read on a little.
        writer.catch_up.limit_ms = u16::MAX;
        let read_to = |position| slot.page().cursor.cursor.store(position, Ordering::Release);
        send(&mut writer, NEAR);
        read_to(writer.pool.nth_newest_position(2 * NEAR).unwrap());
        send(&mut writer, NEAR);
        // Two were read.
        assert_eq!(writer.pool.backlog(0).0, 3 * NEAR);
        // Once it has read what stood before it then, it is waited for again, as far behind as it is.
        writer.catch_up.limit_ms = 1;
        read_to(gave_up_at);
        send(&mut writer, 1);
        assert!(writer.catch_up.resume_at > gave_up_at);
        // And once it has caught up.
        read_to(writer.pool.nth_newest_position(2).unwrap());
        send(&mut writer, 1);
        assert_eq!(writer.catch_up.resume_at, 0);
        send(&mut writer, NEAR);
        assert_ne!(writer.catch_up.resume_at, 0);
        reader_table.remove_dead_node(domain.node.incarnation());
    }

    /// A publisher that keeps a rate would otherwise have half of it while its reader catches up.
    #[test]
    fn one_that_catches_up_by_itself_is_not_waited_for() {
        let domain = TestDomain::new();
        let mut writer = writer(&domain, OnFull::Wait(8 * LONG), Lane::Bulk);
        let reader_table = writer.reader_table().clone();
        let (_file, slot) = domain.admit(&reader_table, true);
        writer.catch_up.limit_ms = 1;
        send(&mut writer, 4 * NEAR);
        // As after a wait in which it has read much.
        (writer.catch_up.resume_at, writer.catch_up.least_bytes) = (0, writer.pool.backlog(0).1);
        writer.catch_up.limit_ms = u16::MAX;
        for left in (2 * NEAR..4 * NEAR).rev() {
            let position = writer.pool.nth_newest_position(left - 1).unwrap();
            slot.page().cursor.cursor.store(position, Ordering::Release);
            send(&mut writer, 1);
        }
        writer.catch_up.limit_ms = 1;
        send(&mut writer, 1);
        assert_ne!(writer.catch_up.resume_at, 0);
        reader_table.remove_dead_node(domain.node.incarnation());
    }

    #[test]
    fn who_never_waits_does_not_wait_for_it() {
        let domain = TestDomain::new();
        for (on_full, lane, waits) in [
            (OnFull::Refuse, Lane::Bulk, true),
            (OnFull::Wait(8 * LONG), Lane::Bulk, false),
            (OnFull::Wait(8 * LONG), Lane::Urgent, true),
        ] {
            let mut writer = writer(&domain, on_full, lane);
            writer.set_waiting(waits);
            let reader_table = writer.reader_table().clone();
            let (_file, _slot) = domain.admit(&reader_table, true);
            send(&mut writer, 2 * NEAR);
            assert_eq!(writer.pool.len(), 2 * NEAR);
            reader_table.remove_dead_node(domain.node.incarnation());
        }
    }

    /// Who joins ends the wait, which says nothing of the one that was waited for.
    #[test]
    fn one_that_joins_meanwhile_does_not_end_the_waits_for_another() {
        let domain = TestDomain::new();
        let mut writer = writer(&domain, OnFull::Wait(8 * LONG), Lane::Bulk);
        let reader_table = writer.reader_table().clone();
        let (_file, _slot) = domain.admit(&reader_table, true);
        send(&mut writer, NEAR + 1);
        let map = writer.map.clone();
        std::thread::scope(|scope| {
            let joins = || domain.admit(&reader_table, false);
            let joined = scope.spawn(move || {
                let mut file = None;
                asleep(map, || file = Some(joins()));
                file
            });
            send(&mut writer, 1);
            joined.join().unwrap();
        });
        assert_eq!(writer.catch_up.resume_at, 0);
        reader_table.remove_dead_node(domain.node.incarnation());
    }

    /// Whoever interrupts it ends the wait, and nothing was sent.
    #[test]
    fn a_wait_can_be_stopped() {
        let domain = TestDomain::new();
        let mut writer = writer(&domain, OnFull::Wait(8 * LONG), Lane::Bulk);
        let reader_table = writer.reader_table().clone();
        let (_file, _slot) = domain.admit(&reader_table, true);
        send(&mut writer, NEAR + 1);
        let (stop, map) = (writer.interrupt_handle(), writer.map.clone());
        std::thread::scope(|scope| {
            scope.spawn(move || asleep(map, || stop.interrupt()));
            let stopped = writer.send(&vec![7; LEN]);
            assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
        });
        assert_eq!(writer.seq(), NEAR as u64 + 1);
        reader_table.remove_dead_node(domain.node.incarnation());
    }
}
