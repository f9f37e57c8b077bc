//! The structures that stand in shared memory, as drawn in docs/design/shm-layout.md.
//!
//! Every field is an atomic because another process may read it at any time. Who owns the page
//! is the only one to write it.

use crate::sync::AtomicU64;

/// Bytes of a page; shared structures are placed on page bounds so that ownership is per page.
pub const PAGE_LEN_BYTES: usize = 4096;
/// Readers that one log admits.
pub const READERS_PER_LOG: usize = 512;
/// How many of them have their entry in [`LogControl`]; the entries of the others stand behind the log.
pub const READERS_IN_CONTROL: usize = 64;
/// Length of the part of a publisher's file with the entries that [`LogControl`] has no room for, in bytes.
pub const MORE_ADMISSIONS_LEN_BYTES: usize =
    ((READERS_PER_LOG - READERS_IN_CONTROL) * 40).next_multiple_of(PAGE_LEN_BYTES);
/// Verdicts that a log keeps for readers it could not admit.
pub const REFUSALS_PER_LOG: usize = 16;
/// Samples that one reader may hold in place at a time.
pub const PINS_PER_READER: usize = 64;
/// Blocks that a log consists of at most.
pub const BLOCKS_PER_LOG: usize = 64;
/// Publishers that one page of an observer's file names.
pub const OBSERVER_SLOTS_PER_PAGE: usize = 32;
/// Shortest block of a log that has several.
pub const MIN_BLOCK_LEN_BYTES: usize = 8192;
/// Latency buckets: eight per octave, see `rnet_core::hist`. They fill the reader's page.
pub const LATENCY_BUCKETS: usize = 400;

/// [`Admission::state`]: the entry is free.
pub const ADMISSION_FREE: u64 = 0;
/// [`Admission::state`]: the reader is admitted; the writer honours its cursor and its sleep.
pub const ADMISSION_ACTIVE: u64 = 1;
/// [`Admission::state`]: the reader stood still for longer than the limit and was let go.
pub const ADMISSION_DETACHED: u64 = 2;

/// [`BindLine::state`]: the slot is free.
pub const SLOT_FREE: u64 = 0;
/// [`BindLine::state`]: bound to the publisher named in the slot, waiting or reading.
pub const SLOT_BOUND: u64 = 1;
/// [`BindLine::state`]: not a reader; sums the counters of publishers that are gone.
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
/// The line that each commit dirties; readers that have caught up poll it.
#[repr(C, align(128))]
pub struct TailLine {
    /// End of the committed records, a byte position. Its release store is the commit.
    pub tail: AtomicU64,
    /// Start of the newest record. Stored before `tail`, so it may run one record ahead of it.
    pub last: AtomicU64,
    /// Sequence number of the next message, which is the number of messages sent.
    pub seq: AtomicU64,
    /// Payload bytes sent.
    pub bytes: AtomicU64,
}

/// The line that tells lapped readers so; dirtied once per stride of the ring.
#[repr(C, align(128))]
pub struct HeadLine {
    /// Start of the oldest record that is still whole, a byte position.
    pub head: AtomicU64,
    /// Messages that the publisher knows to be missing from what it sends, by cause: overrun, link, restart,
    /// detached. Raised once the record is committed that says where, for readers that are lapped.
    pub known_lost: [AtomicU64; 4],
}

/// Flow control and the writer's counters; dirtied off the fast path only.
#[repr(C, align(128))]
pub struct FlowLine {
    /// Non-zero while the writer sleeps for room: the ticket of that sleep (see `wake`).
    pub asleep: AtomicU64,
    /// Which of its node's bells wakes the writer.
    pub bell: AtomicU64,
    /// 1 once the writer counts on sleepers' `membarrier` and no longer fences for itself.
    pub asymmetric: AtomicU64,
    /// Times a reliable send found the log full.
    pub full: AtomicU64,
    /// Messages given back to the caller because a reader held the log.
    pub refused: AtomicU64,
    /// Readers let go because they stood still.
    pub detached: AtomicU64,
    /// Bytes of chunk memory that the pool holds now.
    pub pool_bytes: AtomicU64,
    /// Chunks in the pool now.
    pub pool_chunks: AtomicU64,
    /// While the writer sleeps for room: how far a reader's cursor must be to wake it.
    pub wake_position: AtomicU64,
    /// Bytes of the log that have memory now.
    pub log_bytes: AtomicU64,
    /// Entries of the table of readers that were ever in use: those behind them may have no memory.
    pub used_admissions: AtomicU64,
    /// When the publisher last asserted that it is alive other than by a message, CLOCK_MONOTONIC in ns.
    pub asserted_ns: AtomicU64,
    /// Periods of the publisher's deadline in which it sent nothing. Its node's control thread adds to it.
    pub deadline_missed: AtomicU64,
    /// When the publisher last put in a message that was sent on another host, CLOCK_MONOTONIC in ns; 0: never.
    pub forwarded_ns: AtomicU64,
    /// How far from the truth the stamps of messages of another host may be, in ns; 0 for a publisher that stamps its
    /// own. The largest value: that is not known.
    pub uncertain_ns: AtomicU64,
}

/// One admitted reader, in the writer's page: from where on the writer keeps the log for it.
#[repr(C)]
pub struct Admission {
    /// The subscription that is admitted.
    pub subscription: AtomicU64,
    /// Which of its requests was granted: a reader that asks again does so under the next number.
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
    /// The subscription that was refused.
    pub subscription: AtomicU64,
    /// 1: no room for another reader.
    pub reason: AtomicU64,
}

/// Everything of a log but the ring; stands in the first page of a publisher's file.
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
    /// Refused readers, the newest overwrite the oldest.
    pub refusals: [Refusal; REFUSALS_PER_LOG],
    /// Where in the ring the blocks of the log stand, by number of the block modulo the number of
    /// blocks that the ring has. Readers mask what they find.
    pub blocks: [AtomicU64; BLOCKS_PER_LOG],
}

/// What a reader shows its writer, touched by the reader while it reads.
#[repr(C, align(128))]
pub struct CursorLine {
    /// Everything below this byte position is done with.
    pub cursor: AtomicU64,
}

/// Which publisher a slot is for, and how its reader is woken; written when binding and around
/// sleeps, never while reading: the writer looks here after each message.
#[repr(C, align(128))]
pub struct BindLine {
    /// One of the `SLOT_…` values; stored last.
    pub state: AtomicU64,
    /// The publisher that the slot is bound to.
    pub publisher: AtomicU64,
    /// The subscription that owns the slot.
    pub subscription: AtomicU64,
    /// Which request of its subscription this is; no number is used twice.
    pub generation: AtomicU64,
    /// 1 if the reader holds the writer back.
    pub reliable: AtomicU64,
    /// What the reader asks for of what was sent before, see [`crate::binding::HistoryRequest`].
    pub history: AtomicU64,
    /// Non-zero while the reader sleeps: the ticket of that sleep (see `wake`).
    pub asleep: AtomicU64,
    /// Which of the reader's node's bells wakes it.
    pub bell: AtomicU64,
}

/// A reader's counters, for tools.
#[repr(C, align(128))]
pub struct CountLine {
    /// Messages handed to the user.
    pub received: AtomicU64,
    /// Payload bytes handed to the user.
    pub bytes: AtomicU64,
    /// Messages lost because the writer was faster.
    pub lost_overrun: AtomicU64,
    /// Messages lost between hosts.
    pub lost_link: AtomicU64,
    /// Messages lost because the publisher started again.
    pub lost_restart: AtomicU64,
    /// Messages lost because this reader was let go.
    pub lost_detached: AtomicU64,
    /// Messages passed over by the reader's choice (`keep_last`, `latest`).
    pub skipped: AtomicU64,
    /// Sequence number of the next message expected.
    pub next_seq: AtomicU64,
    /// Send time of the newest message taken, CLOCK_MONOTONIC in ns.
    pub newest_time_ns: AtomicU64,
    /// Longest latency seen, in ns.
    pub max_latency_ns: AtomicU64,
    /// Sum of latencies, in ns.
    pub sum_latency_ns: AtomicU64,
    /// Sleeps that ended by their time limit though a message was there: a wake-up was lost.
    pub late_wakes: AtomicU64,
    /// Received messages that could not be decoded. Any thread of the reader's adds to it.
    pub malformed: AtomicU64,
    /// Messages not delivered because they were older than their publisher's lifespan.
    pub expired: AtomicU64,
    /// Periods of the reader's deadline in which the publisher sent nothing. Its node's control thread adds to it.
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
    /// Chunks that the reader reads in place: 0, or [`crate::pins::pin_word`].
    pub pins: [AtomicU64; PINS_PER_READER],
    /// Latency histogram, bucket bounds as in `rnet_core::hist`.
    pub latency: [AtomicU64; LATENCY_BUCKETS],
}

/// One publisher that an observer follows, in the observer's file: where the publisher looks for a
/// sleeping observer.
#[repr(C, align(128))]
pub struct ObserverSlot {
    /// The publisher that is followed, 0 for none. Stored before the ticket is.
    pub publisher: AtomicU64,
    /// Non-zero while the observer sleeps: the ticket of that sleep (see `wake`).
    pub asleep: AtomicU64,
}

/// First words of a chunk's file; the payload begins on the next page.
#[repr(C)]
pub struct ChunkHeader {
    /// `CHUNK_MAGIC`.
    pub magic: AtomicU64,
    /// The publisher that owns the chunk.
    pub publisher: AtomicU64,
    /// Bytes of payload that the chunk can hold.
    pub capacity: AtomicU64,
    /// Counts the uses of the chunk; a record names the use it belongs to.
    pub generation: AtomicU64,
    /// 1 when the publisher has unlinked the chunk: readers let their mapping go.
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
