//! The options of all commands.

use std::path::PathBuf;

use clap::{Args, ColorChoice};
use rnet::DomainId;

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Domain [env: RNET_DOMAIN] [default: 0]
    #[arg(long, global = true, value_name = "ID")]
    pub domain: Option<DomainId>,
    /// Directory of the domains [env: RNET_DIR] [default: /dev/shm]
    #[arg(long, global = true, value_name = "PATH")]
    pub dir: Option<PathBuf>,
    /// Unix group that shares the domain [env: RNET_GROUP]
    #[arg(long, global = true, value_name = "GROUP")]
    pub group: Option<String>,
    /// Print JSON: one document, or one per line for commands that run until stopped
    #[arg(long, global = true)]
    pub json: bool,
    /// Colours: auto (on a terminal), always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub color: ColorChoice,
}
