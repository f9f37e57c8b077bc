//! The arguments of `rnet bag`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::{NamePattern, TopicName};
use rnet_format::value::FieldPath;

use crate::shared_args::{LimitArgs, SpanArgs, bytes, seconds};

#[derive(Debug, Subcommand)]
pub enum BagCommand {
    /// Show the contents of a recording, from its index
    Info(FileArg),
    /// List channels with rates, bytes and losses; reads the whole recording
    Ls(FileArg),
    /// Print the messages of a recording
    Cat(CatArgs),
    /// Check a recording for damage: CRCs, order and indexes
    Check(FileArg),
    /// Copy selected messages to a new file
    Filter(FilterArgs),
    /// Merge several files into one, in time order
    Merge(MergeArgs),
    /// Split a file into several
    Split(SplitArgs),
    /// Convert a topic to CSV, messages to JSON Lines, or a recording to ROS 2: .csv, .jsonl, .mcap
    Convert(ConvertArgs),
    /// Plot fields over time, in the terminal or as an SVG file
    Plot(PlotArgs),
    /// Recover the readable part of a damaged recording to a new file
    Recover(RecoverArgs),
}

#[derive(Debug, Args)]
pub struct FileArg {
    /// An MCAP file
    pub file: PathBuf,
}

/// Which messages of a file.
#[derive(Debug, Default, Args)]
pub struct SelectArgs {
    /// Only topics that match this name or pattern, such as '/arm/**'; repeatable
    #[arg(short, long, value_name = "PATTERN", value_parser = topic_pattern)]
    pub topic: Vec<NamePattern>,
    /// Exclude topics that match this name or pattern; repeatable
    #[arg(short = 'x', long, value_name = "PATTERN", value_parser = topic_pattern)]
    pub exclude: Vec<NamePattern>,
    #[command(flatten)]
    pub span: SpanArgs,
}

#[derive(Debug, Args)]
pub struct CatArgs {
    /// An MCAP file
    pub file: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Exit after this many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    #[command(flatten)]
    pub limits: LimitArgs,
}

#[derive(Debug, Args)]
pub struct FilterArgs {
    /// An MCAP file
    pub file: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Rename a topic; repeatable
    #[arg(short = 'm', long, value_name = "A:=B", value_parser = remap)]
    pub remap: Vec<(String, String)>,
    /// The new file
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// MCAP files
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The new file
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct SplitArgs {
    /// An MCAP file
    pub file: PathBuf,
    /// Seconds per file
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time: Option<Duration>,
    /// Bytes of messages per file, before compression; accepts K, M and G
    #[arg(long, value_name = "BYTES", conflicts_with = "time", value_parser = bytes)]
    pub size: Option<u64>,
    /// The first new file; the others are NAME_1, NAME_2 and so on
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// An MCAP file
    pub file: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Write only this field, such as pose.x, or the fields of this message; repeatable
    #[arg(long, value_name = "PATH")]
    pub field: Vec<FieldPath>,
    /// The new file: NAME.csv for a table of one topic, NAME.jsonl for one document per line, NAME.mcap with --ros2
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Write an MCAP file for ROS 2: built-in messages are converted to standard ROS 2 messages in CDR; others are
    /// listed and omitted
    #[arg(long)]
    pub ros2: bool,
}

#[derive(Debug, Args)]
pub struct PlotArgs {
    /// An MCAP file
    pub file: PathBuf,
    /// Numeric fields or arrays of numbers, each after its topic: /imu.linear_acceleration.x
    #[arg(required = true, value_name = "TOPIC.FIELD")]
    pub fields: Vec<String>,
    /// Write one picture with all fields to a new file: NAME.svg [default: one plot per field in the terminal]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Title of the picture [default: the name of the file]
    #[arg(long, value_name = "TEXT", requires = "output")]
    pub title: Option<String>,
    /// Width of the picture, in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, value_parser = clap::value_parser!(u32).range(300..=10_000))]
    pub width: u32,
    /// Height of the picture, in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(200..=10_000))]
    pub height: u32,
    #[command(flatten)]
    pub span: SpanArgs,
}

#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// The damaged file
    pub file: PathBuf,
    /// The new file [default: FILE with .recovered before its extension]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A topic and its new name.
pub fn remap(text: &str) -> Result<(String, String), String> {
    let (from, to) = text.split_once(":=").ok_or("write /old:=/new")?;
    let to = TopicName::from_str(to).map_err(|error| error.to_string())?;
    Ok((from.to_owned(), to.to_string()))
}

/// Other recorders use topic names that are invalid here.
pub fn topic_pattern(text: &str) -> Result<NamePattern, String> {
    NamePattern::foreign("topic", text).map_err(|error| error.to_string())
}
