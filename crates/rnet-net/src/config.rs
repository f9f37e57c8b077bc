//! The configuration of the link: its network, what may cross, and in what shape.
//!
//! A setting comes from a flag, else from the environment (`RNET_NETWORK`, `RNET_LISTEN`, `RNET_CONNECT`,
//! `RNET_INTERFACES`, `RNET_LOST_AFTER_MS`, `RNET_INSECURE`, `RNET_HOST`), else from `robot.toml`, else it
//! has its default. The file is the one in `--config`, else in `RNET_CONFIG`, else an optional `robot.toml`
//! in the working directory. Unknown keys are errors: a misspelled rule would let topics cross that it was
//! meant to block.

mod endpoint;
mod merge;
mod parse;
mod topic_rules;

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rnet::NamePattern;

pub use endpoint::Endpoint;
pub use merge::Overrides;
pub use rnet_config::{ConfigError, SourceLocation};
pub use topic_rules::Rule;

/// The default of the longest silence of a host: including the detection time, a host that is cut off is
/// lost within a second.
pub const DEFAULT_LOST_AFTER: Duration = Duration::from_millis(750);

/// The most bytes that are kept for hosts that are away.
const MAX_OFFLINE_LEN_BYTES: u64 = 256 << 20;
const OFFLINE_TIME: Duration = Duration::from_secs(600);

/// The configuration of the link.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether the link uses a network, and how its hosts find each other.
    pub mode: Mode,
    /// The source of the mode.
    pub mode_source: SettingSource,
    /// The name of this host, as others see it: 1 to 64 letters, digits, `-`, `.` and `_`.
    pub host: String,
    /// The endpoints on which the link listens.
    pub listen: Vec<WithSource<Endpoint>>,
    /// The endpoints of other hosts' links.
    pub connect: Vec<Endpoint>,
    /// Network interfaces of mode `lan`; empty for all but the loopback.
    pub interfaces: Vec<WithSource<String>>,
    /// The longest silence of another host before it counts as lost.
    pub lost_after: Duration,
    /// Whether the link may reach beyond this host, although it is neither encrypted nor authenticated.
    pub insecure: bool,
    /// The keys file, with which the link is encrypted and authenticated; `None` without one, and always if
    /// `insecure` is set.
    pub keys: Option<PathBuf>,
    /// What may cross. The first matching rule decides; topics that match none may cross.
    pub rules: Vec<Rule>,
    /// The shape in which topics cross. The first matching entry decides.
    pub topics: Vec<TopicShaping>,
    /// What is kept for hosts that are away.
    pub offline: OfflineLimits,
    /// The file that was read.
    pub file: Option<PathBuf>,
    local_only_rules: Vec<Rule>,
}

/// Limits for reliable topics kept for hosts that are away: size and time.
#[derive(Clone, Copy, Debug)]
pub struct OfflineLimits {
    /// Of all hosts and topics together, in bytes.
    pub len_bytes: u64,
    /// For a host that does not come back.
    pub time: Duration,
}

impl Default for OfflineLimits {
    fn default() -> OfflineLimits {
        OfflineLimits { len_bytes: MAX_OFFLINE_LEN_BYTES, time: OFFLINE_TIME }
    }
}

/// Whether the link uses a network, and how its hosts find each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// No network.
    #[default]
    Off,
    /// All hosts of the local network that have the same domain.
    Lan,
    /// The configured hosts.
    Peers,
}

impl Mode {
    /// The names of all modes.
    pub const NAMES: [&str; 3] = ["off", "lan", "peers"];
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(text: &str) -> Result<Mode, ()> {
        match text {
            "off" => Ok(Mode::Off),
            "lan" => Ok(Mode::Lan),
            "peers" => Ok(Mode::Peers),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Mode::NAMES[*self as usize])
    }
}

/// The source of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// The default.
    Default,
    /// A command-line option, an environment variable, or the presence of endpoints.
    Text(&'static str),
    /// A file.
    File(SourceLocation),
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::Default => f.write_str("default"),
            SettingSource::Text(word) => f.write_str(word),
            SettingSource::File(place) => write!(f, "{}:{}", place.file.display(), place.line),
        }
    }
}

/// A value of a list with its source, for errors that are found only where it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithSource<T> {
    /// The value.
    pub value: T,
    /// Location and key in a file, or an option or a variable, in the form of errors: `robot.toml:4:11:
    /// network.listen`.
    pub source: String,
}

impl<T: Clone> WithSource<T> {
    /// The values of a list.
    pub fn values(list: &[WithSource<T>]) -> Vec<T> {
        list.iter().map(|listed| listed.value.clone()).collect()
    }
}

impl<T: fmt::Display> fmt::Display for WithSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// The direction in which messages cross, as seen from this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From another host to this one.
    In,
    /// From this host to another one.
    Out,
    /// Either direction; only in rules.
    #[default]
    Both,
}

impl Direction {
    /// The names of all directions.
    pub const NAMES: [&str; 3] = ["in", "out", "both"];

    fn covers(self, other: Direction) -> bool {
        self == Direction::Both || other == Direction::Both || self == other
    }
}

impl FromStr for Direction {
    type Err = ();

    fn from_str(text: &str) -> Result<Direction, ()> {
        match text {
            "in" => Ok(Direction::In),
            "out" => Ok(Direction::Out),
            "both" => Ok(Direction::Both),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Direction::NAMES[*self as usize])
    }
}

/// How messages are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    #[default]
    None,
    /// LZ4.
    Lz4,
}

impl Compression {
    /// The names of all compressions.
    pub const NAMES: [&str; 2] = ["none", "lz4"];
}

impl FromStr for Compression {
    type Err = ();

    fn from_str(text: &str) -> Result<Compression, ()> {
        match text {
            "none" => Ok(Compression::None),
            "lz4" => Ok(Compression::Lz4),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Compression::NAMES[*self as usize])
    }
}

/// The shape in which messages of a topic cross. Messages left out because of it are *skipped by
/// configuration*, and not lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shaping {
    /// The most messages per second of a publisher; of the waiting messages, the newest crosses.
    pub rate_limit_hz: Option<f64>,
    /// Whether only the newest message of a publisher waits to cross.
    pub newest_only: bool,
    /// One of this many messages of a publisher crosses: those whose number is a multiple of it.
    pub every: NonZeroU32,
    /// How they are compressed.
    pub compression: Compression,
    /// Bytes of a reliable publisher that are kept until the other host has read them, so that they survive
    /// a cut.
    pub resend_limit_bytes: u64,
}

/// The default of `resend_limit_bytes`.
pub const RESEND_LIMIT_BYTES: u64 = 16 << 20;

impl Shaping {
    /// Whether all messages cross unchanged.
    pub fn is_passthrough(&self) -> bool {
        let resend_limit_bytes = self.resend_limit_bytes;
        *self == Shaping { resend_limit_bytes, ..Shaping::default() }
    }

    /// Whether messages are skipped in favor of newer ones.
    pub fn skips_to_newest(&self) -> bool {
        self.newest_only || self.rate_limit_hz.is_some()
    }
}

impl Default for Shaping {
    fn default() -> Shaping {
        Shaping {
            rate_limit_hz: None,
            newest_only: false,
            every: NonZeroU32::MIN,
            compression: Compression::None,
            resend_limit_bytes: RESEND_LIMIT_BYTES,
        }
    }
}

/// The shape in which messages of matching topics cross.
#[derive(Clone, Debug)]
pub struct TopicShaping {
    /// The topics.
    pub topic: NamePattern,
    /// The shape.
    pub shaping: Shaping,
    /// Its location.
    pub place: SourceLocation,
}

impl Config {
    /// Reads the settings of this process: `overrides` of the command line, the environment, the file.
    ///
    /// # Errors
    /// The invalid setting, its location, and what was expected.
    pub fn load(overrides: &Overrides) -> Result<Config, ConfigError> {
        merge::load(overrides, &|name| std::env::var_os(name))
    }

    /// The file that [`load`](Config::load) reads, if it exists, and the source of its path.
    pub fn path(overrides: &Overrides) -> (PathBuf, Option<&'static str>) {
        rnet_config::path(overrides.config.as_deref(), &|name| std::env::var_os(name))
    }

    /// Reads settings from the text of a file; `path` is for errors. Flags and environment are ignored.
    ///
    /// # Errors
    /// As for [`load`](Config::load).
    pub fn from_toml(text: &str, path: &std::path::Path) -> Result<Config, ConfigError> {
        merge::merge(&Overrides::default(), &|_| None, parse::parse(text, Arc::from(path))?)
    }

    /// The first setting by which the link reaches beyond this host, with its location; `None` if it stays
    /// on the loopback.
    pub fn exposing_setting(&self) -> Option<String> {
        let is_lan = self.interfaces.is_empty()
            || self.interfaces.iter().any(|interface| interface.value != "lo");
        match self.mode {
            Mode::Off => None,
            Mode::Lan if is_lan => Some(format!("{}: mode \"lan\"", self.mode_source)),
            Mode::Lan | Mode::Peers => {
                let listen = self.listen.iter().find(|listed| !listed.value.is_loopback());
                let connect = || self.connect.iter().find(|endpoint| !endpoint.is_loopback());
                let listen = listen.map(|listed| format!("{}: {listed}", listed.source));
                listen.or_else(|| connect().map(|endpoint| format!("connect: {endpoint}")))
            }
        }
    }

    /// Checks that a link with these settings may run.
    ///
    /// # Errors
    /// The setting that reaches beyond this host without permission, and how to allow it.
    pub fn check_insecure(&self) -> Result<(), String> {
        let is_allowed = self.insecure || self.keys.is_some();
        let Some(setting) = self.exposing_setting().filter(|_| !is_allowed) else {
            return Ok(());
        };
        Err(format!(
            "{setting} reaches beyond this host, and the link is neither encrypted nor authenticated: anyone who \
             reaches its ports can read, publish and call. Give the hosts keys (`rnet keys add-host NAME`, \
             docs/guide/security.md); or, on a private network, set insecure = true under [network] in robot.toml, or \
             RNET_INSECURE=1"
        ))
    }

    /// The shape in which messages of `topic` cross.
    pub fn shaping(&self, topic: &str) -> Shaping {
        let entry = self.topics.iter().find(|entry| entry.topic.matches(topic));
        entry.map_or_else(Shaping::default, |entry| entry.shaping)
    }
}

fn pattern(text: &str) -> rnet::Result<NamePattern> {
    NamePattern::new("topic pattern", text, rnet::limits::MAX_TOPIC_LEN_BYTES)
}

#[cfg(test)]
mod tests;
