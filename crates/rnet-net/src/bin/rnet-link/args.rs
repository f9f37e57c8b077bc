//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use rnet::DomainId;
use rnet_net::config::Overrides;

/// Link between the hosts of a robot-net domain. `rnet link` starts it and shows its status.
#[derive(Debug, Parser)]
#[command(name = "rnet-link", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Link this host with others until Ctrl-C or SIGTERM
    Run {
        /// As `start` does: detached from the terminal, and only while nodes run
        #[arg(long, hide = true)]
        background: bool,
    },
    /// Start the link in the background, unless the network is off or a link and a standby already run
    Start,
    /// Print the settings as JSON
    Config,
    /// Discover other links by multicast for two seconds, and print as JSON which hosts asked and which answered
    Discover,
}

/// Options of all commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options")]
pub struct Options {
    /// Domain [env: RNET_DOMAIN] [default: 0]
    #[arg(long, global = true, value_name = "ID")]
    pub domain: Option<DomainId>,
    /// Directory of the domains [env: RNET_DIR] [default: /dev/shm]
    #[arg(long, global = true, value_name = "PATH")]
    pub dir: Option<PathBuf>,
    /// Unix group that shares the domain [env: RNET_GROUP]
    #[arg(long, global = true, value_name = "GROUP")]
    pub group: Option<String>,
    /// Settings file [env: RNET_CONFIG] [default: robot.toml, if it exists]
    #[arg(long, global = true, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// off, lan or peers [env: RNET_NETWORK] [default: off]
    #[arg(long, global = true, value_name = "MODE")]
    pub network: Option<String>,
    /// Name of this host [env: RNET_HOST] [default: the system's host name]
    #[arg(long, global = true, value_name = "NAME")]
    pub host: Option<String>,
    /// Endpoints to listen on, such as tcp/0.0.0.0:7450, separated by commas [env: RNET_LISTEN]
    #[arg(long, global = true, value_name = "ENDPOINTS")]
    pub listen: Option<String>,
    /// Endpoints to connect to, such as tcp/10.0.0.2:7450, separated by commas [env: RNET_CONNECT]
    #[arg(long, global = true, value_name = "ENDPOINTS")]
    pub connect: Option<String>,
    /// Network interfaces for lan mode, separated by commas [env: RNET_INTERFACES] [default: all but the loopback]
    #[arg(long, global = true, value_name = "NAMES")]
    pub interfaces: Option<String>,
    /// Silence in ms after which another host counts as lost [env: RNET_LOST_AFTER_MS] [default: 750]
    #[arg(long, global = true, value_name = "MS")]
    pub lost_after_ms: Option<String>,
}

impl Options {
    /// The options that belong to the configuration.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            network: self.network.clone(),
            host: self.host.clone(),
            listen: self.listen.clone(),
            connect: self.connect.clone(),
            interfaces: self.interfaces.clone(),
            lost_after_ms: self.lost_after_ms.clone(),
        }
    }

    /// The arguments that pass the same options to another process.
    pub fn to_args(&self) -> Vec<OsString> {
        let text = |value: &Option<String>| value.clone().map(OsString::from);
        let path = |value: &Option<PathBuf>| value.clone().map(OsString::from);
        let all = [
            ("--domain", self.domain.as_ref().map(|id| id.as_str().into())),
            ("--dir", path(&self.dir)),
            ("--group", text(&self.group)),
            ("--config", path(&self.config)),
            ("--network", text(&self.network)),
            ("--host", text(&self.host)),
            ("--listen", text(&self.listen)),
            ("--connect", text(&self.connect)),
            ("--interfaces", text(&self.interfaces)),
            ("--lost-after-ms", text(&self.lost_after_ms)),
        ];
        all.into_iter().filter_map(|(name, value)| Some([name.into(), value?])).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn to_args_parses_to_the_same_options() {
        Cli::command().debug_assert();
        let words = "rnet-link start --domain lab --dir /tmp --group g --config a.toml --network lan --host h \
                     --listen tcp/a:1 --connect tcp/b:1 --interfaces eth0,wlan0 --lost-after-ms 900";
        let first = Cli::parse_from(words.split_whitespace());
        let again: Vec<OsString> =
            ["rnet-link".into(), "run".into()].into_iter().chain(first.options.to_args()).collect();
        let second = Cli::parse_from(again);
        assert_eq!(format!("{:?}", first.options), format!("{:?}", second.options));
        assert_eq!(first.options.to_args().len(), 20);
    }
}
