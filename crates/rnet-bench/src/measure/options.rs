//! The benchmarks and their options, which are the arguments of `rnet bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::Wait;
use rnet::limits::{
    MAX_MESSAGE_LEN_BYTES, MAX_NODES_PER_DOMAIN, MAX_READERS_PER_CHANNEL, RESERVED_TOOL_NODES,
};
use rnet_format::units::{parse_bytes, parse_number};

use super::MIN_LEN_BYTES;

/// Maximum rate.
const MAX_RATE_HZ: f64 = 1e6;
/// Minimum and maximum duration of a run, in seconds.
const RUN_SECONDS: std::ops::RangeInclusive<f64> = 0.05..=3600.0;
/// Maximum number of runs per command.
const MAX_REPEATS: i64 = 1000;
/// Maximum number of idle nodes, each a process.
const MAX_IDLE_NODES: i64 = 200;
/// Maximum number of nodes of a large domain: the slots that are not reserved for tools, minus one for the
/// joining node.
const MAX_NODES: i64 = (MAX_NODES_PER_DOMAIN - RESERVED_TOOL_NODES - 1) as i64;
/// Maximum number of processes that run them.
const MAX_PROCESSES: i64 = 1000;
/// Maximum number of processes that one bench kills.
const MAX_KILLS: i64 = 100_000;
/// Maximum number of processes that detect the deaths.
const MAX_WATCHERS: i64 = 50;
/// Maximum lifetime of a process before it is killed, in seconds.
const MAX_SETTLE_SECONDS: f64 = 60.0;

/// A benchmark and its options.
#[derive(Debug, Subcommand)]
pub enum Benchmark {
    /// Measure the throughput of one topic
    ///
    /// By default 3 runs of 1 s.
    Throughput(ThroughputOptions),
    /// Measure the latency of messages sent at a fixed rate
    ///
    /// By default 10000 messages per second, adaptive readers, 3 runs of 2 s.
    Latency(StreamOptions),
    /// Compare wait modes, on idle cores and next to busy loops
    ///
    /// By default 100, 1000 and 10000 messages per second, adaptive and block readers, 5 runs of 3 s. Each wait mode is
    /// compared with the last one.
    Wait(StreamOptions),
    /// Measure the overhead of rnet trace on a topic
    ///
    /// By default 1000 messages per second, adaptive readers, 5 runs of 3 s, with and without tracing. Above 2000
    /// messages per second, only a sample is traced.
    Trace(StreamOptions),
    /// Measure the round-trip time by message size
    ///
    /// By default 3 runs of 0.5 s for each size.
    Rtt(RttOptions),
    /// Run a complete robot: late and lost messages, CPU, memory
    ///
    /// By default 3 runs of 3 s.
    Topology(TopologyOptions),
    /// Measure the cost of idle nodes
    Idle(IdleOptions),
    /// Measure join, match and death detection times with many nodes
    Nodes(NodesOptions),
    /// Measure how fast the death of a process is detected
    Death(DeathOptions),
}

/// How long it is measured, and how often.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// Length of a run in seconds, for each case
    #[arg(long, value_name = "S", value_parser = run_seconds)]
    pub seconds: Option<Duration>,
    /// Number of runs; results are the median with minimum and maximum
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_REPEATS))]
    pub repeats: Option<u32>,
}

impl RunOptions {
    /// The given values, or these defaults of a benchmark.
    pub(super) fn or(&self, seconds: f64, repeats: u32) -> (Duration, usize) {
        let seconds = self.seconds.unwrap_or_else(|| Duration::from_secs_f64(seconds));
        (seconds, self.repeats.unwrap_or(repeats) as usize)
    }
}

/// Options of a measurement of the throughput of a topic.
#[derive(Debug, Args)]
pub struct ThroughputOptions {
    /// Length of a message in bytes; accepts binary units: 64K, 1M, 1G
    #[arg(long, value_name = "BYTES", default_value = "22", value_parser = size)]
    pub size: usize,
    /// Readers, each a process
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=MAX_READERS_PER_CHANNEL as i64))]
    pub readers: u16,
    /// Wait mode of the readers: spin, adaptive or block
    #[arg(long, default_value = "adaptive", value_parser = wait)]
    pub wait: Wait,
    /// Use best-effort delivery: a slow reader loses messages, and the losses are counted
    #[arg(long)]
    pub best_effort: bool,
    /// Write and read only the first and last bytes of messages above 4096 bytes
    #[arg(long)]
    pub untouched: bool,
    /// Length and number of the runs.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of a measurement of a topic with messages at a fixed rate.
#[derive(Debug, Args)]
pub struct StreamOptions {
    /// Messages per second, separated by commas; above 20000 the sender spins between them
    #[arg(long, visible_alias = "rates", value_name = "HZ", value_delimiter = ',', value_parser = rate)]
    pub rate: Vec<f64>,
    /// Length of a message in bytes; accepts binary units: 64K, 1M, 1G
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = size)]
    pub size: usize,
    /// Wait modes of the reader, separated by commas: spin, adaptive or block
    #[arg(long, value_delimiter = ',', value_parser = wait)]
    pub wait: Vec<Wait>,
    /// Use the urgent lane
    #[arg(long)]
    pub urgent: bool,
    /// Length and number of the runs.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of a measurement of round trips.
#[derive(Debug, Args)]
pub struct RttOptions {
    /// Lengths of the messages in bytes, separated by commas; accepts binary units: 64K, 1M, 1G
    #[arg(long, visible_alias = "sizes", value_name = "BYTES", value_delimiter = ',',
          default_value = "64,4K,64K,1M", value_parser = size)]
    pub size: Vec<usize>,
    /// Wait mode of both sides: spin, adaptive or block
    #[arg(long, default_value = "adaptive", value_parser = wait)]
    pub wait: Wait,
    /// Write and read only the first and last bytes of messages above 4096 bytes
    #[arg(long)]
    pub untouched: bool,
    /// Length and number of the runs.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of a measurement of a complete robot.
#[derive(Debug, Args)]
pub struct TopologyOptions {
    /// File that describes the robot (nodes, publishers, subscribers) in TOML [default: a walking robot of ten nodes]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print the file of the built-in robot as a template, and exit
    #[arg(long, conflicts_with = "file")]
    pub example: bool,
    /// Length and number of the runs.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of a measurement of idle nodes.
#[derive(Debug, Args)]
pub struct IdleOptions {
    /// Nodes, each a process with one publisher and one subscriber
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u16).range(1..=MAX_IDLE_NODES))]
    pub nodes: u16,
    /// Duration of the measurement in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = run_seconds)]
    pub seconds: Duration,
}

/// Options of a measurement of domains with many nodes.
#[derive(Debug, Args)]
pub struct NodesOptions {
    /// Nodes of the domain, each with one publisher and one subscriber; several numbers, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "10,100",
          value_parser = clap::value_parser!(u16).range(2..=MAX_NODES))]
    pub nodes: Vec<u16>,
    /// Number of processes that share the nodes
    #[arg(long, value_name = "M", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(2..=MAX_PROCESSES))]
    pub processes: u16,
}

/// Options of a measurement of the detection of deaths.
#[derive(Debug, Args)]
pub struct DeathOptions {
    /// Number of processes to kill, one after another
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u32).range(1..=MAX_KILLS))]
    pub kills: u32,
    /// Number of processes that detect the deaths
    #[arg(long, value_name = "M", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=MAX_WATCHERS))]
    pub watchers: u16,
    /// Lifetime of a process after all have matched, in seconds; 0 kills it right after its start
    #[arg(long, value_name = "S", default_value = "0.05", value_parser = settle_seconds)]
    pub settle: Duration,
    /// Run each process in a pid namespace of its own, as in a container; needs root or user namespaces
    #[arg(long)]
    pub apart: bool,
    /// Fail if a death is detected later than this after the kill, in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
}

fn wait(text: &str) -> Result<Wait, String> {
    serde_json::from_value(text.into()).map_err(|_| "must be spin, adaptive or block".to_owned())
}

fn size(text: &str) -> Result<usize, String> {
    let len = usize::try_from(parse_bytes(text)?).unwrap_or(usize::MAX);
    if (MIN_LEN_BYTES..=MAX_MESSAGE_LEN_BYTES).contains(&len) {
        return Ok(len);
    }
    Err(format!(
        "a message must have {MIN_LEN_BYTES} (its number, twice) to {MAX_MESSAGE_LEN_BYTES} bytes"
    ))
}

fn rate(text: &str) -> Result<f64, String> {
    within("rate in Hz", 0.1..=MAX_RATE_HZ, text)
}

fn run_seconds(text: &str) -> Result<Duration, String> {
    within("time in seconds", RUN_SECONDS, text).map(Duration::from_secs_f64)
}

fn settle_seconds(text: &str) -> Result<Duration, String> {
    within("time in seconds", 0.0..=MAX_SETTLE_SECONDS, text).map(Duration::from_secs_f64)
}

fn within(what: &str, range: std::ops::RangeInclusive<f64>, text: &str) -> Result<f64, String> {
    let number = parse_number(what, text)?;
    let (least, most) = (range.start(), range.end());
    match range.contains(&number) {
        true => Ok(number),
        false => Err(format!("the {what} must be from {least} to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_limits() {
        for (text, len) in [("16", 16), ("4K", 4096), ("1M", 1 << 20), ("1G", 1 << 30)] {
            assert_eq!(size(text), Ok(len), "{text}");
        }
        for text in
            ["", "0", "15", "K", "1T", "1MB", "-5", "2G", "99999999999999999999", "9999999G"]
        {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_and_times_have_limits() {
        assert_eq!(rate("1e3"), Ok(1000.0));
        for text in ["0", "-1", "nan", "inf", "1e7", "x"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert_eq!(run_seconds("0.2"), Ok(Duration::from_millis(200)));
        for text in ["0", "-1", "nan", "1e9", "x"] {
            assert!(run_seconds(text).is_err(), "{text}");
        }
    }
}
