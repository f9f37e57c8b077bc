//! The words of `rnet dashboard`.

use std::path::PathBuf;

use clap::Args;

use crate::shared_args::ServeArgs;

/// Serve a web page that shows the domain and operates it
///
/// The page stands in this program. Beyond this computer (--bind) it is served with a token and TLS only; from
/// elsewhere `ssh -L 8420:127.0.0.1:8420 ROBOT` needs neither. /metrics and /healthz are served too.
#[derive(Debug, Args)]
pub struct DashboardArgs {
    /// The port; 0 takes any that is free
    #[arg(long, short, default_value_t = 8420)]
    pub port: u16,
    #[command(flatten)]
    pub serve: ServeArgs,
    /// A name by which browsers reach it, beside its address: robot.local
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// What browsers have to show [env: RNET_DASHBOARD_TOKEN]; users of this computer see it in lists of processes
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    pub token: Option<String>,
    /// Refuse all changes: state, parameters, commands, calls, recordings, launched nodes
    #[arg(long)]
    pub read_only: bool,
    /// Where recordings that are started from the page are written: a folder that is there [default: .]
    #[arg(long, value_name = "DIR")]
    pub recordings: Option<PathBuf>,
    /// Let viewers of the Foxglove protocol in, too, on this port [without a port: 8765]
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "8765")]
    pub foxglove: Option<u16>,
    /// Let pages of this origin connect as viewers, such as https://app.foxglove.dev; may be given many times
    #[arg(long = "allow-origin", value_name = "ORIGIN", requires = "foxglove")]
    pub origins: Vec<String>,
}
