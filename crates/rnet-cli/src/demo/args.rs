//! The words of `rnet demo`.

use std::time::Duration;

use clap::Args;

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Length of the run, in seconds
    #[arg(long, value_name = "S", default_value = "20", value_parser = seconds)]
    pub seconds: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let given = text.parse::<f64>().ok().filter(|seconds| (2.0..=3600.0).contains(seconds));
    given.map(Duration::from_secs_f64).ok_or_else(|| "it must be 2 to 3600 seconds".to_owned())
}
