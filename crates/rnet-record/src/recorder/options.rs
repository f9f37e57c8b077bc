//! What is to be recorded, and how.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rnet::TopicName;
use rnet::inspect::Location;

use super::message_hook::MessageHook;
use super::progress::RingPart;
use super::selection::Selection;
use crate::error::{RecordError, Result};
use crate::part::ChunkCompression;

/// Memory for what waits to be written.
const DEFAULT_BUFFER_LEN_BYTES: u64 = 256 << 20;
/// Less would not hold what a chunk may need.
const MIN_SPLIT_BYTES: u64 = 1 << 20;
/// Parts of less would be files of nothing.
const MIN_SPLIT_TIME: Duration = Duration::from_millis(10);
/// With less, the writer takes one message at a time.
const MIN_BUFFER_BYTES: u64 = 64 << 10;
/// Into how many parts `max_disk` is divided where nothing is said of their size.
const PARTS_PER_MAX_DISK: u64 = 8;

/// What [`Recorder::start`](crate::Recorder::start) is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordOptions {
    /// What is recorded.
    pub selection: Selection,
    /// How chunks are compressed.
    pub compress: ChunkCompression,
    /// Plain messages are recorded as they are, also those that have a Foxglove message of the same meaning.
    pub raw: bool,
    /// The file is one that ROS 2 reads: built-in messages become its standard messages in CDR. What has no counterpart is
    /// counted as missing; state and what else a recording has beside messages is left out.
    pub ros2: bool,
    /// Ends after this time.
    pub duration: Option<Duration>,
    /// A new part begins when one is this long, in bytes.
    pub split_size: Option<u64>,
    /// A new part begins when one is this old.
    pub split_time: Option<Duration>,
    /// The oldest parts are removed so that all together are no longer than this, in bytes.
    pub max_disk: Option<u64>,
    /// Parts that have ended longer ago than this are removed.
    pub keep_time: Option<Duration>,
    /// Records only while this topic has a publisher.
    pub while_topic: Option<String>,
    /// Memory for what waits to be written, in bytes; as much again keeps what transient_local publishers keep.
    pub buffer_len_bytes: u64,
    /// Whether the state is recorded, and parameters with it.
    pub state: bool,
    /// The name of this host; of the system, if it is not said.
    pub host: Option<String>,
    /// What the recording says of how it was made: the command line.
    pub command_line: String,
    /// Where the domain is; that of the environment, if it is not said.
    pub location: Option<Location>,
    /// Where durable state is kept, if not where the environment says.
    pub state_dir: Option<PathBuf>,
    /// Parts of an earlier recording, the oldest first, that are removed as those of this one are.
    pub(crate) earlier_parts: Vec<RingPart>,
    /// Who is shown each message before it waits to be written.
    pub(crate) message_hook: Option<Arc<dyn MessageHook>>,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            compress: ChunkCompression::default(),
            raw: false,
            ros2: false,
            duration: None,
            split_size: None,
            split_time: None,
            max_disk: None,
            keep_time: None,
            while_topic: None,
            buffer_len_bytes: DEFAULT_BUFFER_LEN_BYTES,
            state: true,
            host: None,
            command_line: String::new(),
            location: None,
            state_dir: None,
            earlier_parts: Vec::new(),
            message_hook: None,
        }
    }
}

impl RecordOptions {
    /// Checks them, and says what follows from them.
    pub(super) fn validate(mut self) -> Result<Self> {
        self.location = Some(resolve_location(&self.location)?);
        if let Some(max) = self.max_disk {
            let split = *self.split_size.get_or_insert(max / PARTS_PER_MAX_DISK);
            if split > max / 2 {
                return Err(RecordError::Options(format!(
                    "two parts of {split} bytes do not fit into the {max} bytes of --max-disk; a part can \
                     have at most half of it"
                )));
            }
        }
        if let Some(size) = self.split_size.filter(|size| *size < MIN_SPLIT_BYTES) {
            return Err(RecordError::Options(format!(
                "parts of {size} bytes are too small; the minimum is {MIN_SPLIT_BYTES} bytes (with \
                 --max-disk, a part has an eighth of it)"
            )));
        }
        if let Some(time) = self.split_time.filter(|time| *time < MIN_SPLIT_TIME) {
            return Err(RecordError::Options(format!(
                "--split-time: parts of {time:?} are too short; the minimum is {MIN_SPLIT_TIME:?}"
            )));
        }
        if self.buffer_len_bytes < MIN_BUFFER_BYTES {
            return Err(RecordError::Options(format!(
                "--buffer: {} bytes are too few; the minimum is {MIN_BUFFER_BYTES} bytes",
                self.buffer_len_bytes
            )));
        }
        if let Some(topic) = &mut self.while_topic {
            *topic = TopicName::new(topic)?.as_str().to_owned();
        }
        Ok(self)
    }

    /// The name of this host.
    pub(super) fn host(&self) -> String {
        let of_system = || {
            let set = std::env::var("RNET_HOST").ok().filter(|name| !name.is_empty());
            let name = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
            set.or_else(name).map_or_else(|| "-".to_owned(), |name| name.trim().to_owned())
        };
        self.host.clone().unwrap_or_else(of_system)
    }
}

/// This location, or that of the environment.
pub(crate) fn resolve_location(location: &Option<Location>) -> rnet::Result<Location> {
    location.clone().map_or_else(|| Location::new(None, None, None), Ok)
}

/// The file of a part: `run.mcap`, `run_1.mcap`, `run_2.mcap`.
pub(crate) fn part_path(file: &Path, number: u64) -> PathBuf {
    if number == 0 {
        return file.to_owned();
    }
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(format!("_{number}"));
    if let Some(end) = file.extension() {
        name.push(".");
        name.push(end);
    }
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_numbers_before_the_ending() {
        assert_eq!(part_path(Path::new("/d/run.mcap"), 0), Path::new("/d/run.mcap"));
        assert_eq!(part_path(Path::new("/d/run.mcap"), 2), Path::new("/d/run_2.mcap"));
        assert_eq!(part_path(Path::new("run"), 1), Path::new("run_1"));
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let of = |split_size, max_disk| {
            RecordOptions { split_size, max_disk, ..RecordOptions::default() }.validate()
        };
        assert_eq!(of(None, Some(80 << 20)).unwrap().split_size, Some(10 << 20));
        assert!(of(Some(60 << 20), Some(80 << 20)).unwrap_err().to_string().contains("half"));
        assert!(of(Some(1000), None).unwrap_err().to_string().contains("1048576"));
        for buffer_len_bytes in [0, 1, MIN_BUFFER_BYTES - 1] {
            let options = RecordOptions { buffer_len_bytes, ..RecordOptions::default() };
            let refused = options.validate().unwrap_err().to_string();
            assert!(refused.contains("--buffer") && refused.contains("65536"), "{refused}");
        }
        let split_time = Some(Duration::ZERO);
        let refused =
            RecordOptions { split_time, ..RecordOptions::default() }.validate().unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("--split-time: parts of 0ns are too short; the minimum is 10ms")
        );
    }
}
