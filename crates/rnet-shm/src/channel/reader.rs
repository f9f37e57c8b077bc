//! The reader's side of a channel: one subscription following one publisher.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rnet_core::Error;
use rnet_core::{LossCounts, MAX_PINS_PER_READER, TraceRecord};
use rnet_ring::admission::{AdmissionTable, RequestId};
use rnet_ring::binding::HistoryRequest;
use rnet_ring::fail_point;
use rnet_ring::layout::{ADMISSION_FREE, Admission};
use rnet_ring::reader_admission::{AfterDetach, AfterExit, Follower, ReadStart};
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
mod known_lost;
mod last_will_delivery;
mod message;
mod newest;
mod pin;
mod skipped;
mod take;

use cursor::PublishedCursor;
pub use message::ReceivedMessage;
use skipped::HistoryFilter;

/// Why a channel cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// The publisher has evicted this reader, which has requested admission again if the publisher still
    /// exists.
    Detached,
    /// The publisher has no capacity for another reader; it admits this one once it has.
    Refused,
    /// The log is inconsistent.
    Corrupt(&'static str),
    /// The user holds as many samples as a reader may.
    TooManyPins,
    /// A resource of this process is too short to read the next message, which stays unread.
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
    /// Whether it requested messages that the publisher has not promised to keep.
    asks_from_seq: bool,
    filter: HistoryFilter,
    /// The state of our admission by the publisher.
    follower: Follower,
    /// Whether the user was notified that the publisher has no capacity for us.
    refusal_reported: bool,
    log: LogReader,
    next: NextRecord,
    /// The message that was just taken.
    current: Record,
    pinned: Option<PinnedMessage>,
    batch: Arc<Batch>,
    spare: Vec<Arc<Batch>>,
    chunks: PeerChunks,
    /// Number of consecutive batches in quick succession since the reader last found nothing.
    contention: u32,
    reader_stats: ReaderStats,
    published: PublishedCursor,
    taken_ns: u64,
    /// Whether the publisher's process died.
    died: bool,
    /// Whether its last will was read, or cannot be read.
    will_read: bool,
    /// Value of the process's counter of truncated mappings at the last check of ours.
    seen_truncated: u64,
    /// The publisher's known lost messages that were counted already, by cause.
    seen_lost: [u64; 4],
    /// The last message that was received from the publisher that this proxy represents.
    last_origin: Option<rnet_core::Origin>,
    /// Whether it continues after another proxy, and was not admitted yet.
    is_resuming: bool,
}

/// What a reader reads next.
#[derive(Debug)]
enum NextRecord {
    /// The log's next record.
    Log,
    /// A record that was read and not handed out yet: no pin is free, or it is the newest.
    Withheld(Record),
    /// A record that could not be read because a resource was short; it is not retried before `at_ns`.
    RetryAt { record: Record, at_ns: u64 },
}

impl NextRecord {
    #[inline]
    fn is_log(&self) -> bool {
        matches!(self, NextRecord::Log)
    }

    /// Takes the record that was read earlier; the log follows.
    #[cold]
    fn take(&mut self) -> Option<Record> {
        match std::mem::replace(self, NextRecord::Log) {
            NextRecord::Log => None,
            NextRecord::Withheld(record) | NextRecord::RetryAt { record, .. } => Some(record),
        }
    }
}

/// The location of a publisher.
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
    /// Binds a page of `own` to the publisher and maps its log. The caller must then notify the publisher
    /// (`ring_control`), which admits us.
    pub fn bind(
        own: &Arc<SubscriptionFile>,
        peer: &PeerPublisher,
        location: PublisherLocation,
        binding: Binding,
        keep_last: Option<u32>,
    ) -> Result<Reader, Error> {
        // Read before the first access to the new mappings: earlier truncations do not concern this channel,
        // which would otherwise seem ready until the first take.
        let seen_truncated = truncation_baseline(own);
        let map = peer.map()?;
        // Read before we can be admitted: we count what comes after that.
        let seen_lost = map.known_lost();
        let lifespan = peer.meta.qos.lifespan;
        let slot = own.bind(&peer.meta.topic, binding)?;
        let reader_stats = ReaderStats::of(slot.page());
        // The page contains the request, and only we write it.
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

    /// The publisher's own description.
    pub fn meta(&self) -> &PublisherMeta {
        &self.meta
    }

    /// The page that the publisher sees.
    pub fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// When the message that was just taken was sent on this host, according to its publisher,
    /// CLOCK_MONOTONIC in ns. For a message of another host, when it was taken: this reader knows no better
    /// arrival time.
    pub fn current_arrival_ns(&self) -> u64 {
        let record = &self.current;
        let is_forwarded =
            self.log.is_extended(record) && self.extension_of(record).meta.origin.is_some();
        if is_forwarded { self.taken_ns } else { record.time_ns }
    }

    /// The known trace data of the message that was just taken.
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
            // A stamp from the future is invalid.
            sent_ns: record.time_ns.min(self.taken_ns),
            uncertain_ns: self.uncertain_ns(),
            taken_ns: self.taken_ns,
            ..TraceRecord::default()
        }
    }

    /// The maximum error of the current stamps of its messages, in ns; 0 unless they were stamped on another
    /// host. The maximum value means unknown.
    pub fn uncertain_ns(&self) -> u64 {
        self.map.control().flow.uncertain_ns.load(Ordering::Relaxed)
    }

    /// Length of the message that was just taken, in bytes.
    pub fn current_len(&self) -> usize {
        self.pinned.as_ref().map_or(self.current.len, |pinned| pinned.len)
    }

    /// Starts reading if the publisher has admitted us; [`Reader::take`] does so by itself. After `Corrupt`
    /// the channel is unusable.
    pub fn begin(&mut self) -> Result<bool, ChannelError> {
        if !self.follower.is_awaiting_admission() {
            return Ok(true);
        }
        self.check_all_truncated()?;
        self.try_begin()
    }

    /// The word in which wakers look for a sleeping reader.
    pub fn asleep_word(&self) -> &AtomicU64 {
        &self.slot.page().bind.asleep
    }

    /// Whether the publisher relies on the barrier of sleeping readers for its messages.
    pub fn needs_barrier(&self) -> bool {
        // SYNC-SIDES: see `PublisherBarrier::update_send_rate`.
        self.map.control().flow.asymmetric.load(Ordering::Acquire) != 0
    }

    /// Moves the channel to another bell.
    pub fn set_bell(&self, bell: u64) {
        self.slot.page().bind.bell.store(bell, Ordering::Release);
    }

    /// Whether the publisher has admitted us and still exists.
    pub fn is_admitted(&self) -> bool {
        self.follower.is_served()
    }

    /// Whether the publisher has yet to admit us.
    pub fn is_asking(&self) -> bool {
        self.follower.is_awaiting_admission()
    }

    /// Whether the publisher has left.
    pub fn has_left(&self) -> bool {
        self.follower.has_left()
    }

    /// Whether the publisher's process died.
    pub fn has_died(&self) -> bool {
        self.died
    }

    /// Losses so far, by cause.
    pub fn losses(&self) -> LossCounts {
        loss_counters(self.slot.page()).map(|count| count.load(Ordering::Relaxed)).into()
    }

    /// Number of messages skipped so far at the user's request.
    pub fn skipped(&self) -> u64 {
        self.slot.page().count.skipped.load(Ordering::Relaxed)
    }

    /// Number of messages so far that were older than their publisher's lifespan.
    pub fn expired(&self) -> u64 {
        self.slot.page().count.expired.load(Ordering::Relaxed)
    }

    /// Number of deadline periods so far in which the publisher sent nothing.
    pub fn deadline_missed(&self) -> u64 {
        self.slot.page().count.deadline_missed.load(Ordering::Relaxed)
    }

    /// Number of messages handed out so far.
    pub fn received(&self) -> u64 {
        self.slot.page().count.received.load(Ordering::Relaxed)
    }

    /// Counts a sleep that ended by its limit although a message was available that a ring should have
    /// announced, except one that could not be read because a resource was short.
    pub fn count_late_wake(&self) {
        if !matches!(self.next, NextRecord::RetryAt { .. }) && self.is_ready() {
            bump(&self.slot.page().count.late_wakes, 1);
        }
    }

    /// Whether a take may find a message.
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
            // If the publisher has left: a message is left to read, or the channel must be closed.
            !self.next.is_log()
                || self.log.has_more(self.map.log())
                || self.has_left()
                || self.was_evicted()
                || self.has_unseen_lost()
        };
        // Last, because the checks above may have hit a truncated page.
        found || sigbus::truncated_so_far() != self.seen_truncated
    }

    /// Whether the log of a publisher that has admitted us has more messages: most of what
    /// [`Reader::is_ready`] finds, for one load of its tail.
    // Inlined into the loop of a waiting reader.
    #[inline(always)]
    pub fn has_more(&self) -> bool {
        !self.follower.is_awaiting_admission() && self.log.has_more(self.map.log())
    }

    /// Fails if a file of this channel was truncated. One load, unless a file was truncated.
    #[inline]
    fn check_truncated(&mut self) -> Result<(), ChannelError> {
        if sigbus::truncated_so_far() == self.seen_truncated {
            Ok(())
        } else {
            self.find_truncated()
        }
    }

    /// Like [`Reader::check_truncated`], but also reports truncations that do not end the channel. Call it
    /// only while no message was read that the caller would then miss.
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

    /// Whether the withheld message was tried very recently and could not be read because a resource was
    /// short. No sleep is much longer than the pause, and a sleeper checks again after it.
    fn must_pause(&self) -> bool {
        matches!(self.next, NextRecord::RetryAt { at_ns, .. } if clock::now_ns() < at_ns)
    }

    /// The publisher has left: reads what it had committed, then nothing.
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

    /// Records that the publisher, which has left, died.
    pub fn note_death(&mut self) {
        self.died = true;
    }

    /// Number of the next message: earlier ones were handed out, counted as lost, or never promised. `None`
    /// until the publisher has admitted us, and after it has evicted us.
    pub fn next_seq(&self) -> Option<u64> {
        match &self.next {
            _ if self.is_asking() => None,
            NextRecord::Withheld(record) | NextRecord::RetryAt { record, .. } => Some(record.seq),
            NextRecord::Log => self.log.next_seq(),
        }
    }

    /// Number after the last message of a publisher that has left, whether or not it has admitted us.
    pub fn end_seq(&self) -> Option<u64> {
        self.next_seq().or_else(|| self.map.log().end().map(|(_, seq)| seq))
    }

    /// The current end of the publisher's log.
    pub fn end(&self) -> u64 {
        self.map.control().tail.tail.load(Ordering::Acquire)
    }

    /// Whether everything before `end` in the log was read. `true` if the publisher has not admitted us,
    /// because there is nothing to read.
    pub fn has_read_to(&self, end: u64) -> bool {
        if self.follower.is_awaiting_admission() {
            return !self.follower.is_answered(self.admissions());
        }
        self.next.is_log() && self.log.position() >= end
    }

    /// Whether the publisher has left and everything that it had committed was read.
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

    /// Whether the publisher has no capacity for us.
    fn is_refused(&self) -> bool {
        let (control, us) = (self.map.control(), self.follower.request().subscription);
        let refused = control.refusals.iter().any(|r| {
            r.subscription.load(Ordering::Acquire) == us
                && r.reason.load(Ordering::Relaxed) == REFUSED_FULL
        });
        // If many readers are refused at once, the publisher names only the last one; the others see that all
        // slots are taken, and none is theirs.
        let others = |a: &Admission| {
            a.state.load(Ordering::Acquire) != ADMISSION_FREE
                && a.subscription.load(Ordering::Relaxed) != us
        };
        let table = self.admissions();
        refused || (table.used() == table.len() && table.iter().all(others))
    }

    /// Starts reading if the publisher has admitted us.
    fn try_begin(&mut self) -> Result<bool, ChannelError> {
        let admissions = self.map.admissions();
        if let Some(begun) = self.follower.begin(admissions, self.log.next_seq()) {
            self.begin_at(begun);
            return Ok(true);
        }
        // Reported once; we keep requesting admission.
        if !self.refusal_reported && self.is_refused() {
            self.refusal_reported = true;
            return Err(ChannelError::Refused);
        }
        Ok(false)
    }

    fn begin_at(&mut self, begun: ReadStart) {
        // Counted here, so that no later loss or skip is confused with it.
        if begun.missed != 0 {
            bump(&self.slot.page().count.lost_detached, begun.missed);
            self.count_known_lost();
        }
        self.refusal_reported = false;
        self.log = LogReader::new(begun.start & !7);
        // A push that had not seen us may have dropped messages at our start position; later pushes have not.
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

    /// Requests admission again after an eviction, if the publisher still exists.
    fn handle_eviction(&mut self) -> ChannelError {
        if let AfterDetach::Request(ask) = self.follower.note_detach(|| self.own.next_request()) {
            rnet_ring::binding::renew_request(&self.slot.page().bind, ask.generation);
            self.next = NextRecord::Log;
            self.slot.cancel_pin_wait();
            self.own.ring(&self.location.folder);
        }
        // A reader whose own file was truncated was evicted for that, and has hit it at the latest when it
        // requested admission.
        self.check_truncated().err().unwrap_or(ChannelError::Detached)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.own.fork_guard().is_from_parent() {
            return;
        }
        // Releases a message that was taken and never read.
        self.pinned = None;
        self.own.release(&self.slot);
        self.own.ring(&self.location.folder);
    }
}

/// The truncation counter at which a channel has checked all its files. Returns an invalid value while the
/// truncation of the node's doorbells is unreported, so that the next take checks again.
fn truncation_baseline(own: &SubscriptionFile) -> u64 {
    let now = sigbus::truncated_so_far();
    if own.own_node().bells().must_report_truncated() { u64::MAX } else { now }
}

/// Maximum number of samples that one reader may hold at a time.
pub const PIN_LIMIT: usize = MAX_PINS_PER_READER;
