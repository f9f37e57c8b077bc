//! An open MCAP file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcap::MAGIC;
use mcap::records::{MessageHeader, Record, op};

use super::blocks::{Block, BlockContents};
use super::channel_times::{self, ChannelTimes};
use super::channels::{Channel, Channels, Schema};
use super::chunk::MAX_CHUNK_LEN_BYTES;
use super::error::{Problem, ReadError};
use super::info::RecordingInfo;
use super::input::Input;
use super::messages::{Messages, Select};
use super::{index, scan};
use crate::names;

/// The highest supported version of a recording.
const VERSION: u32 = 1;
/// Maximum length of a Header record.
const MAX_HEADER_LEN_BYTES: u64 = 1 << 20;

/// An MCAP file: its channels, information about its messages, and the messages.
///
/// ```no_run
/// use rnet_record::read::{Recording, Select};
///
/// let recording = Recording::open("run.mcap".as_ref())?;
/// for message in recording.messages(Select { topics: vec!["/imu".into()], ..Select::default() }) {
///     let message = message?;
///     println!("{} {} bytes", message.log_ns(), message.data().len());
/// }
/// # Ok::<(), rnet_record::read::ReadError>(())
/// ```
///
/// Clones share the open file.
#[derive(Clone, Debug)]
pub struct Recording {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    input: Input,
    profile: String,
    library: String,
    info: RecordingInfo,
}

impl Recording {
    /// Opens a file by its index, without reading its messages. A file without a usable index is scanned to
    /// its end: it is still being written, or its recorder was killed.
    ///
    /// # Errors
    /// The file cannot be read, is not an MCAP file, or is a recording of a later version. Other problems are
    /// listed in [`RecordingInfo::problems`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::open_by(path, |input, start| match index::read(input, start) {
            Ok(found) => found,
            Err(why) => scan_file(input, start, index::summary(input).ok().as_ref(), Some(why)),
        })
    }

    /// Opens a file and scans it to its end. Uses the index only to continue after damaged parts.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open_without_index(path: &Path) -> Result<Self, ReadError> {
        Self::open_by(path, |input, start| match index::summary(input) {
            Ok(summary) => scan_file(input, start, Some(&summary), None),
            Err(why) => scan_file(input, start, None, Some(why)),
        })
    }

    fn open_by(
        path: &Path,
        read: impl FnOnce(&Input, u64) -> RecordingInfo,
    ) -> Result<Self, ReadError> {
        let input = Input::open(path).map_err(|error| ReadError::new(0, error.into()))?;
        let (profile, library, start) = read_header(&input)?;
        let info = read(&input, start);
        let inner = Inner { path: path.to_owned(), input, profile, library, info };
        let recording = Self { inner: Arc::new(inner) };
        recording.check_version()?;
        Ok(recording)
    }

    fn check_version(&self) -> Result<(), ReadError> {
        let said = self.metadata(names::RECORDING).and_then(|map| map.get("version"));
        match said {
            Some(said) if !said.parse::<u32>().is_ok_and(|version| version <= VERSION) => {
                let problem = Problem::Version { found: said.clone(), known: VERSION };
                Err(ReadError::new(0, problem))
            }
            _ => Ok(()),
        }
    }

    /// Path that was passed to `open`.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Length of the file when it was opened, in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.inner.input.len()
    }

    /// Profile in its header: `rnet`, `ros2`, or another text of the writer.
    pub fn profile(&self) -> &str {
        &self.inner.profile
    }

    /// The library that wrote it, according to its header.
    pub fn library(&self) -> &str {
        &self.inner.library
    }

    /// Information about its content.
    pub fn info(&self) -> &RecordingInfo {
        &self.inner.info
    }

    /// Its channels, by id.
    pub fn channels(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.inner.info.channels.iter()
    }

    /// The first and last log time of each channel with messages. Reads message indexes, at most a few for each
    /// channel.
    pub fn channel_times(&self) -> ChannelTimes {
        let info = &self.inner.info;
        channel_times::read(&self.inner.input, &info.blocks, &info.channels)
    }

    /// Its schemas, by id.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.inner.info.channels.schemas()
    }

    /// The first metadata record of this name.
    pub fn metadata(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        let found = self.inner.info.metadata.iter().find(|metadata| metadata.name == name);
        found.map(|metadata| &metadata.metadata)
    }

    /// The attachment at this place, which is one of [`RecordingInfo::attachments`].
    ///
    /// # Errors
    /// The place contains no attachment, or the attachment is longer than 1 GiB.
    pub fn attachment(&self, place: (u64, u64)) -> Result<mcap::Attachment<'static>, ReadError> {
        let head = self.inner.input.head(place.0, place.1)?;
        let head = head.filter(|head| head.opcode == op::ATTACHMENT).ok_or_else(|| {
            let why = "an attachment should begin here".to_owned();
            ReadError::new(place.0, Problem::Index(why))
        })?;
        match self.inner.input.record(&head, MAX_CHUNK_LEN_BYTES)? {
            Record::Attachment { header, data, .. } => Ok(mcap::Attachment {
                log_time: header.log_time,
                create_time: header.create_time,
                name: header.name,
                media_type: header.media_type,
                data: data.into_owned().into(),
            }),
            _ => unreachable!("a record of this opcode is parsed as an attachment"),
        }
    }

    /// The content of a block. Callers know only [`Recording::channels`], so messages of a channel that the
    /// index does not describe are removed; if `select` includes such a channel, the block gets a problem.
    pub(super) fn contents(
        &self,
        block: &Block,
        channels: &mut Channels,
        select: &Select,
    ) -> Result<BlockContents, ReadError> {
        let mut contents = block.read(&self.inner.input, channels)?;
        let is_left_out = |header: &MessageHeader| {
            let id = header.channel_id;
            self.inner.info.channels.get(id).is_none()
                && channels.get(id).is_some_and(|channel| select.includes(channel))
                && select.includes_time(header.log_time)
        };
        if let Some((header, _)) = contents.messages.iter().find(|(header, _)| is_left_out(header))
        {
            let why = format!(
                "messages of channel {} in the chunk here are skipped because the index does not describe \
                 it; `rnet bag recover` reads them",
                header.channel_id
            );
            contents.problem.get_or_insert(ReadError::new(block.offset, Problem::Index(why)));
        }
        Ok(contents)
    }

    /// Its messages.
    pub fn messages(&self, select: Select) -> Messages {
        Messages::new(self.clone(), select)
    }
}

/// Scans the whole file, and reports the problem of its index.
fn scan_file(
    input: &Input,
    start: u64,
    summary: Option<&index::Summary>,
    wrong: Option<ReadError>,
) -> RecordingInfo {
    let mut found = scan::scan(input, start, summary);
    let Some(wrong) = wrong else { return found };
    let has_no_end = |problem: &ReadError| matches!(problem.problem, Problem::MissingFooter);
    if matches!(wrong.problem, Problem::NoIndex) {
        found.scan_reason = Some("it has no index");
    } else if !has_no_end(&wrong) || !found.problems.iter().any(has_no_end) {
        found.problem(wrong);
    }
    found
}

/// Profile and library of the file, and the offset of its data.
pub(super) fn read_header(input: &Input) -> Result<(String, String, u64), ReadError> {
    let magic = MAGIC.len() as u64;
    if input.len() < magic || input.read(0, magic)? != MAGIC {
        return Err(ReadError::new(0, Problem::NotMcap));
    }
    let Some(head) = input.head(magic, input.len())? else {
        return Err(ReadError::new(magic, Problem::MissingFooter));
    };
    if head.opcode != op::HEADER {
        let why = "it is at the position of the Header record".to_owned();
        return Err(ReadError::new(magic, Problem::Record { what: head.name(), why }));
    }
    match input.record(&head, MAX_HEADER_LEN_BYTES)? {
        Record::Header(header) => Ok((header.profile, header.library, head.end())),
        _ => unreachable!("a record of this opcode is parsed as a header"),
    }
}
