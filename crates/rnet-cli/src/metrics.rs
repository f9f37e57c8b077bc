//! `rnet metrics`: the metrics of a domain as text for Prometheus.

use std::time::Duration;

use clap::{Args, ValueEnum};
use rnet_monitor::{DomainSnapshot, Figures, MetricsFormat, metrics, problems};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::interval;
use crate::signal;

#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// Output format
    #[arg(long, short, value_enum, default_value = "openmetrics")]
    pub format: Format,
    /// Seconds over which CPU use, losses and missed deadlines are measured
    #[arg(long = "over", value_name = "S", default_value = "1", value_parser = interval)]
    pub over: Duration,
    /// Also export robot-net's internal topics and nodes
    #[arg(long)]
    pub all: bool,
}

/// A format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// OpenMetrics 1.0
    #[value(name = "openmetrics")]
    OpenMetrics,
    /// Prometheus text format, for the textfile collector of the node exporter
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

pub fn run(context: &mut Context, args: &MetricsArgs) -> Outcome {
    if context.json() {
        let why = "rnet metrics prints only Prometheus text; for JSON, use rnet top --once --json";
        return Err(Failure::Usage(why.to_owned()));
    }
    let mut domain = context.domain()?;
    let before = DomainSnapshot::new(&mut domain)?;
    signal::sleep(args.over)?;
    let now = DomainSnapshot::new(&mut domain)?;
    let figures = Figures::new(&before, &now);
    let found = problems(&before, &now, &figures);
    let figures = if args.all { figures } else { figures.without_internal() };
    let text = metrics(args.format.into(), domain.id(), &now, &figures, &found);
    context.line(format_args!("{}", text.trim_end()))
}
