//! The arguments of `rnet dashboard`.

use std::path::PathBuf;

use clap::Args;

use crate::shared_args::ServeArgs;

/// Serve a web dashboard to inspect and control the domain
///
/// The page is built into this program. To reach it from other computers (--bind), TLS and a token are required, both
/// from `rnet keys`; an SSH tunnel (`ssh -L 8420:127.0.0.1:8420 ROBOT`) needs neither. Also serves /metrics and
/// /healthz.
#[derive(Debug, Args)]
pub struct DashboardArgs {
    /// The port; 0 selects any free port
    #[arg(long, short, default_value_t = 8420)]
    pub port: u16,
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Additional host name by which browsers reach the page, such as robot.local
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Token that browsers may present [env: RNET_DASHBOARD_TOKEN]; other users of this computer can see it in
    /// process lists
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    pub token: Option<String>,
    /// Refuse all changes: state, parameters, commands, calls, recordings, launched nodes
    #[arg(long)]
    pub read_only: bool,
    /// Directory for recordings started from the page; it must exist [default: .]
    #[arg(long, value_name = "DIR")]
    pub recordings: Option<PathBuf>,
    /// Also serve viewers of the Foxglove protocol on this port [without a port: 8765]
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "8765")]
    pub foxglove: Option<u16>,
    /// Allow pages of this origin to connect as viewers, such as https://app.foxglove.dev; repeatable
    #[arg(long = "allow-origin", value_name = "ORIGIN", requires = "foxglove")]
    pub origins: Vec<String>,
}
