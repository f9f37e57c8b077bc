//! The words of `rnet metrics`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use rnet_monitor::MetricsFormat;

use crate::shared_args::interval;

#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// The format of the text
    #[arg(long, short, value_enum, default_value = "openmetrics")]
    pub format: Format,
    /// Seconds over which the use of processors, losses and missed deadlines are taken
    #[arg(long = "over", value_name = "S", default_value = "1", value_parser = interval)]
    pub over: Duration,
    /// Show the topics and nodes of robot-net itself, too
    #[arg(long)]
    pub all: bool,
}

/// A format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// OpenMetrics 1.0
    #[value(name = "openmetrics")]
    OpenMetrics,
    /// The text format of Prometheus, for the textfile collector of its node exporter
    Prometheus,
}

impl From<Format> for MetricsFormat {
    fn from(format: Format) -> MetricsFormat {
        match format {
            Format::OpenMetrics => MetricsFormat::OpenMetrics,
            Format::Prometheus => MetricsFormat::Prometheus,
        }
    }
}
