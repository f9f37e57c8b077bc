//! The arguments of the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rnet::TopicName;
use rnet_bench::measure::Benchmark;

use crate::action::ActionCommand;
use crate::bag::args::BagCommand;
use crate::blackbox::BlackBoxCommand;
use crate::command::args::CommandCommand;
use crate::demo::DemoArgs;
use crate::domain::DomainCommand;
use crate::global::Global;
use crate::graph::GraphArgs;
use crate::keys::args::KeysCommand;
use crate::launch::{KeeperArgs, LaunchArgs};
use crate::link::LinkArgs;
use crate::metrics::MetricsArgs;
use crate::node::args::NodeCommand;
use crate::param::args::ParamCommand;
use crate::play::args::PlayArgs;
use crate::record::RecordArgs;
use crate::rerun::RerunArgs;
use crate::service::ServiceCommand;
use crate::shared_args::{any_node, seconds};
use crate::state::args::StateCommand;
use crate::status::StatusArgs;
use crate::top::TopArgs;
use crate::topic::args::TopicCommand;
use crate::trace::TraceArgs;
use crate::types::args::TypeCommand;
use crate::web::{DashboardArgs, FoxgloveArgs};

/// Inspect and operate a robot-net domain.
#[derive(Debug, Parser)]
#[command(name = "rnet", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List, print, measure and publish to topics
    #[command(subcommand)]
    Topic(TopicCommand),
    /// List and call services
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Show, take and release control of command topics
    #[command(subcommand, name = "command")]
    Drive(CommandCommand),
    /// List actions, send goals and cancel them
    #[command(subcommand)]
    Action(ActionCommand),
    /// Show message types and check schema compatibility
    #[command(subcommand)]
    Type(TypeCommand),
    /// Read, write and watch shared state
    #[command(subcommand)]
    State(StateCommand),
    /// Read, set, save and load node parameters
    #[command(subcommand)]
    Param(ParamCommand),
    /// List nodes and their endpoints
    #[command(subcommand)]
    Node(NodeCommand),
    Log(LogArgs),
    /// Show the graph of nodes and topics as text, DOT or Mermaid
    Graph(GraphArgs),
    /// Monitor nodes, topics and problems live in the terminal
    ///
    /// Keys: Tab and 1 to 4 select the list, the arrow keys a row, Enter opens its details and Esc closes them, `s`
    /// sorts, `/` filters by name, space pauses and resumes, `q` quits.
    Top(TopArgs),
    /// Trace message latency by stage, from send to the end of the callback
    ///
    /// While the command runs, the subscribers of these topics record each message, or a sample above 2,000 messages
    /// per second. Stages: `wake`, until the receiving thread is awake (`busy` if it was working; `network` for a
    /// message from another host); `copy`, until the message is copied; `dispatch`, until the callback starts; and
    /// `callback`, until the callback returns. For a receive loop, `callback` is the time until the next receive.
    Trace(TraceArgs),
    Dashboard(DashboardArgs),
    /// Check the health of the domain; exit 0 if healthy
    ///
    /// Reports current problems and those of the last --over seconds. For systemd, Kubernetes probes and scripts.
    Status(StatusArgs),
    /// Export Prometheus metrics: counters, rates and latencies
    Metrics(MetricsArgs),
    /// Serve the domain or a recording to Foxglove and compatible viewers
    ///
    /// Viewers connect to ws://127.0.0.1:8765. Browser pages may connect only if their origin is allowed: for the
    /// Foxglove web app, pass --allow-origin https://app.foxglove.dev; the desktop app sends no origin. The server
    /// does not slow publishers. Viewers may publish, call services and set parameters unless --read-only is given or
    /// the role of their token forbids it. Ctrl-C stops the server.
    Foxglove(FoxgloveArgs),
    /// Record topics, state and parameters to an MCAP file
    Record(RecordArgs),
    /// Keep the last seconds in memory and save them to a file on a trigger
    #[command(subcommand, name = "blackbox")]
    BlackBox(BlackBoxCommand),
    /// Launch, supervise and stop the nodes of a robot
    Launch(LaunchArgs),
    /// Parent process of a launched node; started by `rnet launch`
    #[command(hide = true)]
    LaunchKeeper(KeeperArgs),
    /// Link this host with other hosts and show the link status
    Link(LinkArgs),
    /// Issue, check and revoke the keys of hosts, and tokens for browsers
    #[command(subcommand)]
    Keys(KeysCommand),
    /// List domains and remove what dead nodes left behind
    #[command(subcommand)]
    Domain(DomainCommand),
    /// Diagnose why nodes do not communicate, or check the machine for real-time use
    Doctor(DoctorArgs),
    /// Play a recording: publish its messages again
    ///
    /// Keys in a terminal: space pauses and resumes, `s` steps one message, the left and right arrows seek by five
    /// seconds, up and down play faster and slower, `l` toggles looping, `q` quits.
    Play(PlayArgs),
    /// Rerun a node on its recorded inputs and compare its outputs
    ///
    /// The node runs in its own domain and receives the next message once it is idle. Exit 0 if it publishes what was
    /// recorded, 1 if it does not, 124 if it does not join, become idle or answer in time.
    ///
    /// The domain's files, including its state and durable keys, are in robot-net-bench-PID-N in --dir (default
    /// /dev/shm). They are removed on exit, even if the run fails or is interrupted. A killed run's files are removed
    /// by the next `rnet rerun` or `rnet bench`.
    Rerun(RerunArgs),
    /// Inspect, convert, filter, merge, split and repair recordings
    #[command(subcommand)]
    Bag(BagCommand),
    /// Benchmark robot-net on this machine
    #[command(subcommand)]
    Bench(Benchmark),
    /// Run a simulated robot of ten processes, kill one, and print delivery counts
    ///
    /// The robot runs in its own domain unless --domain is given; RNET_DOMAIN is ignored. The first line shows how to
    /// inspect it.
    Demo(DemoArgs),
    /// Worker process of a benchmark or the demo; started by them
    #[command(hide = true)]
    BenchWorker,
    /// Print the shell completion script for commands, topics, nodes and keys
    Completions(CompletionsArgs),
    /// Write the man pages to a directory, for packages
    #[command(hide = true)]
    Man(ManArgs),
    /// Print the version of this program and of the shared-memory layout
    Version,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// A shell that completes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    pub fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
        }
    }
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// The directory; it must exist
    pub dir: PathBuf,
}

/// Print the logs of nodes
///
/// Each node keeps its last 100 log lines. They are printed in time order and then, with --follow, each new line as
/// it arrives. The lines of a node that has exited are not available.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Keep printing new lines
    #[arg(short, long)]
    pub follow: bool,
    /// Only lines of nodes whose names match: * matches one part of a name, ** any number of parts; @HOST/... matches
    /// nodes of that other host
    #[arg(long, value_name = "PATTERN")]
    pub node: Option<rnet_monitor::NodeFilter>,
    /// Only lines of this level and above
    #[arg(short, long, value_enum, default_value_t = LevelArg::Debug)]
    pub level: LevelArg,
    /// Only lines of the last S seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub since: Option<Duration>,
    /// Exit after N lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// With --follow: exit after S seconds; exit code 124 if no line was printed
    #[arg(long, value_name = "S", value_parser = seconds, requires = "follow")]
    pub timeout: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelArg {
    Debug,
    Info,
    #[value(alias = "warn")]
    Warning,
    Error,
    Fatal,
}

/// Diagnose why nodes do not communicate, or check the machine for real-time use.
///
/// With A and B, checks why node A does not receive from node B. Without them, checks the whole domain. With
/// --realtime, checks the machine. Each problem is printed with a remedy. Exit 0 if no problem is found, 1 otherwise.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The node that should receive; for a node of another host, @host/node
    #[arg(value_name = "A", requires = "from", value_parser = any_node)]
    pub to: Option<String>,
    /// The node that should publish; one of the two nodes must run on this host
    #[arg(value_name = "B", value_parser = any_node)]
    pub from: Option<String>,
    /// Check only this topic
    #[arg(long)]
    pub topic: Option<TopicName>,
    /// Check this machine, the connection to this host, and what the nodes there publish and subscribe to
    #[arg(long, conflicts_with_all = ["to", "from"])]
    pub host: Option<String>,
    /// Check the settings of this machine and user for low latency and low jitter. Exit 1 if an essential setting is
    /// wrong, 0 if only advice is printed
    #[arg(long, conflicts_with_all = ["to", "from", "topic", "host"])]
    pub realtime: bool,
}
