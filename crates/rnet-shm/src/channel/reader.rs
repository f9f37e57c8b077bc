//! The reader's side of a channel: one subscription following one publisher.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rnet_core::Error;
use rnet_core::{LossCounts, MAX_PINS_PER_READER, TraceRecord};
use rnet_ring::admission::{AdmissionTable, RequestId};
use rnet_ring::binding::HistoryRequest;
use rnet_ring::fail_point;
use rnet_ring::follower::{AfterDetach, AfterExit, Follower, ReadStart};
use rnet_ring::layout::{ADMISSION_FREE, Admission};
use rnet_ring::record::Record;
use rnet_ring::{LogReader, RecordKind};

use crate::channel::publisher::{PeerPublisher, PublisherMap, PublisherMeta};
use crate::channel::reader_stats::{ReaderStats, bump, loss_counters};
use crate::channel::reader_table::REFUSED_FULL;
use crate::channel::received::{Batch, PeerChunks, PinnedMessage};
use crate::channel::subscription::{Binding, Slot, SubscriptionFile};
use crate::os::bell::Bells;
use crate::os::clock;
use crate::os::files::io_error;
use crate::os::sigbus;

mod cursor;
mod duplicates;
mod history;
mod known_lost;
mod message;
mod pin;
mod take;
mod will;

use cursor::PublishedCursor;
use history::HistoryFilter;
pub use message::ReceivedMessage;

/// Why a channel cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// The publisher let us go; we have asked to be admitted again, if it is still there.
    Detached,
    /// The publisher has no room for another reader; it admits this one once there is.
    Refused,
    /// The log contradicts itself.
    Corrupt(&'static str),
    /// The user holds as many samples as a reader may.
    TooManyPins,
    /// This process ran out of what it takes to read the next message, which stays to be read.
    Shortage(Box<Error>),
}

/// One subscription following one publisher.
#[derive(Debug)]
pub struct Reader {
    publisher: u64,
    location: PublisherLocation,
    meta: PublisherMeta,
    map: PublisherMap,
    own: Arc<SubscriptionFile>,
    slot: Arc<Slot>,
    reliable: bool,
    /// Whether it asked for messages that the publisher has not promised to keep.
    asks_from_seq: bool,
    filter: HistoryFilter,
    /// Where we stand with the publisher.
    follower: Follower,
    /// Whether the user was told that there is no room for us at the publisher.
    refusal_reported: bool,
    log: LogReader,
    next: NextRecord,
    /// The message just taken.
    current: Record,
    pinned: Option<PinnedMessage>,
    batch: Arc<Batch>,
    spare: Vec<Arc<Batch>>,
    chunks: PeerChunks,
    /// Batches that followed each other at once, since the reader last found nothing.
    contention: u32,
    reader_stats: ReaderStats,
    published: PublishedCursor,
    taken_ns: u64,
    /// Whether the publisher left by dying.
    died: bool,
    /// Whether its last will was read, or cannot be.
    will_read: bool,
    /// Truncated mappings of this process when ours were last looked at for that.
    seen_truncated: u64,
    /// What of the messages that the publisher knows to be missing was counted, by cause.
    seen_lost: [u64; 4],
    /// The last message that was had of the publisher for which this one is a proxy.
    last_origin: Option<rnet_core::Origin>,
    /// Whether it goes on from another proxy, and was not admitted yet.
    is_resuming: bool,
}

/// What a reader goes on with.
#[derive(Debug)]
enum NextRecord {
    /// The log's next record.
    Log,
    /// A record that was read and not handed out yet: no pin is free, or it is the newest.
    Withheld(Record),
    /// A record that could not be read for want of something, not tried again before `at_ns`.
    RetryAt { record: Record, at_ns: u64 },
}

impl NextRecord {
    #[inline]
    fn is_log(&self) -> bool {
        matches!(self, NextRecord::Log)
    }

    /// The record that was read before, after which the log goes on.
    #[cold]
    fn take(&mut self) -> Option<Record> {
        match std::mem::replace(self, NextRecord::Log) {
            NextRecord::Log => None,
            NextRecord::Withheld(record) | NextRecord::RetryAt { record, .. } => Some(record),
        }
    }
}

/// Where a publisher is to be found.
#[derive(Clone, Debug)]
pub struct PublisherLocation {
    /// Name of its node.
    pub node: String,
    /// Folder of its node.
    pub folder: PathBuf,
    /// Its file.
    pub path: PathBuf,
    /// Its node's doorbells.
    pub bells: Arc<Bells>,
}

impl Reader {
    /// Binds a page of `own` to the publisher and maps its log. The publisher then has to be told
    /// (`ring_control`) and admits us.
    pub fn bind(
        own: &Arc<SubscriptionFile>,
        peer: &PeerPublisher,
        location: PublisherLocation,
        binding: Binding,
        keep_last: Option<u32>,
    ) -> Result<Reader, Error> {
        // Before the first look at what is mapped here; what was truncated earlier is no concern of
        // this channel, which would otherwise seem ready until it is taken from.
        let seen_truncated = truncation_baseline(own);
        let map = peer.map()?;
        // Before anybody can serve us: what comes after that is for us to count.
        let seen_lost = map.known_lost();
        let lifespan = peer.meta.qos.lifespan;
        let slot = own.bind(&peer.meta.topic, binding)?;
        let reader_stats = ReaderStats::of(slot.page());
        // The page says what was asked, and nobody else writes it.
        let generation = slot.page().bind.generation.load(Ordering::Relaxed);
        let ask = RequestId { subscription: own.id(), generation };
        Ok(Reader {
            publisher: binding.publisher,
            location,
            meta: peer.meta.clone(),
            map,
            own: own.clone(),
            slot,
            reliable: binding.reliable,
            asks_from_seq: matches!(
                HistoryRequest::from_word(binding.history),
                HistoryRequest::From(_)
            ),
            filter: HistoryFilter::new(keep_last, lifespan),
            follower: Follower::new(ask),
            refusal_reported: false,
            next: NextRecord::Log,
            log: LogReader::new(0),
            current: Record { kind: RecordKind::Inline, seq: 0, time_ns: 0, offset: 0, len: 0 },
            pinned: None,
            batch: Batch::new(),
            spare: Vec::new(),
            chunks: PeerChunks::default(),
            contention: 0,
            reader_stats,
            published: PublishedCursor::default(),
            taken_ns: 0,
            died: false,
            will_read: false,
            seen_truncated,
            seen_lost,
            last_origin: None,
            is_resuming: false,
        })
    }

    /// The publisher's id.
    pub fn publisher(&self) -> u64 {
        self.publisher
    }

    /// Name of the publisher's node.
    pub fn node(&self) -> &str {
        &self.location.node
    }

    /// Folder of the publisher's node.
    pub fn folder(&self) -> &std::path::Path {
        &self.location.folder
    }

    /// What the publisher says of itself.
    pub fn meta(&self) -> &PublisherMeta {
        &self.meta
    }

    /// The page that the publisher sees.
    pub fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// When the message just taken was sent on this host, as its publisher says, CLOCK_MONOTONIC in ns. One of
    /// another host came when it was taken, for all that this reader knows.
    pub fn current_arrival_ns(&self) -> u64 {
        let record = &self.current;
        let is_forwarded =
            self.log.is_extended(record) && self.extension_of(record).meta.origin.is_some();
        if is_forwarded { self.taken_ns } else { record.time_ns }
    }

    /// What of a trace is known here of the message just taken.
    pub fn current_trace(&self) -> TraceRecord {
        let record = &self.current;
        let is_extended = self.log.is_extended(record);
        let origin = is_extended.then(|| self.extension_of(record).meta.origin).flatten();
        TraceRecord {
            publisher: self.publisher,
            seq: record.seq,
            origin_publisher: origin.map_or(0, |origin| origin.publisher),
            origin_seq: origin.map_or(0, |origin| origin.seq),
            len_bytes: self.current_len() as u64,
            // A stamp from the future is a hostile one.
            sent_ns: record.time_ns.min(self.taken_ns),
            uncertain_ns: self.uncertain_ns(),
            taken_ns: self.taken_ns,
            ..TraceRecord::default()
        }
    }

    /// How far from the truth the stamps of its messages may be now, in ns; 0 unless they were stamped on another host.
    /// The largest value: that is not known.
    pub fn uncertain_ns(&self) -> u64 {
        self.map.control().flow.uncertain_ns.load(Ordering::Relaxed)
    }

    /// Length of the message just taken, in bytes.
    pub fn current_len(&self) -> usize {
        self.pinned.as_ref().map_or(self.current.len, |pinned| pinned.len)
    }

    /// Begins to read if the publisher has admitted us; [`Reader::take`] does so by itself. After
    /// `Corrupt` the channel is of no more use.
    pub fn begin(&mut self) -> Result<bool, ChannelError> {
        if !self.follower.is_awaiting_admission() {
            return Ok(true);
        }
        self.check_all_truncated()?;
        self.try_begin()
    }

    /// Where wakers look for a sleeping reader.
    pub fn asleep_word(&self) -> &AtomicU64 {
        &self.slot.page().bind.asleep
    }

    /// Whether the publisher counts on the barrier of those that sleep for its messages.
    pub fn needs_barrier(&self) -> bool {
        // SYNC-SIDES: see `PublisherBarrier::update_send_rate`.
        self.map.control().flow.asymmetric.load(Ordering::Acquire) != 0
    }

    /// Moves the channel to another bell.
    pub fn set_bell(&self, bell: u64) {
        self.slot.page().bind.bell.store(bell, Ordering::Release);
    }

    /// Whether the publisher serves us: it has admitted us and is still there.
    pub fn is_admitted(&self) -> bool {
        self.follower.is_served()
    }

    /// Whether the publisher has yet to admit us.
    pub fn is_asking(&self) -> bool {
        self.follower.is_awaiting_admission()
    }

    /// Whether the publisher is gone.
    pub fn has_left(&self) -> bool {
        self.follower.has_left()
    }

    /// Whether the publisher is gone because its process died.
    pub fn has_died(&self) -> bool {
        self.died
    }

    /// Losses so far, by cause.
    pub fn losses(&self) -> LossCounts {
        loss_counters(self.slot.page()).map(|count| count.load(Ordering::Relaxed)).into()
    }

    /// Messages passed over so far at the user's wish.
    pub fn skipped(&self) -> u64 {
        self.slot.page().count.skipped.load(Ordering::Relaxed)
    }

    /// Messages that were older than their publisher's lifespan so far.
    pub fn expired(&self) -> u64 {
        self.slot.page().count.expired.load(Ordering::Relaxed)
    }

    /// Periods of the deadline so far in which the publisher sent nothing.
    pub fn deadline_missed(&self) -> u64 {
        self.slot.page().count.deadline_missed.load(Ordering::Relaxed)
    }

    /// Messages handed out so far.
    pub fn received(&self) -> u64 {
        self.slot.page().count.received.load(Ordering::Relaxed)
    }

    /// Notes that a sleep ended by its limit, if there was a message that a ring should have told of
    /// and not one that could not be read before for want of something.
    pub fn count_late_wake(&self) {
        if !matches!(self.next, NextRecord::RetryAt { .. }) && self.is_ready() {
            bump(&self.slot.page().count.late_wakes, 1);
        }
    }

    /// Whether a take may find something.
    #[inline]
    pub fn is_ready(&self) -> bool {
        if !self.next.is_log() && self.slot.wants_pin() && !self.was_evicted() {
            // Until a sample is dropped, which rings.
            return false;
        }
        if self.must_pause() {
            return false;
        }
        let found = if self.follower.is_awaiting_admission() {
            self.follower.is_answered(self.admissions())
                || (!self.refusal_reported && self.is_refused())
        } else {
            // If the publisher is gone: something is left to read, or the channel is to be closed.
            !self.next.is_log()
                || self.log.has_more(self.map.log())
                || self.has_left()
                || self.was_evicted()
                || self.has_unseen_lost()
        };
        // Last, because the looks above may be what met a truncated page.
        found || sigbus::truncated_so_far() != self.seen_truncated
    }

    /// Whether there is more in the log of a publisher that has admitted us: most of what [`Reader::is_ready`] finds,
    /// for a load of its tail.
    // As the look of a loop that waits.
    #[inline(always)]
    pub fn has_more(&self) -> bool {
        !self.follower.is_awaiting_admission() && self.log.has_more(self.map.log())
    }

    /// Says so if a file of this channel was truncated. A load, unless some file was.
    #[inline]
    fn check_truncated(&mut self) -> Result<(), ChannelError> {
        if sigbus::truncated_so_far() == self.seen_truncated {
            Ok(())
        } else {
            self.find_truncated()
        }
    }

    /// As [`Reader::check_truncated`], and tells of what does not end the channel. Only where nothing
    /// was read yet that the caller would then not get.
    #[inline]
    fn check_all_truncated(&mut self) -> Result<(), ChannelError> {
        if sigbus::truncated_so_far() == self.seen_truncated {
            return Ok(());
        }
        self.find_truncated()?;
        self.check_bells_truncated()
    }

    #[cold]
    fn check_bells_truncated(&self) -> Result<(), ChannelError> {
        let node = self.own.own_node();
        if !node.bells().report_truncated() {
            return Ok(());
        }
        let doing = "the doorbell file of this node was truncated, so its waits may end a second \
                     late until the node is reopened; cannot be woken through";
        let path = node.folder().join("bells");
        let error = io_error(doing, &path, std::io::ErrorKind::UnexpectedEof);
        Err(ChannelError::Shortage(Box::new(error)))
    }

    #[cold]
    fn find_truncated(&mut self) -> Result<(), ChannelError> {
        self.seen_truncated = truncation_baseline(&self.own);
        if self.map.is_truncated() {
            return Err(ChannelError::Corrupt("its file was truncated"));
        }
        if self.chunks.any_truncated() {
            return Err(ChannelError::Corrupt(
                "the file of one of its large messages was truncated",
            ));
        }
        if self.slot.is_truncated() {
            return Err(ChannelError::Corrupt("this subscriber's own file was truncated"));
        }
        Ok(())
    }

    /// Whether the withheld message was tried a moment ago, and could not be read for want of
    /// something. No sleep is longer than the pause by much, and whoever sleeps looks again.
    fn must_pause(&self) -> bool {
        matches!(self.next, NextRecord::RetryAt { at_ns, .. } if clock::now_ns() < at_ns)
    }

    /// The publisher is gone: reads what it had committed, then nothing.
    pub fn publisher_left(&mut self, died: bool) {
        let admissions = self.map.admissions();
        match self.follower.publisher_left(admissions, self.log.next_seq()) {
            AfterExit::Continue => {}
            AfterExit::Begin(begun) => self.begin_at(begun),
            AfterExit::Nothing => {
                let tail = &self.map.control().tail.tail;
                self.log = LogReader::new(tail.load(Ordering::Acquire));
            }
        }
        self.died = died;
    }

    /// The publisher, which left, turns out to have died.
    pub fn note_death(&mut self) {
        self.died = true;
    }

    /// Number of the next message: those before it were handed out, counted as lost, or never promised. `None`
    /// until the publisher has admitted us, and after it has let us go.
    pub fn next_seq(&self) -> Option<u64> {
        match &self.next {
            _ if self.is_asking() => None,
            NextRecord::Withheld(record) | NextRecord::RetryAt { record, .. } => Some(record.seq),
            NextRecord::Log => self.log.next_seq(),
        }
    }

    /// Number behind the last message of a publisher that is gone, whether or not it has admitted us.
    pub fn end_seq(&self) -> Option<u64> {
        self.next_seq().or_else(|| self.map.log().end().map(|(_, seq)| seq))
    }

    /// Where the publisher's log ends now.
    pub fn end(&self) -> u64 {
        self.map.control().tail.tail.load(Ordering::Acquire)
    }

    /// Whether all that stood before `end` in the log was read. Of a publisher that has not admitted us, nothing
    /// is to be read.
    pub fn has_read_to(&self, end: u64) -> bool {
        if self.follower.is_awaiting_admission() {
            return !self.follower.is_answered(self.admissions());
        }
        self.next.is_log() && self.log.position() >= end
    }

    /// Whether the publisher is gone and everything it had committed was read.
    pub fn is_finished(&self) -> bool {
        self.next.is_log()
            && self.follower.is_finished(self.admissions())
            && !self.log.has_more(self.map.log())
            && !self.has_will()
    }

    #[inline]
    fn admissions(&self) -> AdmissionTable<'_> {
        self.map.admissions()
    }

    /// Whether the publisher has no room for us.
    fn is_refused(&self) -> bool {
        let (control, us) = (self.map.control(), self.follower.request().subscription);
        let refused = control.refusals.iter().any(|r| {
            r.subscription.load(Ordering::Acquire) == us
                && r.reason.load(Ordering::Relaxed) == REFUSED_FULL
        });
        // Of many that are refused at once the publisher names but the last; the others see that
        // all places are taken, and none is theirs.
        let others = |a: &Admission| {
            a.state.load(Ordering::Acquire) != ADMISSION_FREE
                && a.subscription.load(Ordering::Relaxed) != us
        };
        let table = self.admissions();
        refused || (table.used() == table.len() && table.iter().all(others))
    }

    /// Begins to read if the publisher has admitted us.
    fn try_begin(&mut self) -> Result<bool, ChannelError> {
        let admissions = self.map.admissions();
        if let Some(begun) = self.follower.begin(admissions, self.log.next_seq()) {
            self.begin_at(begun);
            return Ok(true);
        }
        // Told once; we go on asking.
        if !self.refusal_reported && self.is_refused() {
            self.refusal_reported = true;
            return Err(ChannelError::Refused);
        }
        Ok(false)
    }

    fn begin_at(&mut self, begun: ReadStart) {
        // Counted here, so that no later loss or skip is mistaken for it.
        if begun.missed != 0 {
            bump(&self.slot.page().count.lost_detached, begun.missed);
            self.count_known_lost();
        }
        self.refusal_reported = false;
        self.log = LogReader::new(begun.start & !7);
        // A push that had not seen us may have given up where we begin, and none since.
        if self.asks_from_seq && self.reliable {
            self.log.resync_to_oldest();
        }
        let is_resuming = std::mem::take(&mut self.is_resuming);
        self.log.expect_from(if is_resuming { 0 } else { begun.start_seq });
        fail_point!("begin.found");
        self.slot.page().count.next_seq.store(begun.start_seq, Ordering::Relaxed);
        self.publish_cursor();
    }

    fn was_evicted(&self) -> bool {
        self.follower.was_detached(self.admissions())
    }

    /// Asks to be admitted again after having been let go, if there is somebody to ask.
    fn handle_eviction(&mut self) -> ChannelError {
        if let AfterDetach::Request(ask) = self.follower.note_detach(|| self.own.next_request()) {
            rnet_ring::binding::renew_request(&self.slot.page().bind, ask.generation);
            self.next = NextRecord::Log;
            self.slot.cancel_pin_wait();
            self.own.ring(&self.location.folder);
        }
        // One whose own file was cut was let go for that, and has met it by asking at the latest.
        self.check_truncated().err().unwrap_or(ChannelError::Detached)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.own.fork_guard().is_from_parent() {
            return;
        }
        // A message that was taken and never looked at is let go of first.
        self.pinned = None;
        self.own.release(&self.slot);
        self.own.ring(&self.location.folder);
    }
}

/// What a channel has seen when it has looked at all that is its own. No such number while the
/// node's doorbells are still to be told of, so that the next take looks again.
fn truncation_baseline(own: &SubscriptionFile) -> u64 {
    let now = sigbus::truncated_so_far();
    if own.own_node().bells().must_report_truncated() { u64::MAX } else { now }
}

/// Samples that one reader may hold at a time.
pub const PIN_LIMIT: usize = MAX_PINS_PER_READER;
