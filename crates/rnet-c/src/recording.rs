//! `rnet_recorder`: records a domain to MCAP files.

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

use rnet_record::{ChunkCompression, Progress, RecordError, RecordOptions, Recorder, Selection};

use crate::border::{enter, free, give, given};
use crate::bytes::{optional_text, text};
use crate::error::{Failure, Outcome, invalid, rnet_code, rnet_error};
use crate::handle::Exclusive;
use crate::inspect::location;
use crate::options::{Options, optional_duration, options};
use crate::texts::{Texts, element, texts};

/// Compression of a recording.
#[allow(dead_code, reason = "option structs hold its numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_compression {
    /// Small files.
    RNET_COMPRESSION_ZSTD = 0,
    /// Less processor time than zstd.
    RNET_COMPRESSION_LZ4 = 1,
    /// Uncompressed, for incompressible data.
    RNET_COMPRESSION_NONE = 2,
}

/// Options of rnet_recorder_start(). Initialise it with RNET_RECORDER_OPTIONS_INIT; 0 and null mean the default.
///
/// All publishers are recorded by default. If topics, types, nodes or hosts are given, a publisher must match one of
/// each. In patterns of names, * is one part of a name and ** any number of parts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_recorder_options {
    /// sizeof(rnet_recorder_options), set by the initialiser.
    pub struct_size: usize,
    /// The domain; default RNET_DOMAIN, else "0".
    pub domain: *const c_char,
    /// Directory of shared memory; default RNET_DIR, else /dev/shm.
    pub dir: *const c_char,
    /// Group of users who share the domain; default RNET_GROUP, else none.
    pub group: *const c_char,
    /// Directory of durable state; default RNET_STATE_DIR, else ~/.local/state/rnet.
    pub state_dir: *const c_char,
    /// Name of this host in the recording; default RNET_HOST, else that of the system.
    pub host: *const c_char,
    /// A description that is stored in the recording: `rnet record` stores its command line.
    pub description: *const c_char,
    /// Patterns of topics.
    pub topics: *const *const c_char,
    /// Number of `topics`.
    pub topic_count: usize,
    /// Patterns of topics that are not recorded.
    pub excluded_topics: *const *const c_char,
    /// Number of `excluded_topics`.
    pub excluded_topic_count: usize,
    /// Names of types, or their last parts: "foxglove.LaserScan", "LaserScan".
    pub types: *const *const c_char,
    /// Number of `types`.
    pub type_count: usize,
    /// Patterns of nodes.
    pub nodes: *const *const c_char,
    /// Number of `nodes`.
    pub node_count: usize,
    /// Names of hosts.
    pub hosts: *const *const c_char,
    /// Number of `hosts`.
    pub host_count: usize,
    /// Records only while this topic has a publisher.
    pub while_topic: *const c_char,
    /// The compression, an rnet_compression.
    pub compression: i32,
    /// Whether to record images and point clouds as sent, instead of as Foxglove messages.
    pub raw: bool,
    /// Whether to write a file for ROS 2. Messages without a counterpart in ROS 2 are counted as missing.
    pub ros2: bool,
    /// Whether to leave out state and parameters.
    pub without_state: bool,
    /// Stops after this time, in ns.
    pub duration_ns: i64,
    /// Begins a new file after this time, in ns; at least 10 ms.
    pub split_time_ns: i64,
    /// Removes files that ended longer ago than this, in ns.
    pub keep_time_ns: i64,
    /// Begins a new file at this length, in bytes; at least 1 MiB.
    pub split_size_bytes: u64,
    /// Largest length of all files together, in bytes. The oldest ones are removed to keep it.
    pub max_disk_bytes: u64,
    /// Memory for messages that are not yet written, in bytes; default 256 MiB, at least 64 KiB.
    pub buffer_len_bytes: u64,
}

options!(rnet_recorder_options);

/// Adds each text of a list to a selection.
fn add_each(
    selection: Selection,
    list: Vec<&str>,
    add: impl Fn(Selection, &str) -> rnet::Result<Selection>,
) -> Outcome<Selection> {
    Ok(list.into_iter().try_fold(selection, add)?)
}

impl rnet_recorder_options {
    /// # Safety
    /// Each pointer is null or refers to a string, or to as many strings as its count says.
    unsafe fn selection(&self) -> Outcome<Selection> {
        // SAFETY: as promised by the caller.
        let list = |from, count, what| unsafe { texts(from, count, what) };
        let all = Selection::default();
        let all = add_each(all, list(self.topics, self.topic_count, "topics")?, Selection::topic)?;
        let excluded = list(self.excluded_topics, self.excluded_topic_count, "excluded_topics")?;
        let all = add_each(all, excluded, Selection::exclude)?;
        let types = list(self.types, self.type_count, "types")?;
        let all = add_each(all, types, |all, name| Ok(all.type_name(name)))?;
        let all = add_each(all, list(self.nodes, self.node_count, "nodes")?, Selection::node)?;
        let hosts = list(self.hosts, self.host_count, "hosts")?;
        add_each(all, hosts, |all, name| Ok(all.host(name)))
    }

    /// # Safety
    /// As [`Self::selection`].
    unsafe fn record_options(&self) -> Outcome<RecordOptions> {
        let owned = |from, what| {
            // SAFETY: as promised by the caller.
            Ok::<_, Failure>(unsafe { optional_text(from, what) }?.map(str::to_owned))
        };
        let some = |bytes: u64| Some(bytes).filter(|bytes| *bytes > 0);
        let mut options = RecordOptions::default();
        // SAFETY: as promised by the caller.
        options.selection = unsafe { self.selection() }?;
        // SAFETY: as promised by the caller.
        options.location = Some(unsafe { location(self.domain, self.dir, self.group) }?);
        options.state_dir = owned(self.state_dir, "state_dir")?.map(Into::into);
        options.host = owned(self.host, "host")?;
        options.command_line = owned(self.description, "description")?.unwrap_or_default();
        options.while_topic = owned(self.while_topic, "while_topic")?;
        options.compress = match self.compression {
            0 => ChunkCompression::Zstd,
            1 => ChunkCompression::Lz4,
            2 => ChunkCompression::None,
            other => {
                return Err(invalid(format!(
                    "compression is {other}, which is not an rnet_compression"
                )));
            }
        };
        options.raw = self.raw;
        options.ros2 = self.ros2;
        options.state = !self.without_state;
        options.duration = optional_duration(self.duration_ns, "duration_ns")?;
        options.split_time = optional_duration(self.split_time_ns, "split_time_ns")?;
        options.keep_time = optional_duration(self.keep_time_ns, "keep_time_ns")?;
        options.split_size = some(self.split_size_bytes);
        options.max_disk = some(self.max_disk_bytes);
        options.buffer_len_bytes = some(self.buffer_len_bytes).unwrap_or(options.buffer_len_bytes);
        Ok(options)
    }
}

fn failure_of(error: RecordError) -> Failure {
    match error {
        RecordError::Rnet(error) => error.into(),
        other => Failure::Coded(rnet_code::RNET_RECORD_FAILED, other.to_string()),
    }
}

/// Records a domain to MCAP files, from outside: publishers neither wait for it nor see it. One thread at a time may
/// use it; a second one gets RNET_WRONG_THREAD.
pub struct rnet_recorder(Arc<Exclusive<Recorder>>);

/// # Safety
/// As [`given`].
unsafe fn recorder_of<'a>(recorder: *const rnet_recorder) -> Outcome<&'a Exclusive<Recorder>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(recorder, "recorder") }?.0)
}

/// Starts to record into `file`, which must not exist. When it returns, every message that a followed publisher sends
/// is recorded or counted as missing. The caller frees the recorder with rnet_recorder_free().
///
/// Errors: RNET_RECORD_FAILED if the file exists or cannot be created, or if options contradict each other;
/// RNET_BAD_NAME for a pattern; RNET_NO_PERMISSION, RNET_LAYOUT_VERSION.
///
/// # Safety
/// `file` is a string, `options` null or initialised, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recorder_start(
    file: *const c_char,
    options: *const rnet_recorder_options,
    out: *mut *mut rnet_recorder,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let file = unsafe { text(file, "file") }?;
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_recorder_options::read(options) }?;
        // SAFETY: as promised by the caller.
        let options = unsafe { options.record_options() }?;
        let recorder = Recorder::start(Path::new(file), options).map_err(failure_of)?;
        let name = format!("the recorder of {file}");
        let object = Exclusive::new("recorder", name, recorder, || {});
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_recorder(object)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The progress so far, with the notes since the last report. The caller frees the report with
/// rnet_recorder_report_free().
///
/// # Safety
/// `recorder` is a recorder, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recorder_progress(
    recorder: *mut rnet_recorder,
    out: *mut *mut rnet_recorder_report,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let report = unsafe { recorder_of(recorder) }?.with_here(|recorder| {
            let mut progress = recorder.progress();
            progress.notes = recorder.take_notes();
            Ok(rnet_recorder_report::new(&progress, recorder.is_finished()))
        })?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, report) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Completes the file with all messages that were sent before, and gives the result. The caller frees the report with
/// rnet_recorder_report_free(), and the recorder with rnet_recorder_free(); other calls fail with RNET_CLOSED.
///
/// Errors: RNET_RECORD_FAILED with the reason for which the recording ended before; the file is complete up to there.
/// RNET_CLOSED if it was stopped before.
///
/// # Safety
/// `recorder` is a recorder, `out` null or valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recorder_stop(
    recorder: *mut rnet_recorder,
    out: *mut *mut rnet_recorder_report,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { recorder_of(recorder) }?;
        let Some(stopped) = object.take(|recorder| recorder) else {
            return object.with_here(|_| Ok(()));
        };
        let report = rnet_recorder_report::new(&stopped.stop().map_err(failure_of)?, true);
        if out.is_null() {
            return Ok(());
        }
        // SAFETY: as promised by the caller.
        unsafe { give(out, report) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Stops the recorder as rnet_recorder_stop() does, and frees it. Null is allowed.
///
/// # Safety
/// `recorder` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recorder_free(recorder: *mut rnet_recorder) {
    // SAFETY: as promised by the caller. Dropping the recorder completes the file.
    unsafe { free(recorder) }
}

/// The progress or the result of a recording. Any thread may use it.
pub struct rnet_recorder_report {
    info: rnet_recorder_info,
    losses: Vec<rnet_recorder_loss>,
    _texts: Texts,
}

/// The numbers of a report. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_recorder_info {
    /// Messages recorded.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages of followed publishers that are missing: see rnet_recorder_report_loss().
    pub missing: u64,
    /// Publishers that are followed now.
    pub publishers: u64,
    /// Publishers that were followed since the start.
    pub followed: u64,
    /// Publishers that were seen but not read, or not to their end. The number of their messages is unknown.
    pub unread: u64,
    /// Values of state that were overwritten before they were recorded. The newest value of each key is recorded.
    pub skipped_values: u64,
    /// Bytes that wait to be written.
    pub queued_bytes: u64,
    /// Bytes of all existing files.
    pub file_bytes: u64,
    /// Files that were removed to keep max_disk_bytes.
    pub removed_files: u64,
    /// Whether the recording has ended by itself: its time is over, or it failed. rnet_recorder_stop() gives the
    /// result.
    pub is_finished: bool,
    /// Whether nothing is written because the disk is full.
    pub disk_is_full: bool,
    /// Whether nothing is recorded because while_topic has no publisher.
    pub is_waiting: bool,
    /// Number of entries of rnet_recorder_report_loss().
    pub loss_count: usize,
    /// Paths of the existing files, the oldest first.
    pub files: *const *const c_char,
    /// Number of `files`.
    pub file_count: usize,
    /// What prevents writing now, and what happened since the last report.
    pub notes: *const *const c_char,
    /// Number of `notes`.
    pub note_count: usize,
}

/// Missing messages of one topic, node and cause. New versions of the library
/// add fields at its end.
#[repr(C)]
pub struct rnet_recorder_loss {
    /// The topic; "?" if it is unknown.
    pub topic: *const c_char,
    /// The node of the publisher; "?" if it is unknown.
    pub node: *const c_char,
    /// The cause: "overrun", "reused", "queue", "disk_full", … (docs/guide/recording.md).
    pub cause: *const c_char,
    /// Their number.
    pub count: u64,
}

impl rnet_recorder_report {
    fn new(progress: &Progress, is_finished: bool) -> rnet_recorder_report {
        let mut all = Texts::default();
        let mut losses = Vec::new();
        for (topic, node, cause, count) in progress.losses.iter() {
            let (topic, node, cause) = (all.add(topic), all.add(node), all.add(cause.name()));
            losses.push(rnet_recorder_loss { topic, node, cause, count });
        }
        let files = progress.ended.iter().chain(&progress.path);
        let (files, file_count) = all.add_all(files.map(|path| path.to_string_lossy()));
        let notes = progress.problems.values().chain(&progress.notes);
        let (notes, note_count) = all.add_all(notes);
        let info = rnet_recorder_info {
            messages: progress.messages,
            bytes: progress.bytes,
            missing: progress.losses.total(),
            publishers: progress.publishers as u64,
            followed: progress.followed,
            unread: progress.unheard.total(),
            skipped_values: progress.skipped_values,
            queued_bytes: progress.queued_bytes,
            file_bytes: progress.file_bytes,
            removed_files: progress.removed,
            is_finished,
            disk_is_full: progress.disk_is_full,
            is_waiting: progress.is_waiting,
            loss_count: losses.len(),
            files,
            file_count,
            notes,
            note_count,
        };
        rnet_recorder_report { info, losses, _texts: all }
    }
}

/// The numbers of a report, valid as long as the report. Null if `report` is null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_recorder_report_describe(
    report: Option<&rnet_recorder_report>,
) -> *const rnet_recorder_info {
    report.map_or(std::ptr::null(), |report| &raw const report.info)
}

/// Missing messages of one topic, node and cause, valid as long as the report. Null if `at` is not less than their
/// number.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_recorder_report_loss(
    report: Option<&rnet_recorder_report>,
    at: usize,
) -> *const rnet_recorder_loss {
    report.map_or(std::ptr::null(), |report| element(&report.losses, at))
}

/// Frees a report. Null is allowed.
///
/// # Safety
/// `report` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recorder_report_free(report: *mut rnet_recorder_report) {
    // SAFETY: as promised by the caller.
    unsafe { free(report) }
}
