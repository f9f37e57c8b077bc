//! The arguments of `rnet topic`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use rnet::TopicName;
use rnet_format::value::FieldPath;

use crate::shared_args::{LimitArgs, NodeArg, seconds};
use crate::types::args::ProtoArgs;

#[derive(Debug, Subcommand)]
pub enum TopicCommand {
    /// List the topics
    List(TopicListArgs),
    /// Show the publishers and subscribers of a topic
    Info(TopicInfoArgs),
    /// Print the name of a topic's type
    Type {
        /// The topic
        topic: TopicName,
    },
    /// List the topics of a type
    Find {
        /// Name of the type, in full or its last part; raw for topics without a type
        #[arg(value_name = "TYPE")]
        name: String,
    },
    /// Print the messages of a topic
    Echo(EchoArgs),
    /// Print the publish rate of a topic, from the publishers' timestamps
    Hz(RateArgs),
    /// Print the bandwidth of a topic in bytes per second
    Bw(RateArgs),
    /// Print the latency of a topic, as measured by its subscribers
    Delay(DelayArgs),
    /// Publish to a topic
    Pub(PubArgs),
}

#[derive(Debug, Args)]
pub struct TopicListArgs {
    /// Show the types
    #[arg(short = 't', long)]
    pub show_types: bool,
    /// Show the number of publishers and subscribers, and the hosts of the publishers
    #[arg(short, long)]
    pub verbose: bool,
    /// List only topics that a node of this host publishes or subscribes to
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Also list robot-net's internal topics, under /_rnet/
    #[arg(short, long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct TopicInfoArgs {
    /// The topic
    pub topic: TopicName,
    /// Show each publisher and subscriber: node, quality of service, type, counters
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct EchoArgs {
    /// The topic; it does not need to exist yet
    pub topic: TopicName,
    /// Exit after the first message
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Exit after this many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Exit after this many seconds; exit code 124 if fewer messages arrived than requested
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Print only this field, for example pose.x, legs[2].force or cells["left"].volt
    #[arg(long, value_name = "PATH")]
    pub field: Option<FieldPath>,
    /// Print one line of comma-separated values per message
    #[arg(long, conflicts_with = "raw")]
    pub csv: bool,
    /// With --csv: print the column names first, and again when they change
    #[arg(long, requires = "csv")]
    pub header: bool,
    /// Also print typed messages as a hex dump of their bytes
    #[arg(long, conflicts_with = "field")]
    pub raw: bool,
    /// Print number, sender and length before each message, as a comment
    #[arg(long)]
    pub info: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// The arguments that `hz` and `bw` share.
#[derive(Debug, Args)]
pub struct RateArgs {
    /// The topic; it does not need to exist yet
    pub topic: TopicName,
    /// Number of latest messages to evaluate [default: 10000 for hz, 100 for bw]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    pub window: Option<u32>,
    /// Exit after this many reports (one per second)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Exit after this many seconds; exit code 124 if no message arrived
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct DelayArgs {
    /// The topic; it does not need to exist yet
    pub topic: TopicName,
    /// Print the totals since the subscribers joined, and exit
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Exit after this many reports (one per second)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Exit after this many seconds; exit code 124 if no subscriber was found
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

/// Publish to a topic.
///
/// DATA is the fields of a message in YAML or JSON, such as '{x: 1.0}' or 'x: 1.0'. Omitted fields are not set; in
/// plain types they are zero. TYPE is a built-in message (foxglove.Pose, or Imu) or one of --proto. The default is
/// the type of the topic's publishers and subscribers. --hex and --text send raw bytes. A topic with a type accepts
/// them only with --raw.
#[derive(Debug, Args)]
pub struct PubArgs {
    /// The topic
    pub topic: TopicName,
    /// [TYPE] DATA: the fields of the message, after the name of its type; if TYPE is raw, DATA is sent as text
    #[arg(num_args = 0..=2, value_name = "DATA", allow_negative_numbers = true)]
    pub words: Vec<String>,
    /// Send these bytes, in hex; blanks and colons are ignored
    #[arg(long, value_name = "BYTES", group = "payload")]
    pub hex: Option<String>,
    /// Send this text
    #[arg(long, value_name = "TEXT", group = "payload", allow_hyphen_values = true)]
    pub text: Option<String>,
    /// Read DATA from this file (- for stdin); without a type, and with --raw, its bytes are the message
    #[arg(long, value_name = "PATH", group = "payload", alias = "yaml-file")]
    pub file: Option<PathBuf>,
    /// With --hex, --text or --file: send the bytes as a message of the topic's type
    #[arg(long, requires = "payload")]
    pub raw: bool,
    #[command(flatten)]
    pub files: ProtoArgs,
    /// Last will: what subscribers receive if this process is killed; fields as in DATA, or text if messages are raw
    /// bytes
    #[arg(long, value_name = "DATA", allow_hyphen_values = true)]
    pub will: Option<String>,
    /// Messages per second
    #[arg(short, long, value_name = "HZ", default_value_t = 1.0, value_parser = rate)]
    pub rate: f64,
    /// Exit after this many messages
    #[arg(long, short = 't', visible_alias = "times", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Send one message, then exit
    #[arg(short = '1', long, conflicts_with = "count")]
    pub once: bool,
    /// With --once or --count: do not wait for a subscriber first
    #[arg(long)]
    pub no_wait: bool,
    /// Longest wait for a subscriber, or for the topic's type, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
    pub timeout: Duration,
    /// Lane [default: the topic's lane, else bulk]
    #[arg(long, value_enum)]
    pub lane: Option<LaneArg>,
    #[command(flatten)]
    pub own_node: NodeArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LaneArg {
    Bulk,
    Urgent,
}

fn rate(text: &str) -> Result<f64, String> {
    const MAX_HZ: f64 = 1e6;
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if rate > 1e-6 && rate <= MAX_HZ {
        Ok(rate)
    } else {
        Err(format!("a rate must be above 0.000001 and at most {MAX_HZ} Hz"))
    }
}
