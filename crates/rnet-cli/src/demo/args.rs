//! The words of `rnet demo`.

use std::time::Duration;

use clap::{Args, ValueEnum};

/// Run a simulated robot of ten processes, kill one, and show what arrived.
///
/// The robot runs in a domain of its own, or in --domain, in which no node may live. Exit 1 if a message was
/// lost that was not counted, if messages came out of order, if the motors did not hold the arm when the
/// controller was killed, or if the loop did not close again.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Length of the run, in seconds: 2 to 3600
    #[arg(long, value_name = "S", default_value = "20", value_parser = seconds)]
    pub seconds: Duration,
    /// What moves the arm: MuJoCo where robot-net's wheel is installed with its extra `demo`, or the embedded model
    #[arg(long, value_enum, default_value_t = Model::Auto)]
    pub model: Model,
}

/// What moves the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Model {
    Auto,
    Embedded,
    Mujoco,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let given = text.parse::<f64>().ok().filter(|seconds| (2.0..=3600.0).contains(seconds));
    given.map(Duration::from_secs_f64).ok_or_else(|| "it must be 2 to 3600 seconds".to_owned())
}
