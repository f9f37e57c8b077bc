//! The words of `rnet trace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rnet::TopicName;

use crate::shared_args::{number_of, seconds};

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The topics; they need not exist yet
    #[arg(value_name = "TOPIC", required_unless_present = "chain")]
    pub topics: Vec<TopicName>,
    /// Follow what comes of a message through these topics, from the first to the last
    #[arg(long, value_name = "TOPIC,…", value_delimiter = ',')]
    pub chain: Vec<TopicName>,
    /// How long the whole chain may take, in milliseconds; exit 1 if more than one in 100 takes longer
    #[arg(long, value_name = "MS", requires = "chain", value_parser = budget)]
    pub budget_ms: Option<f64>,
    /// Trace for so many seconds; exit 124 if no message came
    #[arg(long = "for", value_name = "S", default_value = "5", value_parser = seconds)]
    pub time: Duration,
    /// Draw the stages into FILE
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write all messages into FILE, in the form that Perfetto and Chrome open
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
}

fn budget(text: &str) -> Result<f64, String> {
    let budget = number_of("milliseconds", text)?;
    match budget > 0.0 && budget <= 1e9 {
        true => Ok(budget),
        false => Err("a budget lies above 0 and is at most 10^9 ms".to_owned()),
    }
}
