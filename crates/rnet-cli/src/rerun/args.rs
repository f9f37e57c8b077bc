//! The words of `rnet rerun`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use rnet::{NodeName, TopicName};

use crate::shared_args::{SpanArgs, seconds};

#[derive(Debug, Args)]
pub struct RerunArgs {
    /// An MCAP file
    pub file: PathBuf,
    /// The command that starts the node, with its arguments; the last option
    #[arg(long, value_name = "COMMAND", required = true, num_args = 1.., allow_hyphen_values = true)]
    pub node: Vec<String>,
    /// Name of the node in the recording [default: the name with which it joins]
    #[arg(long, value_name = "NODE")]
    pub name: Option<NodeName>,
    /// A topic that it gets; may be given several times [default: the recorded ones that it subscribes to]
    #[arg(short, long, value_name = "TOPIC")]
    pub input: Vec<TopicName>,
    /// A topic that is compared; may be given several times [default: all that it published or publishes]
    #[arg(short, long, value_name = "TOPIC")]
    pub output: Vec<TopicName>,
    /// By how much a field of numbers may differ, and all that is in it; X alone is for all fields
    #[arg(long, value_name = "FIELD=X")]
    pub tolerance: Vec<ToleranceArg>,
    /// A field that is not compared; may be given several times
    #[arg(long, value_name = "FIELD")]
    pub ignore: Vec<String>,
    /// Compare messages of the same value of this field, instead of the first with the first and so on
    #[arg(long, value_name = "FIELD")]
    pub key: Option<String>,
    /// Leave out the calls that the node made when it was recorded, and those that it answered
    #[arg(long)]
    pub without_calls: bool,
    #[command(flatten)]
    pub span: SpanArgs,
    /// How many times a second of the recording /clock is published between the inputs
    #[arg(long, value_name = "HZ", default_value_t = 100.0, value_parser = crate::play::args::hertz)]
    pub clock_rate: f64,
    /// How many seconds the node may take to join, to rest after an input, and to answer at all
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
    /// For so many seconds no endpoint of the node has changed when it has started
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds)]
    pub settle: Duration,
    /// Write the result as JUnit XML, which CI systems show, also where the node fails; what was there before goes first
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the field that differs the most, recorded and re-run, as .svg; what was there before goes first
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// A field and by how much it may differ.
#[derive(Clone, Debug)]
pub struct ToleranceArg {
    /// Empty for all.
    pub field: String,
    pub within: f64,
}

impl FromStr for ToleranceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (field, number) = text.rsplit_once('=').unwrap_or(("", text));
        let within: f64 = number.parse().map_err(|_| format!("{number:?} is no number"))?;
        match within >= 0.0 {
            true => Ok(Self { field: field.to_owned(), within }),
            false => Err("write a number that is not negative".to_owned()),
        }
    }
}
