//! Limits how far a publisher of large messages gets ahead of its readers on another host.
//!
//! A large message takes 40 bytes of the log, and its pool may grow to 2 GiB: over a slow network that is
//! many minutes of images, each older when it arrives. So the pool counts as full when the link has more than
//! a few MiB to read. The proxy's pool on the other host counts as full when a reliable reader there does.

use std::sync::Arc;

use rnet_core::OnFull;

use super::Writer;
use crate::channel::reader_table::ReaderRef;

/// A reader for another host blocks the publisher once its unread large messages exceed this many bytes: as
/// many as the other host accepts before it has read any.
const REMOTE_WINDOW_LEN_BYTES: u64 = 4 << 20;
/// The same limit for a reader of a proxy, which does not wait: messages that do not fit stay with the link,
/// at the cost of a copy.
const PROXY_WINDOW_LEN_BYTES: u64 = 16 << 20;

impl Writer {
    /// The reliable reader, on the path between hosts, whose backlog blocks large messages, the position from
    /// which it needs the log, and the position at which it would have read half of the backlog. Messages
    /// kept for late joiners do not count: they stay in memory in any case. A publisher that evicts stalled
    /// readers does not wait here: a single message may occupy a network longer than the stall limit.
    pub(super) fn reader_beyond_window(&self) -> Option<(Arc<ReaderRef>, u64, u64)> {
        let is_proxy = self.is_proxy;
        let limit_bytes = if is_proxy { PROXY_WINDOW_LEN_BYTES } else { REMOTE_WINDOW_LEN_BYTES };
        if self.pool.bytes() <= limit_bytes || matches!(self.qos.on_full, OnFull::Detach { .. }) {
            return None;
        }
        let is_between = |reader: &&Arc<ReaderRef>| reader.forwards() || is_proxy;
        let remote = self.readers.iter().filter(|r| r.reliable).filter(is_between);
        let (reader, needed) = remote.map(|r| (r, r.needed())).min_by_key(|(_, at)| *at)?;
        let (messages, len_bytes) = self.pool.backlog(needed);
        let kept_bytes = match self.history {
            0 => 0,
            history => {
                let from = self.pool.nth_newest_position(history as usize).unwrap_or_default();
                self.pool.backlog(from.max(needed)).1
            }
        };
        if len_bytes - kept_bytes <= limit_bytes {
            return None;
        }
        // Past the start of that message, so that a single message is waited for, too.
        let half = self.pool.nth_newest_position(messages / 2 + 1).unwrap_or(needed) + 1;
        Some((reader.clone(), needed, half))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rnet_core::{Durability, Error, PublisherQos, Reliability};

    use super::super::tests::TestDomain;
    use super::*;
    use crate::channel::subscription::LinkRole;

    const LEN: usize = 1 << 20;
    /// This many of them exceed [`REMOTE_WINDOW_LEN_BYTES`].
    const AHEAD: u64 = 4;

    fn writer(domain: &TestDomain, on_full: OnFull, durability: Durability) -> Writer {
        let reliability = Reliability::Reliable;
        domain.writer(PublisherQos { reliability, on_full, durability, ..PublisherQos::default() })
    }

    /// Sends until a send fails; returns the number of sent messages.
    fn fill(writer: &mut Writer, limit: u64) -> u64 {
        let before = writer.seq();
        while writer.seq() < before + limit {
            match writer.send(&vec![7; LEN]) {
                Ok(()) => {}
                Err(Error::Full { reader_node, .. }) => {
                    assert_eq!(&*reader_node, "/both");
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        writer.seq() - before
    }

    #[test]
    fn reader_for_another_host_blocks_the_publisher() {
        for on_full in [OnFull::Refuse, OnFull::Wait(Duration::from_millis(1))] {
            let domain = TestDomain::new();
            let mut writer = writer(&domain, on_full, Durability::Volatile);
            let reader_table = writer.reader_table().clone();
            let forwards = Some(LinkRole::Forwards(0));
            let (_file, slot) = domain.admit_as(&reader_table, true, forwards);
            assert_eq!(fill(&mut writer, 100), AHEAD);
            // Small messages are not blocked.
            writer.send(&[7; 100]).unwrap();
            // As soon as it has read one message, one more fits.
            let read_to = writer.pool.nth_newest_position(AHEAD as usize - 1).unwrap();
            slot.page().cursor.cursor.store(read_to, std::sync::atomic::Ordering::Release);
            assert_eq!(fill(&mut writer, 100), 1);
            reader_table.remove_dead_node(domain.node.incarnation());
        }
    }

    /// Waiting for a position that the reader has reached would spin.
    #[test]
    fn waits_for_a_single_long_message() {
        let domain = TestDomain::new();
        let mut writer = writer(&domain, OnFull::Refuse, Durability::Volatile);
        let reader_table = writer.reader_table().clone();
        let _reader = domain.admit_as(&reader_table, true, Some(LinkRole::Forwards(0)));
        writer.send(&vec![7; REMOTE_WINDOW_LEN_BYTES as usize + 1]).unwrap();
        let (_, needed, half) = writer.reader_beyond_window().unwrap();
        assert!(half > needed);
        reader_table.remove_dead_node(domain.node.incarnation());
    }

    #[test]
    fn reader_of_a_proxy_blocks_it() {
        let domain = TestDomain::new();
        let wait = OnFull::Wait(Duration::from_secs(3600));
        let mut writer = writer(&domain, wait, Durability::Volatile);
        writer.is_proxy = true;
        writer.set_waiting(false);
        let reader_table = writer.reader_table().clone();
        let _reader = domain.admit(&reader_table, true);
        assert_eq!(fill(&mut writer, 100), PROXY_WINDOW_LEN_BYTES / LEN as u64);
        reader_table.remove_dead_node(domain.node.incarnation());
    }

    #[test]
    fn other_readers_block_it_when_the_pool_is_full() {
        let (wait, stall) = (Duration::from_millis(1), Duration::from_millis(1));
        for (on_full, reliable, link) in [
            (OnFull::Wait(wait), true, None),
            (OnFull::Wait(wait), false, Some(LinkRole::Forwards(0))),
            (OnFull::Detach { stall }, true, Some(LinkRole::Forwards(0))),
        ] {
            let domain = TestDomain::new();
            let mut writer = writer(&domain, on_full, Durability::Volatile);
            let reader_table = writer.reader_table().clone();
            let (_file, _slot) = domain.admit_as(&reader_table, reliable, link);
            assert_eq!(
                fill(&mut writer, 4 * AHEAD),
                4 * AHEAD,
                "{on_full:?}, {reliable}, {link:?}"
            );
            reader_table.remove_dead_node(domain.node.incarnation());
        }
    }

    #[test]
    fn messages_kept_for_late_joiners_do_not_count() {
        let domain = TestDomain::new();
        let kept = Durability::TransientLocal { depth: 10 };
        let mut writer = writer(&domain, OnFull::Refuse, kept);
        let reader_table = writer.reader_table().clone();
        let _reader = domain.admit_as(&reader_table, true, Some(LinkRole::Forwards(0)));
        assert_eq!(fill(&mut writer, 100), 10 + AHEAD);
        reader_table.remove_dead_node(domain.node.incarnation());
    }
}
