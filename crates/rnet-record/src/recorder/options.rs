//! Options of a recording.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rnet::TopicName;
use rnet::inspect::Location;

use super::message_hook::MessageHook;
use super::progress::RingPart;
use super::selection::Selection;
use crate::error::{RecordError, Result};
use crate::mcap_file::ChunkCompression;

/// Default memory of the queue.
const DEFAULT_BUFFER_LEN_BYTES: u64 = 256 << 20;
/// Smaller parts could not hold what a chunk may need.
const MIN_SPLIT_BYTES: u64 = 1 << 20;
/// Shorter parts would be nearly empty.
const MIN_SPLIT_TIME: Duration = Duration::from_millis(10);
/// With less memory, the writer would take one message at a time.
const MIN_BUFFER_BYTES: u64 = 64 << 10;
/// Number of parts into which `max_disk` is divided if no part size is given.
const PARTS_PER_MAX_DISK: u64 = 8;

/// Options of [`Recorder::start`](crate::Recorder::start).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordOptions {
    /// Which publishers are recorded.
    pub selection: Selection,
    /// Compression of the chunks.
    pub compress: ChunkCompression,
    /// Record plain messages unchanged, even if a Foxglove message of the same meaning exists.
    pub raw: bool,
    /// Write a file that ROS 2 can read: built-in messages become its standard messages in CDR. Messages
    /// without a counterpart are counted as missing; state and other additional data are omitted.
    pub ros2: bool,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Begin a new part when the current one has this length, in bytes.
    pub split_size: Option<u64>,
    /// Begin a new part when the current one has this age.
    pub split_time: Option<Duration>,
    /// Maximum size of all parts, in bytes. The oldest parts are removed to keep it.
    pub max_disk: Option<u64>,
    /// Parts that ended longer ago than this are removed.
    pub keep_time: Option<Duration>,
    /// Record only while this topic has a publisher.
    pub while_topic: Option<String>,
    /// Memory of the queue in bytes; the same amount is used in addition for messages of transient_local
    /// publishers.
    pub buffer_len_bytes: u64,
    /// Whether state and parameters are recorded.
    pub state: bool,
    /// The name of this host; `None` for the name of the system.
    pub host: Option<String>,
    /// The command line, which is stored in the recording.
    pub command_line: String,
    /// The domain; `None` for the domain of the environment.
    pub location: Option<Location>,
    /// Folder of the durable state; `None` for the one of the environment.
    pub state_dir: Option<PathBuf>,
    /// Parts of an earlier recording, the oldest first, which are removed like those of this one.
    pub(crate) earlier_parts: Vec<RingPart>,
    /// A hook that sees each message before it is queued.
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
    /// Validates the options, and fills in derived values.
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

/// This location, or the one of the environment.
pub(crate) fn resolve_location(location: &Option<Location>) -> rnet::Result<Location> {
    location.clone().map_or_else(|| Location::new(None, None, None), Ok)
}

/// Path of a part: `run.mcap`, `run_1.mcap`, `run_2.mcap`.
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
    fn part_number_precedes_extension() {
        assert_eq!(part_path(Path::new("/d/run.mcap"), 0), Path::new("/d/run.mcap"));
        assert_eq!(part_path(Path::new("/d/run.mcap"), 2), Path::new("/d/run_2.mcap"));
        assert_eq!(part_path(Path::new("run"), 1), Path::new("run_1"));
    }

    #[test]
    fn rejects_invalid_limits() {
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
