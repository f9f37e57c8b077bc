//! The words of the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rnet::{NodeName, TopicName};

use crate::action::ActionCommand;
use crate::bag::args::BagCommand;
use crate::bench::args::BenchCommand;
use crate::blackbox::BlackBoxCommand;
use crate::command::args::CommandCommand;
use crate::demo::DemoArgs;
use crate::domain::DomainCommand;
use crate::global::Global;
use crate::graph::GraphArgs;
use crate::launch::{KeeperArgs, LaunchArgs};
use crate::link::LinkArgs;
use crate::metrics::MetricsArgs;
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
    /// List, print, measure and publish topics
    #[command(subcommand)]
    Topic(TopicCommand),
    /// List and call services
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Show who drives commands, take them, and stop them
    #[command(subcommand, name = "command")]
    Drive(CommandCommand),
    /// List actions, send goals and cancel them
    #[command(subcommand)]
    Action(ActionCommand),
    /// Show message types, and check whether a change of a type is compatible
    #[command(subcommand)]
    Type(TypeCommand),
    /// Read, write and watch shared state
    #[command(subcommand)]
    State(StateCommand),
    /// Read, set, save and load the parameters of nodes
    #[command(subcommand)]
    Param(ParamCommand),
    /// List nodes and their endpoints
    #[command(subcommand)]
    Node(NodeCommand),
    Log(LogArgs),
    /// Show who publishes to whom: as text, DOT, Mermaid or SVG
    Graph(GraphArgs),
    /// Watch nodes, topics and problems on a screen
    ///
    /// Keys: Tab and 1 to 4 choose the list, arrows a row, Enter opens its page and Esc leaves it, `s` sorts, `/`
    /// filters by name, space stops and goes on, `q` ends.
    Top(TopArgs),
    /// Show where the time of messages goes, from the send to the end of the callback
    ///
    /// While it runs, the subscribers of these topics record each of their messages, and of more than 2,000 in a second
    /// a sample. Stages: `wake`, until the thread that takes the message is awake (`busy`, if it was at work; `network`,
    /// for a message of another host); `copy`, until it is copied; `dispatch`, until the callback begins; and
    /// `callback`, until it ends. Of a receive in a loop that is the time until the next.
    Trace(TraceArgs),
    Dashboard(DashboardArgs),
    /// Say whether all is well, with an exit code: 0 if it is
    ///
    /// What is wrong now counts, and what has gone wrong within the time of --over; for services of systemd, probes of
    /// Kubernetes and scripts.
    Status(StatusArgs),
    /// Print counters, rates and latencies as text for Prometheus
    Metrics(MetricsArgs),
    /// Let Foxglove and other viewers of its protocol look at the domain, or at a recording
    ///
    /// Viewers connect to ws://127.0.0.1:8765. Pages of a browser may connect if their origin is allowed: the web
    /// application of Foxglove with --allow-origin https://app.foxglove.dev; the application for the desktop has none.
    /// Publishers do not feel it. Viewers may publish, call services and set parameters, but for --read-only.
    /// Ctrl-C ends it.
    Foxglove(FoxgloveArgs),
    /// Record topics, state and parameters into an MCAP file
    Record(RecordArgs),
    /// Keep the last seconds at all times, and write a file of them when something happens
    #[command(subcommand, name = "blackbox")]
    BlackBox(BlackBoxCommand),
    /// Start the nodes of a robot, keep them running, and stop them
    Launch(LaunchArgs),
    /// Parent process of a launched node, which `rnet launch` starts
    #[command(hide = true)]
    LaunchKeeper(KeeperArgs),
    /// Link this host with others, and show how that is going
    Link(LinkArgs),
    /// List the domains of the directory, and remove what dead nodes left in one
    #[command(subcommand)]
    Domain(DomainCommand),
    /// Find out why nodes do not communicate, or what the machine lacks for real time
    Doctor(DoctorArgs),
    /// Publish the messages of a recording again
    ///
    /// On a terminal: space stops and goes on, `s` steps, the left and right arrows go back and forth by five
    /// seconds, up and down play faster and slower, `q` ends.
    Play(PlayArgs),
    /// Run a node again on its recorded inputs, and compare what it publishes
    ///
    /// The node runs in a domain of its own and gets one message after the other, each when it rests from the one
    /// before. Ends with 0 if it publishes what was recorded, 1 if it does not, 124 if it does not join, rest or answer.
    ///
    /// The files of the domain, its state and durable keys with them, are in robot-net-bench-PID-N in --dir (/dev/shm if
    /// that is not said), and are removed at the end, also of a run that fails or is interrupted. What a killed run has
    /// left there the next `rnet rerun` or `rnet bench` removes.
    Rerun(RerunArgs),
    /// Look into recordings, and make files of them
    #[command(subcommand)]
    Bag(BagCommand),
    /// Measure robot-net on this machine
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Run a simulated robot of ten processes, kill one, and show what arrived
    ///
    /// The robot has a domain of its own unless --domain names one, whatever RNET_DOMAIN says; the first line
    /// says how to look at it.
    Demo(DemoArgs),
    /// Worker process of a benchmark or the demo, which start it
    #[command(hide = true)]
    BenchWorker,
    /// Print the script that completes commands, topics, nodes and keys in a shell
    Completions(CompletionsArgs),
    /// Write the manual pages into a directory, for packages
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
    /// The directory, which must exist
    pub dir: PathBuf,
}

/// Print the log lines of nodes
///
/// Nodes keep their last 100 lines. These are printed in the order of their time, and then, with --follow, each
/// line as it comes. The lines of a node that has ended are gone.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Go on with the lines that come
    #[arg(short, long)]
    pub follow: bool,
    /// Only those of nodes whose names match: * stands for one part of a name, ** for any number of them; @HOST/...
    /// for those of that other host
    #[arg(long, value_name = "PATTERN")]
    pub node: Option<crate::nodes::Nodes>,
    /// Only those of this level and above
    #[arg(short, long, value_enum, default_value_t = LevelArg::Debug)]
    pub level: LevelArg,
    /// Only those of the last S seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub since: Option<Duration>,
    /// End after N lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// With --follow: end after S seconds; without a line, with exit code 124
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

#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// List the nodes
    List(NodeListArgs),
    /// Show the process, the endpoints and the parameters of a node
    Info {
        /// The node; of another host @host/node
        #[arg(value_name = "NODE", value_parser = any_node)]
        any_node: String,
        /// Show the internal topics of robot-net too, below /_rnet/
        #[arg(short, long)]
        all: bool,
    },
    /// Kill a node with SIGKILL, as a crash would; rnet launch does what it does after one
    Kill {
        /// The node
        node: NodeName,
    },
    /// Stop a node with SIGINT, then SIGTERM; rnet launch leaves it stopped
    Stop {
        /// The node
        node: NodeName,
    },
    /// Stop a launched node, and start it again
    Restart {
        /// The node
        node: NodeName,
    },
    /// Print what a launched node has written to stdout and stderr
    Logs(NodeLogsArgs),
}

#[derive(Debug, Args)]
pub struct NodeLogsArgs {
    /// The node
    pub node: NodeName,
    /// Print the last lines only
    #[arg(short = 'l', long, value_name = "N")]
    pub lines: Option<usize>,
    /// Go on with what it writes, until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
}

#[derive(Debug, Args)]
pub struct NodeListArgs {
    /// Show host, process, uptime, language and version
    #[arg(short, long)]
    pub verbose: bool,
    /// List only the nodes of this host
    #[arg(long, value_name = "NAME", conflicts_with = "watch")]
    pub host: Option<String>,
    /// Keep running and print each node that joins, leaves or dies
    #[arg(short, long)]
    pub watch: bool,
    /// With --watch: end after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds, requires = "watch")]
    pub timeout: Option<Duration>,
}

/// Find out why nodes do not communicate, or what the machine lacks for real time.
///
/// With A and B, checks why node A does not receive from node B. Without them, checks the whole domain.
/// With --realtime, checks the machine. Each problem is printed with a remedy. Exit 0 without problems,
/// 1 with at least one.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The node that should receive; of another host @host/node
    #[arg(value_name = "A", requires = "from", value_parser = any_node)]
    pub to: Option<String>,
    /// The node that should publish; one of the two is of this host
    #[arg(value_name = "B", value_parser = any_node)]
    pub from: Option<String>,
    /// Check this topic only
    #[arg(long)]
    pub topic: Option<TopicName>,
    /// Beside this machine, check only the way to this host, and what its nodes publish and subscribe to
    #[arg(long, conflicts_with_all = ["to", "from"])]
    pub host: Option<String>,
    /// Check what this machine and this user lack for low latency and low jitter. Exit 1 if an
    /// essential setting is wrong, 0 if there is advice only
    #[arg(long, conflicts_with_all = ["to", "from", "topic", "host"])]
    pub realtime: bool,
}
