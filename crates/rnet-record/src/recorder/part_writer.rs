//! Writes a part of a recording: channels of publishers, times, and the recorder's own messages. Its file and
//! chunks are written by `mcap_file.rs`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use mcap::records::MessageHeader;
use rnet::inspect::UnreadCause;
use rnet::msgs::plain::to_protobuf;
use rnet::schema::{Dynamic, Schema};
use rnet::{TypeDesc, WallOffset};
use rnet_schema::reflect::ReflectDynamic;

use super::item::{MissedMessages, Publisher, ReceivedMessage, StateKey};
use super::json;
use super::loss::{LossCounts, RecordLossCause, UnheardCounts};
use super::options::RecordOptions;
use crate::error::RecordError;
use crate::mcap_file::{FinishedPart, Part};
use crate::names;
use crate::ros2::qos::{OFFERED_QOS_KEY, format_profile};
use crate::ros2::{self, Counterpart};
use crate::source::TypeKind;

type Result<T, E = RecordError> = std::result::Result<T, E>;

/// MCAP allows 65,535 channels; a new part begins before.
const MAX_CHANNELS: usize = 60_000;
/// A wall clock that deviates by more than this was set.
const CLOCK_STEP_NS: u64 = 1_000_000;

/// A part being written.
pub struct PartWriter {
    part: Part,
    begun: Instant,
    raw: bool,
    ros2: bool,
    /// The start of the part, CLOCK_MONOTONIC: the log time of messages repeated from earlier parts.
    begun_ns: u64,
    /// Whether messages written now repeat earlier parts.
    in_preamble: bool,
    /// The offset that converts the times of this file, and the last reported offset.
    clock: WallOffset,
    reported_clock: WallOffset,
    /// By publisher.
    channels: HashMap<u64, Channel>,
    /// The ROS 2 counterpart of each publisher's messages; `None` without one.
    counterparts: HashMap<u64, Option<(Schema, Counterpart)>>,
    /// The recorder's own channels by topic, with the number of the next message.
    internal_channels: HashMap<&'static str, (u16, u32)>,
    /// Nodes seen.
    pub nodes: BTreeMap<String, String>,
}

struct Channel {
    id: u16,
    publisher: Arc<Publisher>,
    /// Messages in the open chunk.
    in_chunk: Run,
    /// Messages in the part, without the preamble.
    in_part: Run,
}

/// Number of written messages, and the sequence number of the first.
#[derive(Clone, Copy, Default)]
struct Run {
    count: u64,
    first_seq: u64,
}

impl Run {
    fn add(&mut self, seq: u64) {
        if self.count == 0 {
            self.first_seq = seq;
        }
        self.count += 1;
    }
}

/// Result of writing a message.
#[derive(Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    Written,
    /// The message does not match its type.
    Malformed,
    /// ROS 2 has no message of its type.
    NoCounterpart,
}

impl PartWriter {
    /// Begins part `number` of `recording` at `path`. Messages written before [`PartWriter::end_preamble`]
    /// repeat earlier parts and are logged at `begun_ns`, so that the part covers only its own time.
    pub fn create(
        path: &Path,
        options: &RecordOptions,
        recording: u64,
        number: u64,
        begun_ns: u64,
    ) -> Result<PartWriter> {
        let profile = if options.ros2 { ros2::PROFILE } else { names::PROFILE };
        let mut part = Part::create(path, options.compress, profile)?;
        let clock = rnet::wall_offset();
        let start_ns = wall(rnet::now_ns(), &clock);
        let said = [
            ("version", "1".to_owned()),
            ("rnet", rnet::VERSION.to_owned()),
            ("domain", options.location.as_ref().map_or("", |of| of.id().as_str()).to_owned()),
            ("host", options.host()),
            ("start_ns", start_ns.to_string()),
            ("recording", format!("{recording:016x}")),
            ("part", number.to_string()),
            ("options", options.command_line.clone()),
        ];
        part.add_metadata(names::RECORDING, said.map(|(key, v)| (key.to_owned(), v)).into())?;
        part.add_metadata(names::CLOCK, clock_metadata(&clock))?;
        Ok(PartWriter {
            part,
            begun: Instant::now(),
            begun_ns,
            in_preamble: true,
            raw: options.raw && !options.ros2,
            ros2: options.ros2,
            clock,
            reported_clock: clock,
            channels: HashMap::new(),
            counterparts: HashMap::new(),
            internal_channels: HashMap::new(),
            nodes: BTreeMap::new(),
        })
    }

    /// The file.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Whether the part is to end because of its length, its age or its number of channels.
    pub fn is_full(&self, options: &RecordOptions) -> bool {
        options.split_size.is_some_and(|size| self.part.len_bytes() >= size)
            || options.split_time.is_some_and(|time| self.begun.elapsed() >= time)
            || self.channels.len() >= MAX_CHANNELS
    }

    /// Adds a message.
    ///
    /// # Errors
    /// `Full`, before any of it is written; those of [`Part::flush`].
    pub fn message(&mut self, received: &ReceivedMessage) -> Result<WriteOutcome> {
        let publisher = &received.publisher;
        let converted = match publisher.plain().filter(|_| !self.raw) {
            None => None,
            Some(plain) => match to_protobuf(&plain.name, &received.bytes) {
                Ok(converted) => converted,
                Err(_) => return Ok(WriteOutcome::Malformed),
            },
        };
        let (schema, bytes) = match &converted {
            Some((schema, bytes)) => (Some(schema), &**bytes),
            None => (None, &*received.bytes),
        };
        let cdr = match self.ros2.then(|| self.cdr(publisher, schema, bytes)).transpose() {
            Ok(cdr) => cdr,
            Err(wrote) => return Ok(wrote),
        };
        let bytes = cdr.as_deref().unwrap_or(bytes);
        let id = self.channel(publisher, schema)?;
        let publish_time = self.wall(received.sent_ns);
        let log_time = self.log_time(received.received_ns).max(publish_time);
        let source = &publisher.source;
        if let Some(meta) = json::meta(source.publisher, received.seq, &received.meta) {
            let text = meta.to_string();
            self.part.reserve_space((text.len() + bytes.len()) as u64)?;
            self.write_internal(names::META_TOPIC, text.as_bytes(), publish_time, log_time)?;
        }
        self.part.reserve_space(bytes.len() as u64)?;
        // MCAP stores 32 bits of the number; readers find gaps by differences.
        let sequence = received.seq as u32;
        if let Some(channel) = self.channels.get_mut(&source.publisher) {
            channel.in_chunk.add(received.seq);
            channel.in_part.add(received.seq);
        }
        self.part
            .add(&MessageHeader { channel_id: id, sequence, log_time, publish_time }, bytes)?;
        self.note_flushed();
        Ok(WriteOutcome::Written)
    }

    /// Converts a message to its ROS 2 counterpart.
    fn cdr(
        &mut self,
        publisher: &Arc<Publisher>,
        converted: Option<&Schema>,
        bytes: &[u8],
    ) -> Result<Vec<u8>, WriteOutcome> {
        let of = self.counterparts.entry(publisher.source.publisher).or_insert_with(|| {
            let schema = converted.or(publisher.schema.as_ref())?;
            Some((schema.clone(), Counterpart::of(schema.name())?))
        });
        let (schema, counterpart) = of.as_ref().ok_or(WriteOutcome::NoCounterpart)?;
        let decoded = Dynamic::decode(schema, bytes).map_err(|_| WriteOutcome::Malformed)?;
        Ok(counterpart.encode(decoded.message()))
    }

    /// The channel of a publisher, created for its first message. The schema is the one of the converted
    /// messages.
    fn channel(&mut self, publisher: &Arc<Publisher>, converted: Option<&Schema>) -> Result<u16> {
        let source = &publisher.source;
        if let Some(channel) = self.channels.get(&source.publisher) {
            return Ok(channel.id);
        }
        let mut said = source.clone();
        let of_ros2 = self.counterparts.get(&source.publisher).and_then(Option::as_ref);
        let of_ros2 = of_ros2.map(|(_, of)| of);
        let (encoding, schema) = match (converted, publisher.plain(), &publisher.schema) {
            _ if of_ros2.is_some() => (ros2::CDR, of_ros2.map(Counterpart::schema)),
            (Some(schema), plain, _) => {
                said.layout = plain.cloned();
                let set = schema.descriptor_set_with_json_names();
                (names::PROTOBUF, Some((schema.name().to_owned(), names::PROTOBUF, set)))
            }
            (None, Some(plain), _) => {
                let layout = TypeDesc::Plain(plain.clone()).to_json().into_bytes();
                (names::PLAIN, Some((plain.name.clone(), names::PLAIN, layout)))
            }
            (None, None, Some(schema)) if source.kind == TypeKind::Protobuf => {
                let set = schema.descriptor_set_with_json_names();
                (names::PROTOBUF, Some((schema.name().to_owned(), names::PROTOBUF, set)))
            }
            _ => (names::BYTES, None),
        };
        let schema = schema.as_ref().map(|(name, encoding, data)| (&**name, *encoding, &**data));
        let mut metadata = said.to_metadata();
        if self.ros2 {
            metadata.insert(OFFERED_QOS_KEY.to_owned(), format_profile(&said));
        }
        let id = self.part.add_channel(&publisher.topic, encoding, schema, &metadata)?;
        let (in_chunk, in_part) = (Run::default(), Run::default());
        let channel = Channel { id, publisher: publisher.clone(), in_chunk, in_part };
        self.channels.insert(source.publisher, channel);
        Ok(id)
    }

    /// Adds a message of the recorder itself.
    fn write_internal(
        &mut self,
        topic: &'static str,
        text: &[u8],
        publish_time: u64,
        log_time: u64,
    ) -> Result<()> {
        if self.ros2 {
            return Ok(());
        }
        self.part.reserve_space(text.len() as u64)?;
        let (channel_id, sequence) = match self.internal_channels.get(topic) {
            Some(of) => *of,
            None => (self.part.add_channel(topic, names::JSON, None, &BTreeMap::new())?, 0),
        };
        self.internal_channels.insert(topic, (channel_id, sequence.wrapping_add(1)));
        let header = MessageHeader { channel_id, sequence, log_time, publish_time };
        self.part.add(&header, text)?;
        self.note_flushed();
        Ok(())
    }

    /// Adds a state key: its initial value, or a change.
    pub fn key(&mut self, key: &StateKey, is_initial: bool) -> Result<()> {
        let mut said = key.fields.clone();
        if is_initial {
            // An earlier part already counted the values skipped before it.
            said.remove("skipped");
            said.insert("initial".to_owned(), true.into());
        }
        let at = self.wall(key.at_ns);
        // The write time, which precedes any reaction to it; the recorder sees the change some ms later.
        let written = key.fields.get("written_unix_ns").and_then(serde_json::Value::as_u64);
        let sent = written.filter(|_| !is_initial).map_or(at, |written| written.min(at));
        let text = serde_json::Value::Object(said).to_string();
        self.write_internal(names::STATE_TOPIC, text.as_bytes(), sent, self.log_time(key.at_ns))
    }

    /// Adds a record of missing messages.
    pub fn missed(&mut self, missed: &MissedMessages) -> Result<()> {
        let at = self.wall(missed.at_ns);
        self.write_internal(
            names::MISSED_TOPIC,
            &serde_json::to_vec(missed).unwrap_or_default(),
            at,
            at,
        )
    }

    /// Flushes a chunk that is too old, and records a step of the wall clock.
    pub fn maintain(&mut self, checks_clock: bool) -> Result<()> {
        if checks_clock {
            let now = rnet::wall_offset();
            if now.offset_ns.abs_diff(self.reported_clock.offset_ns) > CLOCK_STEP_NS {
                self.reported_clock = now;
                self.part.reserve_space(1 << 10)?;
                self.part.add_metadata(names::CLOCK, clock_metadata(&now))?;
            }
        }
        if self.part.time_until_flush().is_some_and(|time| time.is_zero()) {
            self.part.flush()?;
        }
        self.note_flushed();
        Ok(())
    }

    fn note_flushed(&mut self) {
        if !self.part.has_open_chunk() {
            self.channels.values_mut().for_each(|channel| channel.in_chunk = Run::default());
        }
    }

    /// Messages written so far are also in earlier parts, and are not lost with this one.
    pub fn end_preamble(&mut self) {
        self.in_preamble = false;
        self.channels.values_mut().for_each(|channel| channel.in_part = Run::default());
    }

    /// The messages that are lost with the whole file, or only those of the open chunk.
    pub fn lost_messages(&self, with_file: bool, cause: RecordLossCause) -> Vec<MissedMessages> {
        let runs = self.channels.values().map(|channel| {
            (&channel.publisher, if with_file { channel.in_part } else { channel.in_chunk })
        });
        let lost = runs.filter(|(_, run)| run.count > 0);
        lost.map(|(of, run)| MissedMessages::new(of, (run.first_seq, run.count), cause)).collect()
    }

    /// Finishes the file with the counts of missing messages, of unread publishers and of followed
    /// publishers.
    pub fn end(
        mut self,
        losses: &LossCounts,
        unheard: (&UnheardCounts, u64),
    ) -> Result<FinishedPart> {
        self.part.add_metadata(names::LOSSES, losses.to_metadata(RecordLossCause::name))?;
        let mut not_heard = unheard.0.to_metadata(UnreadCause::name);
        not_heard.insert("followed".to_owned(), unheard.1.to_string());
        self.part.add_metadata(names::UNHEARD, not_heard)?;
        let nodes = std::mem::take(&mut self.nodes);
        self.part.add_metadata(names::NODES, nodes)?;
        self.part.end()
    }

    fn wall(&self, monotonic_ns: u64) -> u64 {
        wall(monotonic_ns, &self.clock)
    }

    /// The log time of a receive time.
    fn log_time(&self, received_ns: u64) -> u64 {
        self.wall(if self.in_preamble { received_ns.max(self.begun_ns) } else { received_ns })
    }
}

fn wall(monotonic_ns: u64, clock: &WallOffset) -> u64 {
    monotonic_ns.saturating_add_signed(clock.offset_ns)
}

fn clock_metadata(clock: &WallOffset) -> BTreeMap<String, String> {
    let said = [
        ("offset_ns", clock.offset_ns.to_string()),
        ("uncertainty_ns", clock.uncertainty_ns.to_string()),
        ("monotonic_ns", rnet::now_ns().to_string()),
    ];
    said.map(|(key, value)| (key.to_owned(), value)).into()
}

impl MissedMessages {
    /// Messages that are not recorded: sequence number of the first, count, and cause.
    pub fn new(
        of: &Publisher,
        (first_seq, count): (u64, u64),
        cause: RecordLossCause,
    ) -> MissedMessages {
        MissedMessages {
            topic: of.topic.clone(),
            node: of.source.node.clone(),
            publisher: of.source.publisher,
            first_seq,
            count,
            cause,
            at_ns: rnet::now_ns(),
        }
    }
}
