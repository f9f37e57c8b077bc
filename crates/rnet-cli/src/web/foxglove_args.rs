//! The words of `rnet foxglove`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::shared_args::ServeArgs;

/// That of the library, which is not there without the feature `web`.
pub const DEFAULT_PORT: u16 = 8765;

#[derive(Debug, Args)]
pub struct FoxgloveArgs {
    /// Show this recording instead of the domain
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The port; 0 is any that is free
    #[arg(long, short, default_value_t = DEFAULT_PORT)]
    pub port: u16,
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Let pages of this origin connect, such as https://app.foxglove.dev; may be given many times
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
    /// Viewers may neither publish nor call services nor set parameters
    #[arg(long, conflicts_with = "file")]
    pub read_only: bool,
    /// Show the topics of robot-net itself, too
    #[arg(long, conflicts_with = "file")]
    pub all: bool,
    /// Begin with the recording stopped
    #[arg(long, requires = "file")]
    pub paused: bool,
}
