//! The arguments of `rnet keys`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a certificate authority and the keys file of this host
    Init(InitArgs),
    /// Issue the keys file of a host; replace its certificate and rights if it has one
    ///
    /// Without an authority, creates one first, and the keys file of this host. Without an option for rights, the host
    /// may do everything. The earlier certificate of the host is revoked.
    AddHost(AddHostArgs),
    /// Print the authority's certificate, or the list of revoked certificates
    Export(ExportArgs),
    /// Revoke the certificate of a host, for example of a lost computer
    Revoke(RevokeArgs),
    /// List the hosts of the authority and the tokens of this host
    List(AuthorityArg),
    /// Check a keys file: its mode, certificate, dates, revocation and rights
    ///
    /// Exit 1 if the keys cannot be used. A certificate that expires within 30 days is reported.
    Check(CheckArgs),
    /// Add or remove a token for browsers in the keys file of this host
    ///
    /// The token is printed once; the file contains its hash only.
    Token(TokenArgs),
}

#[derive(Debug, Args)]
pub struct AuthorityArg {
    /// Folder of the certificate authority [default: ~/.config/rnet/authority]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub authority: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Name of this host [env: RNET_HOST] [default: host in robot.toml, or the system's host name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub validity: ValidityArg,
    #[command(flatten)]
    pub authority: AuthorityArg,
}

#[derive(Debug, Args)]
pub struct ValidityArg {
    /// Validity of the certificate in days
    #[arg(long, value_name = "N", default_value_t = 365)]
    pub days: u32,
    /// Further IP address at which browsers open the servers of the host
    #[arg(long = "address", value_name = "IP")]
    pub addresses: Vec<IpAddr>,
}

#[derive(Debug, Args)]
pub struct AddHostArgs {
    /// Name of the host
    pub name: String,
    #[command(flatten)]
    pub rights: RightsArgs,
    #[command(flatten)]
    pub validity: ValidityArg,
    /// The keys file to write [default: NAME.keys.pem; for this host, its own keys file]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub authority: AuthorityArg,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Rights")]
pub struct RightsArgs {
    /// The host may publish to matching topics: * matches one part of a name, ** any number of parts
    #[arg(long, value_name = "PATTERN")]
    pub publish: Vec<String>,
    /// The host may subscribe to matching topics
    #[arg(long, value_name = "PATTERN")]
    pub subscribe: Vec<String>,
    /// The host may call matching services and actions
    #[arg(long, value_name = "PATTERN")]
    pub call: Vec<String>,
    /// The host may drive matching command topics
    #[arg(long, value_name = "PATTERN")]
    pub drive: Vec<String>,
    /// The host may read matching keys of the state
    #[arg(long, value_name = "PATTERN")]
    pub read: Vec<String>,
    /// The host may write matching keys of the state
    #[arg(long, value_name = "PATTERN")]
    pub write: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The list of revoked certificates instead of the authority's certificate
    #[arg(long)]
    pub revocations: bool,
    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub authority: AuthorityArg,
}

#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Name of the host, or serial number of the certificate
    #[arg(value_name = "NAME|SERIAL")]
    pub host: String,
    #[command(flatten)]
    pub authority: AuthorityArg,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The keys file [env: RNET_KEYS] [default: /etc/rnet/keys.pem, else ~/.config/rnet/keys.pem]
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TokenArgs {
    /// Name of the token: its owner, or the program that uses it
    pub name: String,
    /// What the owner may do
    #[arg(long, value_enum, required_unless_present = "remove")]
    pub role: Option<RoleArg>,
    /// Validity in days [default: unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub days: Option<u32>,
    /// Remove the token
    #[arg(long, conflicts_with_all = ["role", "days"])]
    pub remove: bool,
    /// The keys file [env: RNET_KEYS] [default: /etc/rnet/keys.pem, else ~/.config/rnet/keys.pem]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub keys: Option<PathBuf>,
}

/// A role; each includes those before it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RoleArg {
    /// See everything, change nothing
    Look,
    /// Also publish, call services, and set parameters and state
    Operate,
    /// Also drive command topics
    Drive,
}
