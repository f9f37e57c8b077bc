//! The writer's side of a channel: one publisher's file, its log, its chunks and its readers.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rnet_core::{Error, MAX_INLINE_LEN_BYTES};
use rnet_core::{Proxy, PublisherQos, TypeDesc};
use rnet_ring::fail_point;
use rnet_ring::layout::{
    Admission, BLOCKS_PER_LOG, PAGE_LEN_BYTES, READERS_IN_CONTROL, READERS_PER_LOG,
};
use rnet_ring::record::RecordTag;
use rnet_ring::sync::Barrier;
use rnet_ring::{LogWriter, PushError, RecordKind, wake};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;

use crate::LAYOUT_VERSION;
use crate::channel::pool::{Pool, check_history, chunk_path};
use crate::channel::reader_table::{ReaderRef, ReaderTable};
use crate::domain::endpoint_file::{corrupt, meta_json, parse_meta, read_endpoint_header};
use crate::domain::lingering::Lingering;
use crate::domain::node::OwnNode;
use crate::domain::observers::ObserverBells;
use crate::os::barrier::{PublisherBarrier, RATE_WINDOW_MESSAGES};
use crate::os::bell::Waiter;
use crate::os::clock::Stamper;
use crate::os::files::{self, create_error, io_error, word_at};
use crate::os::fork::ForkGuard;
use crate::os::mapping::Access;

mod backpressure;
mod catch_up;
mod extension_words;
mod gate;
mod interrupt;
mod last_will_storage;
mod lingering;
mod liveliness;
mod loan;
mod map;
mod pool_exhausted;
mod reader_backlog;
mod reader_progress;
mod remote_window;
#[cfg(test)]
mod tests;
mod truncated;
mod uncommitted;

pub use backpressure::InterruptedWait;
use backpressure::{PLENTY_DIVISOR, PendingWait};
use catch_up::CatchUp;
use gate::LogGate;
pub use interrupt::InterruptHandle;
pub use liveliness::NewestMessage;
use loan::LoanBuffer;
pub use loan::WriterLoan;
pub use map::{CONTROL_AT, PublisherMap};
use map::{file_len, will_len};
pub(crate) use reader_progress::ReaderProgress;
use truncated::truncated;
use uncommitted::Forwarding;

const MAGIC: u64 = u64::from_le_bytes(*b"RNETPUB\x01");
const HEADER_WORDS: usize = 7;
const PAGE: u64 = PAGE_LEN_BYTES as u64;

/// A publisher's own description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublisherMeta {
    /// The topic.
    pub topic: String,
    /// The type of its messages.
    #[serde(rename = "type")]
    pub type_desc: TypeDesc,
    /// The quality of service it offers.
    pub qos: PublisherQos,
    /// The endpoint that it represents, if it is a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Whether its file has space for a last will before the log.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub will: bool,
}

/// A publisher's file as opened by its readers and by tools.
#[derive(Debug)]
pub struct PeerPublisher {
    file: OwnedFd,
    /// The publisher's own description.
    pub meta: PublisherMeta,
    id: u64,
    log_at: u64,
    log_len: u64,
}

impl PeerPublisher {
    /// Reads the head of a publisher's file.
    pub fn open(path: &Path, id: u64) -> Result<PeerPublisher, Error> {
        let (file, header, json) = read_endpoint_header(path, MAGIC, HEADER_WORDS)?;
        let meta: PublisherMeta = parse_meta(path, &json)?;
        let (log_at, log_len) = (word_at(&header, 5), word_at(&header, 6));
        let sound = word_at(&header, 2) == id
            && log_at % PAGE == 0
            && (2 * PAGE + will_len(meta.will)..1 << 20).contains(&log_at)
            && log_len.is_power_of_two()
            && (rnet_core::MIN_LOG_LEN_BYTES..=rnet_core::MAX_LOG_LEN_BYTES).contains(&log_len);
        if !sound {
            return Err(corrupt(path, "the header is inconsistent"));
        }
        Ok(PeerPublisher { file, meta, id, log_at, log_len })
    }

    /// Maps the log, read-only.
    pub fn map(&self) -> Result<PublisherMap, Error> {
        let log = (self.log_at, self.log_len);
        PublisherMap::new(&self.file, self.id, log, self.meta.will, Access::Read)
            .map_err(|e| io_error("cannot map the log of", Path::new(&self.meta.topic), e))
    }

    /// The admission entries in use that do not fit in the first page, read with a system call, for tools.
    pub fn more_admissions(&self, used: u64) -> Result<Vec<u8>, Error> {
        let more = used.min(READERS_PER_LOG as u64).saturating_sub(READERS_IN_CONTROL as u64);
        let mut bytes = vec![0u8; more as usize * size_of::<Admission>()];
        files::read_exact_at(&self.file, &mut bytes, self.log_at + self.log_len)
            .map_err(|e| io_error("cannot read the readers of", Path::new(&self.meta.topic), e))?;
        Ok(bytes)
    }

    /// The first page, read with a system call: the counters, for tools.
    pub fn control_page(&self) -> Result<Vec<u8>, Error> {
        let mut page = vec![0u8; PAGE_LEN_BYTES];
        files::read_exact_at(&self.file, &mut page, 0)
            .map_err(|e| io_error("cannot read the counters of", Path::new(&self.meta.topic), e))?;
        Ok(page)
    }
}

/// The writer's side of a channel. Sends from one thread at a time.
#[derive(Debug)]
pub struct Writer {
    topic: Arc<str>,
    path: PathBuf,
    qos: PublisherQos,
    map: Arc<PublisherMap>,
    log: LogWriter,
    pool: Pool,
    /// Number of messages kept for late joiners.
    history: u64,
    reader_table: Arc<ReaderTable>,
    seen_epoch: u64,
    readers: Vec<Arc<ReaderRef>>,
    rung: Vec<u64>,
    observers: ObserverBells,
    barrier: PublisherBarrier,
    stamper: Stamper,
    waiter: Waiter,
    /// Shorter payloads are stored in the log itself; 0 once the log is unusable.
    inline_below: usize,
    /// Value of the process's counter of truncated mappings at the last check of ours.
    seen_truncated: u64,
    interruptible: bool,
    /// Whether it represents a publisher of another host.
    is_proxy: bool,
    /// Whether it ends as if its process had died: its last will stays.
    ends_as_lost: bool,
    /// Whether unread large messages are freed when it is dropped.
    frees_unread: bool,
    /// Receives the unread large messages of a dropped writer.
    lingering: Arc<Lingering>,
    /// The wait for readers that the next send resumes.
    pending_wait: PendingWait,
    catch_up: CatchUp,
    /// Set by an [`InterruptHandle`]: the current or next wait for capacity must end.
    interrupted: Arc<AtomicBool>,
    /// Buffer for small loans, kept between loans.
    scratch: Vec<u8>,
    /// Buffer for extension words and their payload, also kept.
    extended: Vec<u8>,
    forwarding: Forwarding,
    fork_guard: ForkGuard,
}

impl Writer {
    /// Creates the publisher's file in its node's folder.
    pub fn create(
        node: &OwnNode,
        path: PathBuf,
        id: u64,
        meta: &PublisherMeta,
    ) -> Result<Writer, Error> {
        check_history(&meta.qos, &meta.type_desc).map_err(|e| e.with_topic(&meta.topic))?;
        let json = meta_json(meta)?;
        let log_at = PAGE + (json.len() as u64).next_multiple_of(PAGE) + will_len(meta.will);
        let log_len = meta.qos.log_len_for_history().map_err(|e| e.with_topic(&meta.topic))?;
        let failed = |e| create_error(Some(&meta.topic), &path, log_at + log_len, e);
        let mode = node.domain().file_mode();
        // At least one block, which is longer than the shortest log if the log may become very long.
        let least = rnet_core::MIN_LOG_LEN_BYTES.max(log_len / BLOCKS_PER_LOG as u64);
        let least = if meta.qos.reserve_log { log_len } else { least };
        let file = files::create_sparse(&path, file_len(log_at, log_len), log_at + least, mode)
            .map_err(failed)?;
        let words = [MAGIC, u64::from(LAYOUT_VERSION), id, 0, json.len() as u64, log_at, log_len];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let map = files::write_all_at(&file, &json, PAGE)
            .and_then(|()| {
                fail_point!("publisher.meta");
                files::write_all_at(&file, &bytes, 0)
            })
            .and_then(|()| {
                PublisherMap::new(&file, id, (log_at, log_len), meta.will, Access::Write)
            })
            .inspect_err(|_| crate::os::folders::remove(&path))
            .map_err(failed)?;
        let map = Arc::new(map);
        map.map.populate(log_at as usize, least as usize);
        fail_point!("publisher.mapped");
        let waiter = Waiter::new(node.bells().clone());
        let inline_below = MAX_INLINE_LEN_BYTES.min(LogWriter::max_payload(map.log())) + 1;
        let flow = &map.control().flow;
        flow.bell.store(waiter.bell(), Ordering::Relaxed);
        flow.log_bytes.store(least, Ordering::Relaxed);
        flow.asserted_ns.store(crate::os::clock::now_ns(), Ordering::Relaxed);
        let least_blocks = least / map.log().block_len_bytes();
        Ok(Writer {
            topic: meta.topic.as_str().into(),
            log: LogWriter::growing(map.log(), least_blocks),
            pool: Pool::new(path.clone(), mode, id, &meta.qos),
            history: meta.qos.history(),
            qos: meta.qos.clone(),
            reader_table: Arc::new(ReaderTable::new(
                map.clone(),
                path.clone(),
                node.bells().clone(),
            )),
            path,
            map,
            seen_epoch: 0,
            readers: Vec::new(),
            rung: Vec::new(),
            observers: ObserverBells::default(),
            barrier: PublisherBarrier::default(),
            stamper: Stamper::default(),
            waiter,
            inline_below,
            seen_truncated: 0,
            interruptible: false,
            is_proxy: meta.proxy.is_some(),
            ends_as_lost: false,
            frees_unread: false,
            lingering: node.lingering().clone(),
            pending_wait: PendingWait::default(),
            catch_up: CatchUp::default(),
            interrupted: Arc::default(),
            scratch: Vec::new(),
            extended: Vec::new(),
            forwarding: Forwarding::default(),
            fork_guard: ForkGuard::here(),
        })
    }

    /// The process that created it; in a forked child, operations return errors and do not access the memory.
    #[inline]
    pub fn fork_guard(&self) -> ForkGuard {
        self.fork_guard
    }

    #[inline]
    fn check_fork(&self) -> Result<(), Error> {
        if self.fork_guard.is_from_parent() { self.refuse_fork() } else { Ok(()) }
    }

    #[cold]
    fn refuse_fork(&self) -> Result<(), Error> {
        self.fork_guard.check(|| format!("the publisher of {}", self.topic))
    }

    /// The readers, for the node's control thread.
    pub fn reader_table(&self) -> &Arc<ReaderTable> {
        &self.reader_table
    }

    /// Number of messages sent so far, which is the next message's sequence number.
    pub fn seq(&self) -> u64 {
        self.log.seq()
    }

    /// Bytes of shared memory that the publisher uses.
    pub fn memory_bytes(&self) -> u64 {
        let log_bytes = self.map.control().flow.log_bytes.load(Ordering::Relaxed);
        self.map.log_at as u64 + log_bytes + self.pool.bytes()
    }

    /// Lets a signal end a wait for capacity with `Interrupted`. Each wait then also ends so after a second,
    /// because a signal may arrive while the writer is awake.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.interruptible = yes;
    }

    /// Sends one message. On `Err` nothing was sent.
    #[inline]
    pub fn send(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.check_fork()?;
        if payload.len() < self.inline_below {
            return self.commit(RecordKind::Inline.into(), payload, payload.len() as u64).map(drop);
        }
        let loan = self.loan_filled(payload)?;
        self.send_loan(loan).map_err(|(loan, error)| {
            self.drop_loan(loan);
            error
        })
    }

    #[inline]
    fn loan_filled(&mut self, payload: &[u8]) -> Result<WriterLoan, Error> {
        let mut loan = self.loan(payload.len())?;
        self.loan_bytes_mut(&mut loan).copy_from_slice(payload);
        Ok(loan)
    }

    /// Sends a message if it is short enough for the log and fits in it now; `false` if not, and then nothing
    /// was sent.
    #[inline]
    pub fn try_send(&mut self, payload: &[u8]) -> bool {
        payload.len() < self.inline_below
            && !self.fork_guard.is_from_parent()
            && self.commit_now(RecordKind::Inline.into(), payload, payload.len() as u64).is_some()
    }

    /// The bytes of a loan.
    pub fn loan_bytes_mut<'a>(&'a mut self, loan: &'a mut WriterLoan) -> &'a mut [u8] {
        match &mut loan.buffer {
            LoanBuffer::Scratch(bytes) => &mut bytes[..loan.len],
            // The bytes belong to the parent.
            LoanBuffer::Chunk(_) if self.fork_guard.is_from_parent() => &mut [],
            LoanBuffer::Chunk(number) => self.pool.payload(*number, loan.len).unwrap_or_default(),
        }
    }

    /// The bytes of a loan, read-only.
    pub fn loan_bytes<'a>(&'a self, loan: &'a WriterLoan) -> &'a [u8] {
        match &loan.buffer {
            LoanBuffer::Scratch(bytes) => &bytes[..loan.len],
            LoanBuffer::Chunk(_) if self.fork_guard.is_from_parent() => &[],
            LoanBuffer::Chunk(number) => {
                self.pool.payload_ref(*number, loan.len).unwrap_or_default()
            }
        }
    }

    /// Sends a loan; on error the loan is returned.
    #[expect(clippy::result_large_err, reason = "the loan goes back by value, without allocating")]
    pub fn send_loan(&mut self, loan: WriterLoan) -> Result<(), (WriterLoan, Error)> {
        self.send_loan_by(loan, Self::commit)
    }

    /// Sends a loan; `commit` appends its record.
    #[inline(always)]
    #[expect(clippy::result_large_err, reason = "the loan goes back by value, without allocating")]
    fn send_loan_by(
        &mut self,
        loan: WriterLoan,
        commit: impl Fn(&mut Self, RecordTag, &[u8], u64) -> Result<u64, Error>,
    ) -> Result<(), (WriterLoan, Error)> {
        if let Err(error) = self.check_fork() {
            return Err((loan, error));
        }
        let sent = match &loan.buffer {
            LoanBuffer::Scratch(bytes) => {
                commit(self, RecordKind::Inline.into(), &bytes[..loan.len], loan.len as u64)
                    .map(drop)
            }
            LoanBuffer::Chunk(number) => match self.pool.reference(*number, loan.len) {
                Some(reference) => {
                    commit(self, RecordKind::Chunk.into(), &reference.to_bytes(), loan.len as u64)
                        .map(|position| {
                            self.pool.sent(*number, loan.len, position, self.log.seq() - 1)
                        })
                }
                None if self.pool.is_truncated(*number) => {
                    // The chunk is dropped at the next check, after its loan has ended.
                    self.seen_truncated = u64::MAX;
                    Err(truncated(&chunk_path(&self.path, *number)))
                }
                None => Err(Error::Closed { what: "the loan".to_owned() }),
            },
        };
        match sent {
            Ok(()) => {
                self.keep_scratch(loan);
                Ok(())
            }
            Err(error) => Err((loan, error)),
        }
    }

    /// Ends a loan without sending.
    pub fn drop_loan(&mut self, loan: WriterLoan) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        if let LoanBuffer::Chunk(number) = loan.buffer {
            self.pool.give_back(number);
        }
        self.keep_scratch(loan);
    }

    fn keep_scratch(&mut self, loan: WriterLoan) {
        if let LoanBuffer::Scratch(bytes) = loan.buffer {
            self.scratch = bytes;
        }
    }

    #[inline]
    fn refresh_readers(&mut self) {
        if self.reader_table.update(&mut self.seen_epoch, &mut self.readers) {
            self.note_readers();
        }
    }

    /// Updates state that depends on the copy of the readers.
    #[cold]
    fn note_readers(&mut self) {
        self.rung.clear();
        self.rung.resize(self.readers.len(), 0);
        self.log.readers_changed();
        if let Some(observers) = self.reader_table.take_observers() {
            self.observers.replace_all(observers);
        }
    }

    /// Appends a record and wakes sleeping readers; waits for capacity as configured.
    #[inline]
    fn commit(&mut self, tag: RecordTag, payload: &[u8], counted_len: u64) -> Result<u64, Error> {
        match self.commit_now(tag, payload, counted_len) {
            Some(position) => Ok(position),
            None => self.commit_with_wait(tag, payload, counted_len, None),
        }
    }

    /// Commits if the log has capacity.
    #[inline]
    fn commit_now(&mut self, tag: RecordTag, payload: &[u8], counted_len: u64) -> Option<u64> {
        self.refresh_readers();
        let time_ns = self.stamper.now_ns();
        let pushed = self.push(tag, time_ns, payload, counted_len);
        pushed.ok().inspect(|_| self.notify())
    }

    #[inline]
    fn push(
        &mut self,
        tag: RecordTag,
        time_ns: u64,
        payload: &[u8],
        counted_len: u64,
    ) -> Result<u64, PushError> {
        let mut gate = LogGate {
            readers: &self.readers,
            reader_table: &self.reader_table,
            map: &self.map,
            path: &self.path,
            history: self.history,
        };
        self.log.push(self.map.log(), tag, time_ns, payload, counted_len, &mut gate)
    }

    /// Like [`Writer::commit`], for a message that was sent elsewhere at `sent_ns` if given.
    #[cold]
    fn commit_with_wait(
        &mut self,
        tag: RecordTag,
        payload: &[u8],
        counted_len: u64,
        sent_ns: Option<u64>,
    ) -> Result<u64, Error> {
        let mut stall = None;
        loop {
            let plenty = self.log.capacity_bytes() / PLENTY_DIVISOR;
            self.check_truncated()?;
            self.refresh_readers();
            let slowest = self.slowest();
            let time_ns = self.stamper.now_ns();
            let pushed = match sent_ns {
                None => self.push(tag, time_ns, payload, counted_len),
                Some(sent_ns) => self.push_forwarded(tag, (time_ns, sent_ns), payload, counted_len),
            };
            match pushed {
                Ok(position) => {
                    self.notify();
                    return Ok(position);
                }
                Err(PushError::ReaderBehind) => {
                    self.wait_for_capacity(&mut stall, plenty, slowest)?
                }
                Err(PushError::OutOfMemory) => return Err(self.no_history()),
            }
        }
    }

    /// The error if the memory does not suffice for this message and the history for late joiners.
    #[cold]
    fn no_history(&self) -> Error {
        let held = self.map.control().flow.log_bytes.load(Ordering::Relaxed);
        let more = self.map.log().block_len_bytes();
        create_error(Some(&self.topic), &self.path, held + more, rustix::io::Errno::NOSPC)
    }

    /// After a message: updates the send rate, and wakes sleeping readers.
    #[inline]
    fn notify(&mut self) {
        if self.log.seq().is_multiple_of(RATE_WINDOW_MESSAGES) {
            self.update_send_rate();
        }
        self.wake();
    }

    fn update_send_rate(&mut self) {
        let now_ns = self.stamper.last_ns();
        self.barrier.update_send_rate(now_ns, &self.map.control().flow.asymmetric);
        // The next message reports it: this one counts as sent.
        let _ = self.check_truncated();
    }

    /// Wakes sleeping readers.
    #[inline]
    fn wake(&mut self) {
        self.barrier.light();
        fail_point!("notify.begin");
        // A reader that was admitted during the push is not in the copy of the list yet, and may have found
        // the log empty and gone to sleep.
        self.refresh_readers();
        for (reader, rung) in self.readers.iter().zip(&mut self.rung) {
            if wake::must_ring(&reader.page().bind.asleep, rung) {
                fail_point!("notify.must_ring");
                reader.ring();
                fail_point!("notify.rung");
            }
        }
        if !self.observers.is_empty() {
            self.observers.ring(self.stamper.last_ns());
        }
    }
}

impl Drop for Writer {
    /// Never blocks: unread large messages stay with the node. Messages in the log stay readable.
    fn drop(&mut self) {
        if !self.fork_guard.is_from_parent() {
            self.end();
        }
    }
}
