//! The writer thread: takes entries from the queue and writes them into parts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::item::{Item, MissedMessages, ReceivedMessage, StateKey};
use super::latched::Latched;
use super::loss::{LossCounts, RecordLossCause, UnheardCounts};
use super::options::{RecordOptions, part_path};
use super::part_writer::{PartWriter, WriteOutcome};
use super::progress::{RingPart, Shared};
use super::queue::Queue;
use super::sync::Syncer;
use crate::error::{RecordError, Result};
use crate::mcap_file::{FileChange, FinishedPart};

/// Maximum time that an entry waits in the queue.
const TAKE_INTERVAL: Duration = Duration::from_millis(50);
/// Queue capacity is released in steps of this size.
const RELEASE_LEN_BYTES: usize = 64 << 10;
/// Interval between two checks of the clock, and between two attempts to begin a part.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// After a full disk, a part begins when this much space is free.
const RESUME_FREE_BYTES: u64 = 16 << 20;

/// Key of the writer's problem in the progress.
const PROBLEM: &str = "recording";

pub struct Writer {
    file: PathBuf,
    options: RecordOptions,
    /// Id of the recording: the time of its start.
    recording: u64,
    queue: Arc<Queue<Item>>,
    shared: Arc<Shared>,
    syncer: Syncer,
    output: Option<PartWriter>,
    /// Number of the next part.
    number: u64,
    is_gate_open: bool,
    /// Why nothing can be written, and when to retry.
    blocked: Option<(RecordLossCause, Instant)>,
    ended: VecDeque<RingPart>,
    /// Start of the current part, CLOCK_MONOTONIC.
    begun_ns: u64,
    /// Everything received before this time was written or counted, CLOCK_MONOTONIC: the earliest start of
    /// the next part.
    reached_ns: u64,
    latched: Latched,
    /// Publishers without a ROS 2 counterpart that were reported.
    without_counterpart: BTreeSet<u64>,
    keys: BTreeMap<String, StateKey>,
    nodes: BTreeMap<String, String>,
    /// Messages written and their bytes, not yet added to the progress.
    written: (u64, u64),
    /// Losses since the last part ended.
    losses: LossCounts,
    /// Losses that are not yet recorded in any part.
    deferred_missed: BTreeMap<(u64, RecordLossCause), MissedMessages>,
    /// Publishers that could not be read since the last part ended.
    unheard: UnheardCounts,
    checked_at: Instant,
}

impl Writer {
    /// Begins the first part, unless recording waits for its gate.
    pub fn new(
        file: &Path,
        options: RecordOptions,
        queue: Arc<Queue<Item>>,
        shared: Arc<Shared>,
    ) -> Result<Self> {
        let syncer = Syncer::start(shared.clone())
            .map_err(|e| RecordError::file("start the thread that syncs", file, e))?;
        let limit = usize::try_from(options.buffer_len_bytes).unwrap_or(usize::MAX);
        let mut writer = Self {
            file: file.to_owned(),
            is_gate_open: options.while_topic.is_none(),
            ended: options.earlier_parts.iter().cloned().collect(),
            options,
            recording: rnet::now_ns(),
            queue,
            shared,
            syncer,
            output: None,
            number: 0,
            blocked: None,
            begun_ns: 0,
            reached_ns: rnet::now_ns(),
            latched: Latched::new(limit),
            without_counterpart: BTreeSet::new(),
            keys: BTreeMap::new(),
            nodes: BTreeMap::new(),
            written: (0, 0),
            losses: LossCounts::default(),
            deferred_missed: BTreeMap::new(),
            unheard: UnheardCounts::default(),
            checked_at: Instant::now(),
        };
        if writer.is_gate_open {
            writer.begin()?;
        } else if file.exists() {
            return Err(RecordError::Exists { path: file.to_owned() });
        }
        Ok(writer)
    }

    /// Writes until the queue is closed and empty.
    pub fn run(mut self) {
        let mut items = VecDeque::new();
        while self.queue.take(TAKE_INTERVAL, &mut items) {
            let (mut entries, mut bytes) = (0, 0);
            for item in items.drain(..) {
                (entries, bytes) = (entries + 1, bytes + item.len_bytes());
                self.handle_item(item);
                if bytes >= RELEASE_LEN_BYTES {
                    self.queue.release(std::mem::take(&mut entries), std::mem::take(&mut bytes));
                }
            }
            self.queue.release(entries, bytes);
            self.maintain();
            self.publish_progress();
        }
        self.end();
        if self.latched.dropped() > 0 {
            self.shared.note(format!(
                "{} messages of transient_local publishers are not repeated at the start of later parts: \
                 the publishers keep too many",
                self.latched.dropped()
            ));
        }
        self.publish_progress();
    }

    fn handle_item(&mut self, item: Item) {
        match item {
            Item::Message(mut received) if Latched::is_latched(&received) => {
                // A large message arrived in the reader's buffer, which may be larger than the message.
                received.bytes.shrink_to_fit();
                let received = Arc::new(received);
                self.message(&received);
                self.latched.insert(received);
            }
            Item::Message(received) => {
                self.message(&received);
                self.queue.recycle(received.bytes);
            }
            Item::Missed(missed) => {
                if self.is_gate_open {
                    self.record_missed(missed);
                }
            }
            Item::Unheard(publisher) => {
                if self.is_gate_open {
                    let topic = publisher.topic.as_deref();
                    self.unheard.add_publisher(topic, &publisher.node, publisher.why);
                }
            }
            Item::Key(key) => {
                self.write(|output| output.key(&key, false));
                if key.is_deleted {
                    self.keys.remove(&key.key);
                } else {
                    self.keys.insert(key.key.clone(), key);
                }
            }
            Item::PublisherGone(publisher) => self.latched.remove(publisher),
            Item::Nodes(nodes) => {
                if let Some(output) = &mut self.output {
                    output.nodes.extend(nodes.clone());
                }
                self.nodes = nodes;
            }
            Item::Gate(true) => {
                self.is_gate_open = true;
                if self.output.is_none() {
                    self.try_to_begin();
                }
            }
            Item::Gate(false) => {
                self.is_gate_open = false;
                self.end();
            }
        }
    }

    fn message(&mut self, received: &ReceivedMessage) {
        self.reached_ns = self.reached_ns.max(received.received_ns);
        if !self.is_gate_open {
            return;
        }
        match self.write(|output| output.message(received)) {
            Some(WriteOutcome::Written) => {
                self.written.0 += 1;
                self.written.1 += received.bytes.len() as u64;
            }
            Some(WriteOutcome::Malformed) => self.record_missed(MissedMessages::new(
                &received.publisher,
                (received.seq, 1),
                RecordLossCause::Malformed,
            )),
            Some(WriteOutcome::NoCounterpart) => {
                if self.without_counterpart.insert(received.publisher.source.publisher) {
                    let (topic, source) = (&received.publisher.topic, &received.publisher.source);
                    let (node, of) = (&source.node, &source.type_name);
                    let of = if of.is_empty() { "bytes" } else { of };
                    self.shared.note(format!(
                        "{topic} of {node} is omitted and counted: ROS 2 has no {of}"
                    ));
                }
                self.record_missed(MissedMessages::new(
                    &received.publisher,
                    (received.seq, 1),
                    RecordLossCause::NoCounterpart,
                ));
            }
            None => {
                let cause = self.blocked.map_or(RecordLossCause::Write, |(cause, _)| cause);
                self.record_missed(MissedMessages::new(
                    &received.publisher,
                    (received.seq, 1),
                    cause,
                ));
            }
        }
        self.rotate_if(|output, options| output.is_full(options));
    }

    /// Begins the next part if the current one is full.
    fn rotate_if(&mut self, is_full: impl FnOnce(&PartWriter, &RecordOptions) -> bool) {
        if self.output.as_ref().is_some_and(|output| is_full(output, &self.options)) {
            self.end();
            self.try_to_begin();
        }
    }

    /// Counts missing messages, and records them now or at the start of the next part.
    fn record_missed(&mut self, missed: MissedMessages) {
        self.count(&missed);
        if self.write(|output| output.missed(&missed)).is_none() {
            self.defer_missed(missed);
        }
    }

    fn count(&mut self, missed: &MissedMessages) {
        let MissedMessages { topic, node, cause, count, .. } = missed;
        self.losses.add(topic, node, *cause, *count);
        self.shared.progress().losses.add(topic, node, *cause, *count);
    }

    fn defer_missed(&mut self, missed: MissedMessages) {
        let deferred_missed = self.deferred_missed.entry((missed.publisher, missed.cause));
        deferred_missed.and_modify(|run| run.count += missed.count).or_insert(missed);
    }

    /// Counts messages as missing that were counted as written.
    fn revert_written(&mut self, lost: Vec<MissedMessages>) {
        // First adds all written messages, so that the subtraction is exact.
        self.publish_written();
        for missed in lost {
            let messages = self.shared.progress().messages;
            self.shared.progress().messages = messages.saturating_sub(missed.count);
            self.count(&missed);
            self.defer_missed(missed);
        }
    }

    /// Writes to the current part, if there is one. Ends a part that accepts no more.
    fn write<T>(&mut self, write: impl FnOnce(&mut PartWriter) -> Result<T>) -> Option<T> {
        match write(self.output.as_mut()?) {
            Ok(written) => Some(written),
            Err(error) => {
                self.fail_part(error);
                None
            }
        }
    }

    /// Ends the part after a write error.
    fn fail_part(&mut self, error: RecordError) {
        let cause = match error {
            RecordError::Full { .. } => RecordLossCause::DiskFull,
            _ => RecordLossCause::Write,
        };
        if cause != RecordLossCause::DiskFull {
            self.shared.set_problem(PROBLEM, Some(error.to_string()));
        }
        let until = if cause == RecordLossCause::DiskFull {
            "the disk has free space"
        } else {
            "it can be written"
        };
        self.shared.note(format!("{error}; messages are counted as missing until {until}"));
        self.blocked = Some((cause, Instant::now()));
        self.end();
    }

    fn end(&mut self) {
        let Some(output) = self.output.take() else { return };
        let (path, file_change) = (output.part().path().to_owned(), output.part().file_change());
        // If finishing fails, the open chunk is lost.
        let (with_file, open) = (
            output.lost_messages(true, RecordLossCause::Removed),
            output.lost_messages(false, RecordLossCause::Write),
        );
        let (losses, unheard) =
            (std::mem::take(&mut self.losses), std::mem::take(&mut self.unheard));
        let followed = self.shared.progress().followed;
        let ended = output.end(&losses, (&unheard, followed));
        self.syncer.finish_file();
        match ended {
            _ if file_change == Some(FileChange::Removed) => {
                self.shared.note(format!(
                    "{} was removed while it was being written; its messages are lost, and counted",
                    path.display()
                ));
                self.shared.progress().gone.push(path);
                (self.losses, self.unheard) = (losses, unheard);
                self.revert_written(with_file);
            }
            Ok(_) if file_change == Some(FileChange::Moved) => self.shared.note(format!(
                "{} was moved while it was being written; its messages are in the moved file",
                path.display()
            )),
            Ok(FinishedPart { path, len_bytes, .. }) => self.add_finished(path, len_bytes),
            Err(error) => {
                let shown = path.display();
                self.shared.note(format!(
                    "{shown} has no index; create it with `rnet bag recover`: {error}"
                ));
                let cause = match error {
                    RecordError::Full { .. } => RecordLossCause::DiskFull,
                    _ => RecordLossCause::Write,
                };
                let len_bytes = path.metadata().map_or(0, |file| file.len());
                self.add_finished(path, len_bytes);
                // This part may lack the counts; recording them twice is better than not at all.
                (self.losses, self.unheard) = (losses, unheard);
                self.revert_written(
                    open.into_iter().map(|of| MissedMessages { cause, ..of }).collect(),
                );
            }
        }
        self.remove_old_parts();
    }

    fn add_finished(&mut self, path: PathBuf, len_bytes: u64) {
        let to_ns = rnet::now_ns();
        self.ended.push_back(RingPart { path, len_bytes, from_ns: self.begun_ns, to_ns });
    }

    /// Tries to begin a part; on an error it retries after a second.
    fn try_to_begin(&mut self) {
        if let Err(error) = self.begin() {
            self.fail_part(error);
        }
    }

    /// Begins the next part with the state and the messages that transient_local publishers keep.
    fn begin(&mut self) -> Result<()> {
        let mut path = part_path(&self.file, self.number);
        while self.number > 0 && path.exists() {
            self.number += 1;
            path = part_path(&self.file, self.number);
        }
        let mut output =
            PartWriter::create(&path, &self.options, self.recording, self.number, self.reached_ns)?;
        self.number += 1;
        self.begun_ns = rnet::now_ns();
        self.syncer.switch_to(output.part().file()?);
        output.nodes = self.nodes.clone();
        let written = self.write_preamble(&mut output);
        self.output = Some(output);
        self.blocked = None;
        self.shared.set_problem(PROBLEM, None);
        written
    }

    fn write_preamble(&mut self, output: &mut PartWriter) -> Result<()> {
        for key in self.keys.values() {
            output.key(key, true)?;
        }
        for received in self.latched.all() {
            // A malformed message was counted when it was received.
            output.message(&received)?;
        }
        output.end_preamble();
        while let Some((of, missed)) = self.deferred_missed.pop_first() {
            if let Err(error) = output.missed(&missed) {
                self.deferred_missed.insert(of, missed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Performs periodic work.
    fn maintain(&mut self) {
        // The queue was just empty, so the next message was received after this time.
        let waits_ns = 2 * TAKE_INTERVAL.as_nanos() as u64;
        self.reached_ns = self.reached_ns.max(rnet::now_ns().saturating_sub(waits_ns));
        let is_check_due = self.checked_at.elapsed() >= CHECK_INTERVAL;
        if is_check_due {
            self.checked_at = Instant::now();
        }
        self.rotate_if(|output, _| is_check_due && output.part().file_change().is_some());
        self.write(|output| output.maintain(is_check_due));
        self.rotate_if(|output, options| output.is_full(options));
        if let Some((cause, since)) = self.blocked
            && self.is_gate_open
            && self.output.is_none()
            && since.elapsed() >= CHECK_INTERVAL
        {
            self.blocked = Some((cause, Instant::now()));
            if cause != RecordLossCause::DiskFull || self.has_free_space() {
                self.try_to_begin();
            }
        }
        self.remove_old_parts();
    }

    fn has_free_space(&self) -> bool {
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let stat = rustix::fs::statvfs(folder.unwrap_or(Path::new(".")));
        stat.is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) >= RESUME_FREE_BYTES)
    }

    /// Removes the oldest parts beyond the size limit, and parts that are too old.
    fn remove_old_parts(&mut self) {
        let max = self.options.max_disk.unwrap_or(u64::MAX);
        let keep_ns = self.options.keep_time.map_or(u64::MAX, |time| time.as_nanos() as u64);
        let before_ns = rnet::now_ns().saturating_sub(keep_ns);
        while self.len_bytes() > max || self.ended.front().is_some_and(|p| p.to_ns < before_ns) {
            let Some(RingPart { path, .. }) = self.ended.pop_front() else { return };
            match std::fs::remove_file(&path) {
                Ok(()) => {
                    self.shared.progress().removed += 1;
                    // A ring removes parts all the time, without a note.
                    if let (Some(max), None) = (self.options.max_disk, self.options.keep_time) {
                        let path = path.display();
                        self.shared.note(format!(
                            "{path} is removed: the parts may have at most {max} bytes"
                        ));
                    }
                }
                Err(error) => {
                    self.shared.note(format!("cannot remove {}: {error}", path.display()));
                }
            }
        }
    }

    /// Bytes of all existing files.
    fn len_bytes(&self) -> u64 {
        let current = self.output.as_ref().map_or(0, |output| output.part().len_bytes());
        self.ended.iter().map(|part| part.len_bytes).sum::<u64>() + current
    }

    fn publish_written(&mut self) {
        let (messages, bytes) = std::mem::take(&mut self.written);
        let mut progress = self.shared.progress();
        progress.messages += messages;
        progress.bytes += bytes;
    }

    fn publish_progress(&mut self) {
        self.publish_written();
        let (file_bytes, queued_bytes) = (self.len_bytes(), self.queue.len_bytes() as u64);
        let mut progress = self.shared.progress();
        progress.file_bytes = file_bytes;
        progress.queued_bytes = queued_bytes;
        progress.path = self.output.as_ref().map(|output| output.part().path().to_owned());
        progress.ended = self.ended.iter().map(|part| part.path.clone()).collect();
        progress.parts = self.ended.iter().cloned().collect();
        progress.disk_is_full = self.output.is_none()
            && self.blocked.is_some_and(|(cause, _)| cause == RecordLossCause::DiskFull);
    }
}
