//! What a publisher of large messages does for a reliable reader that falls behind: it waits for a moment, so that
//! both go on in memory that is in use already.
//!
//! A publisher on this host is faster than most readers, and far faster than a link to another host. It could be as far
//! ahead as its pool may grow, with new memory for each message, which costs several times as much as to fill it.

use std::sync::Arc;
use std::time::Duration;

use rnet_core::{Error, OnFull};

use super::Writer;
use crate::pool::size_for;
use crate::reader_table::ReaderRef;

/// A reader may be as far behind as the publisher's depth of large messages, and by as many bytes as this.
const AHEAD_LEN_BYTES: u64 = 16 << 20;

/// How far a writer has waited for readers that fell behind.
#[derive(Debug)]
pub(super) struct CatchUp {
    /// The longest wait before a message.
    pub(super) limit: Duration,
    /// What the slowest reader needed when it was waited for and did not read on. It is not waited for again there.
    stood_at: Option<u64>,
}

impl Default for CatchUp {
    fn default() -> CatchUp {
        // Long enough for a reader that shares its core with others.
        CatchUp { limit: Duration::from_millis(20), stood_at: None }
    }
}

impl Writer {
    /// Before a message of `len` bytes takes a chunk: waits until the slowest reader, which needs the log from `needed`
    /// on, has caught up by half, if it is far behind and the publisher is one that waits. A reader that stands still
    /// is waited for once; the pool then grows up to its limit.
    pub(super) fn let_catch_up(
        &mut self,
        slowest: &Arc<ReaderRef>,
        needed: u64,
        len: usize,
    ) -> Result<(), Error> {
        let ahead = (AHEAD_LEN_BYTES / size_for(len)).max(u64::from(self.qos.large_depth)) as usize;
        let is_far = self.pool.position_back(ahead).is_some_and(|position| needed <= position);
        if !is_far || self.held.never_waits || self.catch_up.stood_at == Some(needed) {
            return Ok(());
        }
        let (OnFull::Wait(limit) | OnFull::Detach { stall: limit }) = self.qos.on_full else {
            return Ok(());
        };
        let limit = limit.min(self.catch_up.limit);
        let Some(half) = self.pool.position_back(ahead.div_ceil(2)) else { return Ok(()) };
        self.sleep_for_room(slowest, half + 1, limit)?;
        self.catch_up.stood_at = (slowest.needed() == needed).then_some(needed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rnet_core::{PublisherQos, Reliability};
    use rnet_ring::room;

    use super::super::tests::World;
    use super::*;

    const LEN: usize = 2 << 20;
    /// So many unread messages of [`LEN`] are far behind.
    const AHEAD: usize = 11;
    const LONG: Duration = Duration::from_secs(3600);

    fn writer(world: &World, on_full: OnFull, limit: Duration) -> Writer {
        let qos = PublisherQos {
            reliability: Reliability::Reliable,
            on_full,
            large_depth: AHEAD as u32,
            ..PublisherQos::default()
        };
        let mut writer = world.writer(qos);
        writer.catch_up.limit = limit;
        writer
    }

    #[test]
    fn a_reader_that_reads_on_is_waited_for_and_the_pool_stays_small() {
        let world = World::new();
        let mut writer = writer(&world, OnFull::Wait(LONG), LONG);
        let reader_table = writer.reader_table().clone();
        let (_file, slot) = world.admit(&reader_table, true);
        let (map, bells, over) = (writer.map.clone(), world.node.bells(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // Reads only when the writer sleeps, and then as far as the writer waits for.
            let reader = scope.spawn(|| {
                let (flow, cursor) = (&map.control().flow, &slot.page().cursor.cursor);
                let (mut rung, mut times) = (0, 0);
                while !over.load(Ordering::Acquire) {
                    std::thread::yield_now();
                    let wanted = flow.wanted.load(Ordering::Acquire);
                    if flow.asleep.load(Ordering::Acquire) != 0
                        && cursor.load(Ordering::Relaxed) < wanted
                        && room::show(cursor, wanted, flow, &mut rung)
                    {
                        bells.ring(flow.bell.load(Ordering::Relaxed));
                        times += 1;
                    }
                }
                times
            });
            for _ in 0..10 * AHEAD {
                writer.send(&vec![7; LEN]).unwrap();
            }
            over.store(true, Ordering::Release);
            let times = reader.join().unwrap();
            assert!(times > 10, "it was waited for {times} times");
        });
        assert!(writer.pool.len() <= AHEAD + 1, "{} chunks", writer.pool.len());
        reader_table.bury_node(world.node.incarnation());
    }

    #[test]
    fn one_that_stands_still_is_waited_for_once() {
        let world = World::new();
        let mut writer = writer(&world, OnFull::Wait(LONG), Duration::from_millis(1));
        let reader_table = writer.reader_table().clone();
        let (_file, slot) = world.admit(&reader_table, true);
        let send = |writer: &mut Writer| writer.send(&vec![7; LEN]).unwrap();
        for _ in 0..=AHEAD {
            send(&mut writer);
        }
        let stood_at = writer.catch_up.stood_at;
        assert!(stood_at.is_some());
        // Another wait would not end.
        writer.catch_up.limit = LONG;
        for _ in 0..AHEAD {
            send(&mut writer);
        }
        assert_eq!(writer.pool.len(), 2 * AHEAD + 1);
        // Once it has read on, it is waited for again.
        writer.catch_up.limit = Duration::from_millis(1);
        slot.page()
            .cursor
            .cursor
            .store(writer.pool.position_back(AHEAD).unwrap(), Ordering::Release);
        send(&mut writer);
        assert!(writer.catch_up.stood_at > stood_at);
        reader_table.bury_node(world.node.incarnation());
    }

    #[test]
    fn who_never_waits_does_not_wait_for_it() {
        let world = World::new();
        for (on_full, waits) in [(OnFull::Refuse, true), (OnFull::Wait(LONG), false)] {
            let mut writer = writer(&world, on_full, LONG);
            writer.set_waiting(waits);
            let reader_table = writer.reader_table().clone();
            let (_file, _slot) = world.admit(&reader_table, true);
            for _ in 0..2 * AHEAD {
                writer.send(&vec![7; LEN]).unwrap();
            }
            assert_eq!(writer.pool.len(), 2 * AHEAD);
            reader_table.bury_node(world.node.incarnation());
        }
    }
}
