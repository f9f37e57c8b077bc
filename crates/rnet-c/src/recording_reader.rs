//! `rnet_recording`: reads MCAP files, of robot-net or other programs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

use rnet::inspect::compare_types;
use rnet_record::read::{Channel, Message, Messages, Problem, ReadError, Recording, Select};

use crate::border::{enter, free, give, given, write};
use crate::bytes::{rnet_bytes, text};
use crate::error::rnet_code::{RNET_INCOMPATIBLE_TYPE, RNET_READ_FAILED};
use crate::error::{Failure, Outcome, invalid, rnet_code, rnet_error};
use crate::handle::Exclusive;
use crate::options::{Options, options};
use crate::texts::{Texts, element, texts};
use crate::types::{rnet_type, type_of};

/// An open recording. Any thread may use it. Its iterators keep it open after rnet_recording_free().
pub struct rnet_recording(Arc<Opened>);

/// A recording, and its content as C reads it.
struct Opened {
    recording: Recording,
    info: rnet_recording_info,
    channels: Vec<rnet_recorded_channel>,
    metadata: Vec<rnet_recorded_entry>,
    _texts: Texts,
}

// SAFETY: its pointers are to its own texts, which do not change.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

/// What an open recording contains. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_recording_info {
    /// Path with which it was opened.
    pub path: *const c_char,
    /// The profile in its header: "rnet", "ros2", or another text of its writer.
    pub profile: *const c_char,
    /// The library that wrote it, from its header.
    pub library: *const c_char,
    /// Length of the file, in bytes.
    pub len_bytes: u64,
    /// Number of messages of all channels.
    pub message_count: u64,
    /// Time at which the first message was recorded, in ns since 1970 UTC; 0 without messages.
    pub start_ns: u64,
    /// Time at which the last message was recorded, in ns since 1970 UTC; 0 without messages.
    pub end_ns: u64,
    /// Number of channels: see rnet_recording_channel().
    pub channel_count: usize,
    /// Number of entries of rnet_recording_metadata().
    pub metadata_count: usize,
    /// Problems that opening the file has found, with its path.
    pub problems: *const *const c_char,
    /// Number of `problems`; 0 for a complete file without damage.
    pub problem_count: usize,
    /// Whether written data cannot be read. A missing end is not damage: the file is still being written, or its
    /// recorder was killed.
    pub is_damaged: bool,
}

/// A channel of a recording: the messages of one publisher, or of one topic in files of other programs. New versions
/// of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_recorded_channel {
    /// The topic.
    pub topic: *const c_char,
    /// Node of the publisher; "" if the file does not name it.
    pub node: *const c_char,
    /// Host of the publisher; "" if the file does not name it.
    pub host: *const c_char,
    /// Name of the type of its messages; "" for raw bytes.
    pub type_name: *const c_char,
    /// How the file encodes its messages: "protobuf", "rnet-plain", "bytes", "json", "cdr", …
    pub encoding: *const c_char,
    /// Id of the publisher; 0 if the file does not name it.
    pub publisher: u64,
    /// Number of its messages.
    pub message_count: u64,
    /// Whether the recorder itself wrote it: state, metadata, missing messages.
    pub is_internal: bool,
}

/// An entry of a metadata record of a recording. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_recorded_entry {
    /// Number of the record, in the order of the file. A name may occur several times.
    pub record: usize,
    /// Name of the record: "rnet.recording", "rnet.losses", …
    pub name: *const c_char,
    /// Key of the entry.
    pub key: *const c_char,
    /// Its value.
    pub value: *const c_char,
}

fn failure_of(recording: &Path, error: &ReadError) -> Failure {
    let path = recording.display();
    let text = match error.problem {
        Problem::Io(_) => format!("{path}: {}", error.problem),
        _ => format!("{path}: {error}"),
    };
    Failure::Coded(RNET_READ_FAILED, text)
}

impl Opened {
    fn new(recording: Recording) -> Opened {
        let (found, mut all) = (recording.info(), Texts::default());
        let described = |channel: &Arc<Channel>| {
            let source = channel.source().unwrap_or_default();
            let is_raw = channel.schema.is_none() && source.type_name.is_empty();
            rnet_recorded_channel {
                topic: all.add(&channel.topic),
                node: all.add(&source.node),
                host: all.add(&source.host),
                type_name: all.add(if is_raw { "" } else { channel.type_name() }),
                encoding: all.add(&channel.message_encoding),
                publisher: source.publisher,
                message_count: found.counts.get(&channel.id).copied().unwrap_or_default(),
                is_internal: channel.is_reserved(),
            }
        };
        let channels: Vec<_> = recording.channels().map(described).collect();
        let mut metadata = Vec::new();
        for (record, one) in found.metadata.iter().enumerate() {
            let name = all.add(&one.name);
            metadata.extend(one.metadata.iter().map(|(key, value)| rnet_recorded_entry {
                record,
                name,
                key: all.add(key),
                value: all.add(value),
            }));
        }
        let path = recording.path().display();
        let problems = found.problems.iter().map(|problem| format!("{path}: {problem}"));
        let more = found.more_problems;
        let more = (more > 0).then(|| format!("{path}: {more} more problems"));
        let (problems, problem_count) = all.add_all(problems.chain(more));
        let times = found.times.unwrap_or_default();
        let info = rnet_recording_info {
            path: all.add(&path.to_string()),
            profile: all.add(recording.profile()),
            library: all.add(recording.library()),
            len_bytes: recording.len_bytes(),
            message_count: found.messages(),
            start_ns: times.0,
            end_ns: times.1,
            channel_count: channels.len(),
            metadata_count: metadata.len(),
            problems,
            problem_count,
            is_damaged: found.is_damaged(),
        };
        Opened { info, channels, metadata, _texts: all, recording }
    }

    fn channel(&self, at: usize) -> Outcome<&Arc<Channel>> {
        self.recording.channels().nth(at).ok_or_else(|| {
            let count = self.channels.len();
            invalid(format!("channel {at} does not exist: the recording has {count} channels"))
        })
    }

    /// # Errors
    /// `ReadFailed`: its type cannot be read.
    fn message_type(&self, channel: &Channel) -> Outcome<rnet::MessageType> {
        channel.message_type().map_err(|error| {
            let path = self.recording.path().display();
            Failure::Coded(RNET_READ_FAILED, format!("{path}: {error}"))
        })
    }

    /// # Errors
    /// `ReadFailed` if the recording has no such topic, as in the other languages.
    fn check_topic(&self, topic: &str) -> Outcome {
        if self.recording.channels().any(|channel| channel.topic == topic) {
            return Ok(());
        }
        let path = self.recording.path().display();
        let text = format!("{path} has no topic {topic}; `rnet bag info` lists those that it has");
        Err(Failure::Coded(RNET_READ_FAILED, text))
    }
}

/// # Safety
/// As [`given`].
unsafe fn opened_of<'a>(recording: *const rnet_recording) -> Outcome<&'a Arc<Opened>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(recording, "recording") }?.0)
}

/// Opens an MCAP file by its index, without reading its messages. A file without an index is read once to its end: it
/// is still being written, or its recorder was killed. The caller frees the recording with rnet_recording_free().
///
/// Errors: RNET_READ_FAILED, with the path, if it cannot be read, is not an MCAP file, or has a later format version.
/// Other problems are in rnet_recording_describe().
///
/// # Safety
/// `path` is a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recording_open(
    path: *const c_char,
    out: *mut *mut rnet_recording,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let path = Path::new(unsafe { text(path, "path") }?);
        let recording = Recording::open(path).map_err(|error| failure_of(path, &error))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_recording(Arc::new(Opened::new(recording)))) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// What the recording contains, valid as long as the recording. Null if `recording` is null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_recording_describe(
    recording: Option<&rnet_recording>,
) -> *const rnet_recording_info {
    recording.map_or(std::ptr::null(), |recording| &raw const recording.0.info)
}

/// A channel, valid as long as the recording and its iterators. Null if `at` is not less than the number of channels.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_recording_channel(
    recording: Option<&rnet_recording>,
    at: usize,
) -> *const rnet_recorded_channel {
    recording.map_or(std::ptr::null(), |recording| element(&recording.0.channels, at))
}

/// An entry of the metadata records, in the order of the file. Valid as long as the recording. Null if `at` is not
/// less than their number.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_recording_metadata(
    recording: Option<&rnet_recording>,
    at: usize,
) -> *const rnet_recorded_entry {
    recording.map_or(std::ptr::null(), |recording| element(&recording.0.metadata, at))
}

/// The type of the messages of a channel: as published, protobuf for ROS 2, raw bytes for other encodings. The caller
/// frees it with rnet_type_free().
///
/// Errors: RNET_READ_FAILED if its description cannot be read.
///
/// # Safety
/// `recording` is a recording, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recording_type(
    recording: *const rnet_recording,
    channel: usize,
    out: *mut *mut rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let opened = unsafe { opened_of(recording) }?;
        let ty = opened.message_type(opened.channel(channel)?)?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_type::new(ty)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Checks whether messages of a channel can be read as `wanted`, as a subscriber does with its publisher. Null or raw
/// bytes can always be read.
///
/// Errors: RNET_INCOMPATIBLE_TYPE with the first difference; RNET_READ_FAILED if the type of the channel cannot be
/// read.
///
/// # Safety
/// `recording` is a recording, `wanted` null or a type, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recording_check_type(
    recording: *const rnet_recording,
    channel: usize,
    wanted: *const rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let opened = unsafe { opened_of(recording) }?;
        // SAFETY: as promised by the caller.
        let wanted = unsafe { type_of(wanted) };
        let channel = opened.channel(channel)?;
        let changes = compare_types(&opened.message_type(channel)?, &wanted);
        let Some(change) = changes.iter().find(|change| change.breaking) else { return Ok(()) };
        let (path, topic) = (opened.recording.path().display(), &channel.topic);
        let text = format!("{path}: {topic} was recorded with another type: {change}");
        Err(Failure::Coded(RNET_INCOMPATIBLE_TYPE, text))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a recording. Its iterators stay valid. Null is allowed.
///
/// # Safety
/// `recording` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recording_free(recording: *mut rnet_recording) {
    // SAFETY: as promised by the caller.
    unsafe { free(recording) }
}

/// Which messages of a recording to read. Initialise it with RNET_RECORDING_SELECT_INIT; 0 and null mean all.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_recording_select {
    /// sizeof(rnet_recording_select), set by the initialiser.
    pub struct_size: usize,
    /// The topics.
    pub topics: *const *const c_char,
    /// Number of `topics`.
    pub topic_count: usize,
    /// The first time of recording, in ns since 1970 UTC.
    pub start_ns: u64,
    /// The end of the times of recording (exclusive), in ns since 1970 UTC.
    pub end_ns: u64,
    /// Whether to read also the channels of the recorder itself. They can be named in `topics`, too.
    pub with_internal: bool,
    /// Whether the messages that transient_local publishers kept at `start_ns` come first.
    pub with_latched: bool,
    /// Space for options of new versions; 0.
    pub reserved: [u8; 6],
}

options!(rnet_recording_select);

/// Messages of a recording, in the order in which they were recorded. One thread at a time may use it; a second one
/// gets RNET_WRONG_THREAD.
pub struct rnet_recorded_messages(Arc<Exclusive<Reading>>);

/// A message of a recording. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_recorded_message {
    /// Its channel, with its topic, node and type.
    pub channel: *const rnet_recorded_channel,
    /// Number of the channel, as for rnet_recording_channel().
    pub channel_index: usize,
    /// Its sequence number at its publisher, the low 32 bits.
    pub sequence: u32,
    /// When it was recorded, in ns since 1970 UTC.
    pub log_ns: u64,
    /// When it was sent, in ns since 1970 UTC.
    pub publish_ns: u64,
    /// Its content, encoded as rnet_recording_type() describes. It may have any alignment.
    pub data: rnet_bytes,
}

struct Reading {
    messages: Messages,
    opened: Arc<Opened>,
    /// Index of each channel in `opened`, by its id in the file.
    places: HashMap<u16, usize>,
    /// Own the content of `current`.
    message: Option<Message>,
    converted: Vec<u8>,
    current: Option<rnet_recorded_message>,
}

// SAFETY: its pointers are to what it owns.
unsafe impl Send for Reading {}

impl Reading {
    fn next(&mut self) -> Outcome<*const rnet_recorded_message> {
        self.current = None;
        let path = self.opened.recording.path();
        let message = match self.messages.next() {
            None => return Ok(std::ptr::null()),
            Some(read) => read.map_err(|error| failure_of(path, &error))?,
        };
        let message = self.message.insert(message);
        let (topic, place) = (&message.channel.topic, self.places.get(&message.channel.id));
        let place = *place.ok_or_else(|| {
            let text = format!("{}: the channel of {topic} is not described", path.display());
            Failure::Coded(RNET_READ_FAILED, text)
        })?;
        let content = message.content().map_err(|why| {
            let text = format!(
                "{}: message {} of {topic} cannot be decoded: {why}",
                path.display(),
                message.sequence()
            );
            Failure::Coded(RNET_READ_FAILED, text)
        })?;
        let data = match content {
            Cow::Borrowed(data) => rnet_bytes::of(data),
            Cow::Owned(data) => {
                self.converted = data;
                rnet_bytes::of(&self.converted)
            }
        };
        Ok(self.current.insert(rnet_recorded_message {
            channel: &raw const self.opened.channels[place],
            channel_index: place,
            sequence: message.sequence(),
            log_ns: message.log_ns(),
            publish_ns: message.publish_ns(),
            data,
        }))
    }
}

/// Reads messages of a recording; all that publishers sent if `select` is null. The caller frees the iterator with
/// rnet_recorded_messages_free().
///
/// Errors: RNET_READ_FAILED if the recording does not have one of the topics.
///
/// # Safety
/// `recording` is a recording, `select` null or initialised, `out` valid for a write, `error` null or valid for a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recording_messages(
    recording: *const rnet_recording,
    select: *const rnet_recording_select,
    out: *mut *mut rnet_recorded_messages,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let opened = unsafe { opened_of(recording) }?;
        // SAFETY: as promised by the caller.
        let select = unsafe { rnet_recording_select::read(select) }?;
        // SAFETY: as promised by the caller.
        let topics = unsafe { texts(select.topics, select.topic_count, "topics") }?;
        topics.iter().try_for_each(|topic| opened.check_topic(topic))?;
        let time = |ns: u64| Some(ns).filter(|ns| *ns > 0);
        let messages = opened.recording.messages(Select {
            topics: topics.into_iter().map(str::to_owned).collect(),
            start_ns: time(select.start_ns),
            end_ns: time(select.end_ns),
            with_reserved: select.with_internal,
            with_latched: select.with_latched,
            ..Select::default()
        });
        let ids = opened.recording.channels().map(|channel| channel.id);
        let reading = Reading {
            messages,
            opened: opened.clone(),
            places: ids.enumerate().map(|(place, id)| (id, place)).collect(),
            message: None,
            converted: Vec::new(),
            current: None,
        };
        let name = format!("the messages of {}", opened.recording.path().display());
        let object = Exclusive::new("recorded_messages", name, reading, || {});
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_recorded_messages(object)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The next message, valid until the next call with the iterator; `*out` becomes null at the end.
///
/// Errors: RNET_READ_FAILED, with the path and the place, for a part that cannot be read. The next call continues
/// after it.
///
/// # Safety
/// `messages` is an iterator, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recorded_messages_next(
    messages: *mut rnet_recorded_messages,
    out: *mut *const rnet_recorded_message,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = &unsafe { given(messages, "messages") }?.0;
        let message = object.with(Reading::next)?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, message) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees an iterator. Null is allowed.
///
/// # Safety
/// `messages` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_recorded_messages_free(messages: *mut rnet_recorded_messages) {
    // SAFETY: as promised by the caller.
    unsafe { free(messages) }
}
