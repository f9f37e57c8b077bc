//! The words of `rnet record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rnet::TopicName;
use rnet_record::Compress;

use crate::shared_args::{bytes, seconds};

/// Record topics, state and parameters into an MCAP file.
///
/// Everything, unless topics, types, nodes or hosts are named. Publishers do not feel it: the recorder is no
/// subscriber, and says by topic and cause what it could not keep up with. But what nodes of other hosts
/// publish crosses the network only for a subscriber, so it is one of these topics. Ctrl-C ends the file.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Topics, or patterns of them: `*` stands for one part of a name, `**` for any number
    #[arg(value_name = "TOPIC")]
    pub topics: Vec<String>,
    /// The file, which must not be there yet; further parts are NAME_1.mcap, NAME_2.mcap
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// End after this many seconds
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Messages of this type only: `rnet.msgs.Imu`, or its last part
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// What this node publishes, or nodes like this pattern, only
    #[arg(long = "node", value_name = "PATTERN")]
    pub nodes: Vec<String>,
    /// What nodes of this host publish only
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Not these topics, or those like this pattern
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// How chunks of the file are compressed
    #[arg(long, value_name = "HOW", default_value = "zstd")]
    pub compress: Compression,
    /// Record images and point clouds as they were sent, not as the Foxglove messages of the same meaning
    #[arg(long)]
    pub raw: bool,
    /// Write a file for ROS 2: built-in messages as its standard messages in CDR; others are named, counted and left out
    #[arg(long, conflicts_with = "raw")]
    pub ros2: bool,
    /// Begin a new file when one has this many bytes; 64K, 1M and 1G are of 1024
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub split_size: Option<u64>,
    /// Begin a new file after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub split_time: Option<Duration>,
    /// Remove the oldest files, so that all have no more bytes than this [without --split-size: in eighths of it]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_disk: Option<u64>,
    /// Record only while somebody publishes this topic, a file each time
    #[arg(long = "while", value_name = "TOPIC")]
    pub while_topic: Option<TopicName>,
    /// Memory for what waits to be written
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = bytes)]
    pub buffer: u64,
    /// Leave state and parameters out
    #[arg(long)]
    pub no_state: bool,
    /// For bindings: the process that records, with whose end the recording ends
    #[arg(long, value_name = "PID", hide = true)]
    pub parent: Option<i32>,
}

/// How chunks of the file are compressed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Compression {
    /// Small files
    Zstd,
    /// Less of the processor
    Lz4,
    /// As it is
    None,
}

impl From<Compression> for Compress {
    fn from(how: Compression) -> Self {
        match how {
            Compression::Zstd => Self::Zstd,
            Compression::Lz4 => Self::Lz4,
            Compression::None => Self::None,
        }
    }
}
