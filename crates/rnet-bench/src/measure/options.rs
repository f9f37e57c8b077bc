//! Options of the benchmarks.

use std::time::Duration;

use rnet::Wait;

/// How long a benchmark measures, and how often.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// Length of a run, for each case.
    pub seconds: Option<Duration>,
    /// Number of runs.
    pub repeats: Option<u32>,
}

impl RunOptions {
    /// The defaults of a benchmark are so many seconds and runs.
    pub(super) fn or(&self, seconds: f64, repeats: u32) -> (Duration, usize) {
        let seconds = self.seconds.unwrap_or_else(|| Duration::from_secs_f64(seconds));
        (seconds, self.repeats.unwrap_or(repeats) as usize)
    }
}

/// Options of [`Benchmark::Throughput`](super::Benchmark::Throughput).
#[derive(Debug)]
pub struct ThroughputOptions {
    /// Length of a message in bytes.
    pub size: usize,
    /// Readers, each a process.
    pub readers: u16,
    /// Wait mode of the readers.
    pub wait: Wait,
    /// Whether a slow reader loses messages, which are counted.
    pub best_effort: bool,
    /// Whether only the first and last bytes of long messages are written and read.
    pub untouched: bool,
    /// Length and number of the runs.
    pub run: RunOptions,
}

/// Options of the benchmarks of messages at a fixed rate.
#[derive(Debug)]
pub struct StreamOptions {
    /// Messages per second, a case for each; empty for the default of the benchmark.
    pub rate: Vec<f64>,
    /// Length of a message in bytes.
    pub size: usize,
    /// Wait modes of the reader, a case for each; empty for the default of the benchmark.
    pub wait: Vec<Wait>,
    /// Whether the topic is urgent.
    pub urgent: bool,
    /// Length and number of the runs.
    pub run: RunOptions,
}

/// Options of [`Benchmark::Rtt`](super::Benchmark::Rtt).
#[derive(Debug)]
pub struct RttOptions {
    /// Lengths of the messages in bytes, a case for each.
    pub size: Vec<usize>,
    /// Wait mode of both sides.
    pub wait: Wait,
    /// Whether only the first and last bytes of long messages are written and read.
    pub untouched: bool,
    /// Length and number of the runs.
    pub run: RunOptions,
}

/// Options of [`Benchmark::Idle`](super::Benchmark::Idle).
#[derive(Debug)]
pub struct IdleOptions {
    /// Nodes, each a process with one publisher and one subscriber.
    pub nodes: u16,
    /// Duration of the measurement.
    pub seconds: Duration,
}

/// Options of [`Benchmark::Nodes`](super::Benchmark::Nodes).
#[derive(Debug)]
pub struct NodesOptions {
    /// Nodes of the domain, a case for each.
    pub nodes: Vec<u16>,
    /// Number of processes that share the nodes.
    pub processes: u16,
}

/// Options of [`Benchmark::Death`](super::Benchmark::Death).
#[derive(Debug)]
pub struct DeathOptions {
    /// Number of processes to kill, one after another.
    pub kills: u32,
    /// Number of processes that detect the deaths.
    pub watchers: u16,
    /// Lifetime of a process after all have matched.
    pub settle: Duration,
    /// Whether each process runs in a pid namespace of its own.
    pub apart: bool,
    /// Longest detection time, in milliseconds.
    pub limit: Option<u32>,
}
