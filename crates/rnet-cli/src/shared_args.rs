//! Arguments of several commands. `args.rs` imports the arguments of each command, and these import only this
//! file.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use rnet::NodeName;
pub use rnet_format::units::parse_bytes as bytes;
use rnet_format::units::parse_number;

/// The name of the node that a command runs as.
#[derive(Debug, Default, Args)]
pub struct NodeArg {
    /// Name of this command's node, recorded as the owner of what it sets [default: /rnet_COMMAND_PID]
    #[arg(short = 'n', long, value_name = "NAME")]
    pub node_name: Option<NodeName>,
}

/// Where a server listens, and what those who come have to show.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address to listen on; an address that other computers can reach requires TLS and a token
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Keys file of this host, for TLS and its tokens [default beyond 127.0.0.1: that of `rnet keys`, unless
    /// --token-file, --tls-cert and --tls-key are given]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub keys: Option<PathBuf>,
    /// File with a token that clients may present; it allows everything (role drive)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// TLS certificate chain in PEM format [default: that of the keys file]
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
}

/// A node of this host, or `@host/node` of another one; in its absolute form.
pub fn any_node(text: &str) -> Result<String, String> {
    let (host, name) =
        match text.strip_prefix('@').map(|rest| rest.split_at_checked(rest.find('/')?)) {
            None => ("", text),
            Some(Some((host, name))) if !host.is_empty() => (&text[..=host.len()], name),
            Some(_) => return Err("a node of another host is written @host/node".to_owned()),
        };
    NodeName::new(name).map(|name| format!("{host}{name}")).map_err(|why| why.to_string())
}

/// Parses a duration in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let number = parse_number("seconds", text)?;
    let why = |_| "must be a number of seconds from 0 to 1.8e19".to_owned();
    Duration::try_from_secs_f64(number).map_err(why)
}

/// A shorter interval would show the noise of the clock ticks by which the kernel counts CPU time.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Parses an interval between two measurements.
pub fn interval(text: &str) -> Result<Duration, String> {
    let interval = seconds(text)?;
    if interval < MIN_INTERVAL {
        return Err(format!("must be at least {} s", MIN_INTERVAL.as_secs_f64()));
    }
    Ok(interval)
}

/// A part of a recording.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct SpanArgs {
    /// Start offset in seconds from the start of the recording
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub start: Option<Duration>,
    /// End offset in seconds from the start of the recording
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub end: Option<Duration>,
}

/// How much of a message is printed.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Longest array (in elements) or hex dump (in bytes) that is printed in full
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub truncate_length: usize,
    /// Print everything in full
    #[arg(short, long)]
    pub full_length: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_may_be_of_another_host() {
        for (text, node) in [
            ("lidar", "/lidar"),
            ("/arm/lidar", "/arm/lidar"),
            ("@robot/lidar", "@robot/lidar"),
            ("@robot-1.local/arm/lidar", "@robot-1.local/arm/lidar"),
        ] {
            assert_eq!(any_node(text).as_deref(), Ok(node));
        }
        for text in ["@robot", "@/lidar", "@robot/", "@robot/9", "a@b/c", ""] {
            assert!(any_node(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_finite_and_not_below_zero() {
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["-1", "inf", "nan", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert_eq!(seconds("soon").unwrap_err(), "not a number of seconds");
    }
}
