//! The words of `rnet bag`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::{NamePattern, TopicName};
use rnet_monitor::value::FieldPath;

use crate::shared_args::{LimitArgs, SpanArgs, bytes, seconds};

#[derive(Debug, Subcommand)]
pub enum BagCommand {
    /// Show what is in a recording, by its index
    Info(FileArg),
    /// List the channels of a recording with rates, bytes and losses; reads all of it
    Ls(FileArg),
    /// Print the messages of a recording
    Cat(CatArgs),
    /// Read all of a recording, and compare its CRCs, its order and its indexes
    Check(FileArg),
    /// Write the messages that are chosen into a new file
    Filter(FilterArgs),
    /// Write the messages of several files into one, in the order of time
    Merge(MergeArgs),
    /// Write a file as several
    Split(SplitArgs),
    /// Convert a topic to CSV, messages to JSON lines, or a recording to ROS 2: .csv, .jsonl, .mcap
    Convert(ConvertArgs),
    /// Draw fields over time, in the terminal or as a picture: .svg
    Plot(PlotArgs),
    /// Write what can be read of a damaged recording into a new file
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
    /// Only topics of this name or pattern, such as '/arm/**'; may be given several times
    #[arg(short, long, value_name = "PATTERN", value_parser = topic_pattern)]
    pub topic: Vec<NamePattern>,
    /// Not topics of this name or pattern; may be given several times
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
    /// End after this many messages
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
    /// Write a topic under another name; may be given several times
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
    /// Each file holds so many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time: Option<Duration>,
    /// Each file holds messages of so many bytes, before compression; K, M and G are understood
    #[arg(long, value_name = "BYTES", conflicts_with = "time", value_parser = bytes)]
    pub size: Option<u64>,
    /// The first of the new files; the others are NAME_1, NAME_2 and so on
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// An MCAP file
    pub file: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Write only this field, such as pose.x, or the fields of this message; may be given several times
    #[arg(long, value_name = "PATH")]
    pub field: Vec<FieldPath>,
    /// The new file: NAME.csv for a table of one topic, NAME.jsonl for a document a line, NAME.mcap with --ros2
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Write an MCAP file for ROS 2: built-in messages become its standard messages in CDR, others are named and left out
    #[arg(long)]
    pub ros2: bool,
}

#[derive(Debug, Args)]
pub struct PlotArgs {
    /// An MCAP file
    pub file: PathBuf,
    /// Fields that are numbers or arrays of numbers, behind their topics: /imu.linear_acceleration.x
    #[arg(required = true, value_name = "TOPIC.FIELD")]
    pub fields: Vec<String>,
    /// A new file with all of them in one picture: NAME.svg [default: the terminal, one below the other]
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

/// A topic and another name of it.
pub fn remap(text: &str) -> Result<(String, String), String> {
    let (from, to) = text.split_once(":=").ok_or("write /old:=/new")?;
    let to = TopicName::from_str(to).map_err(|error| error.to_string())?;
    Ok((from.to_owned(), to.to_string()))
}

/// Other recorders give topics names that are not valid here.
pub fn topic_pattern(text: &str) -> Result<NamePattern, String> {
    NamePattern::foreign("topic", text).map_err(|error| error.to_string())
}
