//! The structures in shared memory, as shown in docs/design/shm-layout.md.
//!
//! Every field is an atomic because another process may read it at any time. Only the owner of a page writes
//! it.

use crate::sync::AtomicU64;

/// Bytes of a page. Shared structures are page-aligned so that ownership is per page.
pub const PAGE_LEN_BYTES: usize = 4096;
/// Readers that one log admits.
pub const READERS_PER_LOG: usize = 512;
/// Readers whose entries are in [`LogControl`]; the other entries follow the log.
pub const READERS_IN_CONTROL: usize = 64;
/// Length of the part of a publisher's file with the entries beyond those in [`LogControl`], in bytes.
pub const MORE_ADMISSIONS_LEN_BYTES: usize =
    ((READERS_PER_LOG - READERS_IN_CONTROL) * 40).next_multiple_of(PAGE_LEN_BYTES);
/// Refusals that a log keeps for readers it could not admit.
pub const REFUSALS_PER_LOG: usize = 16;
/// Samples that one reader may hold in place at a time.
pub const PINS_PER_READER: usize = 64;
/// Maximum number of blocks of a log.
pub const BLOCKS_PER_LOG: usize = 64;
/// Publishers in one page of an observer's file.
pub const OBSERVER_SLOTS_PER_PAGE: usize = 32;
/// Shortest block of a log with several blocks.
pub const MIN_BLOCK_LEN_BYTES: usize = 8192;
/// Latency buckets: eight per octave, see `rnet_core::hist`. They fill the rest of the reader's page.
pub const LATENCY_BUCKETS: usize = 400;

/// [`Admission::state`]: the entry is free.
pub const ADMISSION_FREE: u64 = 0;
/// [`Admission::state`]: the reader is admitted; the writer honours its cursor and its sleep.
pub const ADMISSION_ACTIVE: u64 = 1;
/// [`Admission::state`]: the reader made no progress for longer than the limit and was detached.
pub const ADMISSION_DETACHED: u64 = 2;

/// [`BindLine::state`]: the slot is free.
pub const SLOT_FREE: u64 = 0;
/// [`BindLine::state`]: bound to the publisher in the slot, waiting or reading.
pub const SLOT_BOUND: u64 = 1;
/// [`BindLine::state`]: not a reader; holds the summed counters of former publishers.
pub const SLOT_TOTALS: u64 = 2;

macro_rules! zeroed {
    ($($(#[$m:meta])* pub struct $name:ident { $($(#[$fm:meta])* pub $f:ident : $t:ty ,)* })*) => {$(
        $(#[$m])*
        pub struct $name { $($(#[$fm])* pub $f : $t ,)* }
        impl Default for $name {
            fn default() -> Self { Self { $($f: Zeroed::zeroed(),)* } }
        }
        impl Zeroed for $name {
            fn zeroed() -> Self { Self::default() }
        }
    )*};
}

trait Zeroed {
    fn zeroed() -> Self;
}
impl Zeroed for AtomicU64 {
    fn zeroed() -> Self {
        AtomicU64::new(0)
    }
}
impl<T: Zeroed, const N: usize> Zeroed for [T; N] {
    fn zeroed() -> Self {
        std::array::from_fn(|_| T::zeroed())
    }
}

zeroed! {
/// The line that each commit dirties; readers at the end of the log poll it.
#[repr(C, align(128))]
pub struct TailLine {
    /// End of the committed records, a byte position. Its release store is the commit.
    pub tail: AtomicU64,
    /// Start of the newest record. Stored before `tail`, so it may be one record ahead.
    pub last: AtomicU64,
    /// Sequence number of the next message; equals the number of messages sent.
    pub seq: AtomicU64,
    /// Payload bytes sent.
    pub bytes: AtomicU64,
}

/// The line that shows readers that they were lapped; dirtied once per stride of the ring.
#[repr(C, align(128))]
pub struct HeadLine {
    /// Start of the oldest valid record, a byte position.
    pub head: AtomicU64,
    /// Messages that the publisher knows to be missing from its stream, by cause: overrun, link, restart,
    /// detached. Raised after the record with the position of the gap is committed; read by lapped readers.
    pub known_lost: [AtomicU64; 4],
}

/// Flow control and the writer's counters; dirtied off the fast path only.
#[repr(C, align(128))]
pub struct FlowLine {
    /// Nonzero while the writer waits for capacity: the ticket of that sleep (see `wake`).
    pub asleep: AtomicU64,
    /// The bell of its node that wakes the writer.
    pub bell: AtomicU64,
    /// 1 once the writer relies on sleepers' `membarrier` and no longer uses its own fence.
    pub asymmetric: AtomicU64,
    /// Times a reliable send found the log full.
    pub full: AtomicU64,
    /// Messages returned to the caller because a reader blocked the log.
    pub refused: AtomicU64,
    /// Readers detached because they made no progress.
    pub detached: AtomicU64,
    /// Current bytes of chunk memory in the pool.
    pub pool_bytes: AtomicU64,
    /// Current number of chunks in the pool.
    pub pool_chunks: AtomicU64,
    /// While the writer waits for capacity: the reader position that wakes it.
    pub wake_position: AtomicU64,
    /// Bytes of the log that currently have memory.
    pub log_bytes: AtomicU64,
    /// Entries of the reader table that were ever used. Later entries may have no memory.
    pub used_admissions: AtomicU64,
    /// Time of the publisher's last explicit liveliness assertion, CLOCK_MONOTONIC in ns.
    pub asserted_ns: AtomicU64,
    /// Deadline periods in which the publisher sent nothing. Its node's control thread increments it.
    pub deadline_missed: AtomicU64,
    /// Time at which the publisher last inserted a message from another host, CLOCK_MONOTONIC in ns; 0:
    /// never.
    pub forwarded_ns: AtomicU64,
    /// Uncertainty of the timestamps of messages from another host, in ns; 0 for a publisher that timestamps
    /// its own messages; `u64::MAX` if unknown.
    pub uncertain_ns: AtomicU64,
}

/// One admitted reader, in the writer's page: the position from which the writer keeps the log for it.
#[repr(C)]
pub struct Admission {
    /// The admitted subscription.
    pub subscription: AtomicU64,
    /// The granted request. Each new request of a reader has the next number.
    pub generation: AtomicU64,
    /// First byte position that the reader gets.
    pub start: AtomicU64,
    /// Sequence number of the message at `start`.
    pub start_seq: AtomicU64,
    /// One of the `ADMISSION_…` values; stored last.
    pub state: AtomicU64,
}

/// Why a reader was not admitted.
#[repr(C)]
pub struct Refusal {
    /// The refused subscription.
    pub subscription: AtomicU64,
    /// 1: the reader table is full.
    pub reason: AtomicU64,
}

/// Everything of a log except the ring; located in the first page of a publisher's file.
#[repr(C)]
pub struct LogControl {
    /// See [`TailLine`].
    pub tail: TailLine,
    /// See [`HeadLine`].
    pub head: HeadLine,
    /// See [`FlowLine`].
    pub flow: FlowLine,
    /// The first of the admitted readers.
    pub admissions: [Admission; READERS_IN_CONTROL],
    /// Refused readers; the newest overwrites the oldest.
    pub refusals: [Refusal; REFUSALS_PER_LOG],
    /// Index in the ring of each block of the log, by block number modulo the number of blocks of the ring.
    /// Readers mask the values.
    pub blocks: [AtomicU64; BLOCKS_PER_LOG],
}

/// A reader's progress for its writer, written while the reader reads.
#[repr(C, align(128))]
pub struct CursorLine {
    /// The reader has finished with everything below this byte position.
    pub cursor: AtomicU64,
}

/// The publisher of a slot, and how to wake its reader. Written when binding and around sleeps, never while
/// reading, because the writer checks it after each message.
#[repr(C, align(128))]
pub struct BindLine {
    /// One of the `SLOT_…` values; stored last.
    pub state: AtomicU64,
    /// The publisher that the slot is bound to.
    pub publisher: AtomicU64,
    /// The subscription that owns the slot.
    pub subscription: AtomicU64,
    /// Number of the request in its subscription; never reused.
    pub generation: AtomicU64,
    /// 1 if the writer must wait for the reader.
    pub reliable: AtomicU64,
    /// The past messages that the reader requests, see [`crate::binding::HistoryRequest`].
    pub history: AtomicU64,
    /// Nonzero while the reader sleeps: the ticket of that sleep (see `wake`).
    pub asleep: AtomicU64,
    /// The bell of the reader's node that wakes it.
    pub bell: AtomicU64,
}

/// A reader's counters, for tools.
#[repr(C, align(128))]
pub struct CountLine {
    /// Messages delivered to the user.
    pub received: AtomicU64,
    /// Payload bytes delivered to the user.
    pub bytes: AtomicU64,
    /// Messages overwritten before they were read.
    pub lost_overrun: AtomicU64,
    /// Messages lost between hosts.
    pub lost_link: AtomicU64,
    /// Messages lost because the publisher restarted.
    pub lost_restart: AtomicU64,
    /// Messages lost because this reader was detached.
    pub lost_detached: AtomicU64,
    /// Messages skipped by the reader's choice (`keep_last`, `latest`).
    pub skipped: AtomicU64,
    /// Sequence number of the next expected message.
    pub next_seq: AtomicU64,
    /// Send time of the newest message taken, CLOCK_MONOTONIC in ns.
    pub newest_time_ns: AtomicU64,
    /// Highest latency, in ns.
    pub max_latency_ns: AtomicU64,
    /// Sum of latencies, in ns.
    pub sum_latency_ns: AtomicU64,
    /// Sleeps that ended by timeout although a message was available: a wake-up was lost.
    pub late_wakes: AtomicU64,
    /// Received messages that could not be decoded. Any thread of the reader increments it.
    pub malformed: AtomicU64,
    /// Messages not delivered because they were older than their publisher's lifespan.
    pub expired: AtomicU64,
    /// Deadline periods in which the publisher sent nothing. The reader's control thread increments it.
    pub deadline_missed: AtomicU64,
}

/// One reader of one log: a whole page in the reader's file, which the writer maps read-only.
#[repr(C, align(4096))]
pub struct ReaderSlot {
    /// See [`CursorLine`].
    pub cursor: CursorLine,
    /// See [`BindLine`].
    pub bind: BindLine,
    /// See [`CountLine`].
    pub count: CountLine,
    /// Chunks that the reader uses in place: 0, or [`crate::pins::pin_word`].
    pub pins: [AtomicU64; PINS_PER_READER],
    /// Latency histogram; buckets as in `rnet_core::hist`.
    pub latency: [AtomicU64; LATENCY_BUCKETS],
}

/// One publisher that an observer follows, in the observer's file. The publisher checks it for a sleeping
/// observer.
#[repr(C, align(128))]
pub struct ObserverSlot {
    /// The followed publisher, 0 for none. Stored before the ticket.
    pub publisher: AtomicU64,
    /// Nonzero while the observer sleeps: the ticket of that sleep (see `wake`).
    pub asleep: AtomicU64,
}

/// First words of a chunk's file; the payload starts on the next page.
#[repr(C)]
pub struct ChunkHeader {
    /// `CHUNK_MAGIC`.
    pub magic: AtomicU64,
    /// The publisher that owns the chunk.
    pub publisher: AtomicU64,
    /// Payload capacity of the chunk, in bytes.
    pub capacity: AtomicU64,
    /// Counts the uses of the chunk. A record contains the generation of its use.
    pub generation: AtomicU64,
    /// 1 after the publisher has unlinked the chunk: readers unmap it.
    pub retired: AtomicU64,
}
}

/// `ChunkHeader::magic`.
pub const CHUNK_MAGIC: u64 = u64::from_le_bytes(*b"RNETCHK\x01");

#[cfg(not(loom))]
const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<TailLine>() == 128);
    assert!(size_of::<HeadLine>() == 128);
    assert!(size_of::<FlowLine>() == 128);
    assert!(size_of::<Admission>() == 40);
    assert!(size_of::<Refusal>() == 16);
    assert!(offset_of!(LogControl, admissions) == 384);
    assert!(offset_of!(LogControl, refusals) == 384 + 2560);
    assert!(offset_of!(LogControl, blocks) == 3200);
    assert!(size_of::<LogControl>() == 3712);
    assert!(MORE_ADMISSIONS_LEN_BYTES == 20480);
    assert!(offset_of!(ReaderSlot, bind) == 128);
    assert!(offset_of!(ReaderSlot, count) == 256);
    assert!(offset_of!(ReaderSlot, pins) == 384);
    assert!(offset_of!(ReaderSlot, latency) == 896);
    assert!(size_of::<ReaderSlot>() == PAGE_LEN_BYTES);
    assert!(size_of::<ChunkHeader>() == 40);
    assert!(size_of::<ObserverSlot>() * OBSERVER_SLOTS_PER_PAGE == PAGE_LEN_BYTES);
};
