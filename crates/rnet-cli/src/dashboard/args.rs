//! The words of `rnet dashboard`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

/// Serve a web page that shows the domain and operates it
///
/// The page stands in this program. Beyond this computer (--bind) it is served with a token and TLS only; from
/// elsewhere `ssh -L 8420:127.0.0.1:8420 ROBOT` needs neither. /metrics and /healthz are served too.
#[derive(Debug, Args)]
pub struct DashboardArgs {
    /// The port; 0 takes any that is free
    #[arg(long, short, default_value_t = 8420)]
    pub port: u16,
    /// The address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// A name by which browsers reach it, beside its address: robot.local
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// What browsers have to show [env: RNET_DASHBOARD_TOKEN]; users of this computer see it in lists of processes
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    pub token: Option<String>,
    /// A file that holds the token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The certificate in PEM, with those that lead to it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Refuse all changes: state, parameters, commands, calls, recordings, launched nodes
    #[arg(long)]
    pub read_only: bool,
    /// Where recordings that are started from the page are written
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub recordings: PathBuf,
}
