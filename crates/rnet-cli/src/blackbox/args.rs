//! The words of `rnet blackbox`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use rnet_record::blackbox::Trigger;

use crate::shared_args::{bytes, seconds};

/// Where files go, if nobody says where.
pub const DEFAULT_FOLDER: &str = "blackbox";

#[derive(Debug, Subcommand)]
pub enum BlackBoxCommand {
    /// Keep the last seconds in memory, and write a file of them when something happens
    ///
    /// Publishers do not feel it: the box is an observer, as `rnet record` is. It is the node /blackbox, and a domain has
    /// one. Triggers are `/TOPIC.FIELD < NUMBER` (or <= > >= == !=), `death [NODE]`, `loss [TOPIC]`, `deadline [TOPIC]`,
    /// `fallback [COMMAND]` and `log LEVEL [TEXT]`; triggers that overlap make one file. Ctrl-C ends it.
    Run(RunArgs),
    /// Have the running box write a file
    Trigger {
        /// Why, in words
        #[arg(value_name = "WHY")]
        why: String,
    },
    /// Show how the running box is: its memory, what has fired, and its last file
    Status,
    /// List the files of a folder, and what fired for each
    List {
        /// The folder [default: that of the running box, else of launches, else blackbox]
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Write what a box that was killed has left; the next box does the same
    Recover {
        /// The folder of its files [default: that of launches, else blackbox]
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Write a file when this happens; may be given many times
    #[arg(short, long = "trigger", value_name = "TRIGGER")]
    pub triggers: Vec<Trigger>,
    /// Seconds that a file has before its first trigger
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub before: Duration,
    /// Seconds that it has after its last trigger
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub after: Duration,
    /// Memory that the box takes at most, the ring included: at least 64M [default: 256M, or a quarter of the file system]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Where the files go
    #[arg(short, long, value_name = "FOLDER", default_value = DEFAULT_FOLDER)]
    pub output: PathBuf,
    /// Remove the oldest files, so that all have no more bytes than this
    #[arg(long, value_name = "BYTES", default_value = "200M", value_parser = bytes)]
    pub max_disk: u64,
    /// Not these topics, or those like this pattern
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
}
