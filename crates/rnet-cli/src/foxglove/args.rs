//! The words of `rnet foxglove`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Debug, Args)]
pub struct FoxgloveArgs {
    /// Show this recording instead of the domain
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The port; 0 is any that is free
    #[arg(long, short, default_value_t = rnet_foxglove::DEFAULT_PORT)]
    pub port: u16,
    /// The address on which it listens; one that other computers reach needs a token and TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub address: IpAddr,
    /// Let pages of this origin connect, such as https://app.foxglove.dev; may be given many times
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,
    /// A file with the token that viewers have to show: ws://HOST:PORT/?token=TOKEN
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// The certificate for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
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
