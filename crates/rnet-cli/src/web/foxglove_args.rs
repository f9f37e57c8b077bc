//! The arguments of `rnet foxglove`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::shared_args::ServeArgs;

/// The library's default port; the library is missing without the feature `web`.
pub const DEFAULT_PORT: u16 = 8765;

#[derive(Debug, Args)]
pub struct FoxgloveArgs {
    /// Show this recording instead of the domain
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The port; 0 selects any free port
    #[arg(long, short, default_value_t = DEFAULT_PORT)]
    pub port: u16,
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Allow pages of this origin to connect, such as https://app.foxglove.dev; repeatable
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
    /// Forbid viewers to publish, call services or set parameters
    #[arg(long, conflicts_with = "file")]
    pub read_only: bool,
    /// Also show robot-net's internal topics
    #[arg(long, conflicts_with = "file")]
    pub all: bool,
    /// Start paused
    #[arg(long, requires = "file")]
    pub paused: bool,
}
