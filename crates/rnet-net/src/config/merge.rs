//! Merges flags, environment, file and defaults, in this order.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rnet_config::{ConfigError, closest, find, invalid_host_reason, one_of, this_host};

use super::parse::{self, FileSettings, LOST_AFTER_MS, interface_name_error};
use super::topic_rules::local_only_rules;
use super::{
    Config, DEFAULT_LOST_AFTER, Endpoint, Mode, OfflineLimits, SettingSource, WithSource, endpoint,
};

/// The source of a mode that follows from endpoints.
const ENDPOINTS_ARE_SET: &str = "listen or connect endpoints are set";

/// Settings from the command line; `None` where absent.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The file.
    pub config: Option<PathBuf>,
    /// The mode.
    pub network: Option<String>,
    /// The name of this host.
    pub host: Option<String>,
    /// The endpoints on which the link listens, separated by commas.
    pub listen: Option<String>,
    /// The endpoints of other hosts' links, separated by commas.
    pub connect: Option<String>,
    /// Network interfaces of mode `lan`, separated by commas.
    pub interfaces: Option<String>,
    /// The longest silence of another host before it counts as lost, in ms.
    pub lost_after_ms: Option<String>,
}

pub(super) fn load(
    overrides: &Overrides,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Config, ConfigError> {
    let file = find(overrides.config.as_deref(), env)?;
    let parsed = file.map(|file| parse::parse(&file.text, file.path)).transpose()?;
    let mut config = merge(overrides, env, parsed.unwrap_or_default())?;
    if !config.insecure {
        config.keys = config.keys.or_else(rnet_keys::default_keys_path);
    }
    Ok(config)
}

pub(super) fn merge(
    overrides: &Overrides,
    env: &dyn Fn(&str) -> Option<OsString>,
    file: FileSettings,
) -> Result<Config, ConfigError> {
    let word = |flag: &Option<String>, option: &'static str, variable: &'static str| {
        if let Some(text) = flag {
            return Ok(Some((text.clone(), option)));
        }
        let set = env(variable).filter(|text| !text.is_empty());
        let text = set.map(|text| {
            text.into_string()
                .map_err(|text| value_error(variable, "text", &text.to_string_lossy()))
        });
        Ok(text.transpose()?.map(|text| (text, variable)))
    };
    let listen = match word(&overrides.listen, "--listen", "RNET_LISTEN")? {
        Some((text, from)) => {
            parse_list(&text, |part| Ok(with_source(parse_endpoint(part, from)?, from)))?
        }
        None => file.listen,
    };
    check_port_conflicts(&listen)?;
    let connect = match word(&overrides.connect, "--connect", "RNET_CONNECT")? {
        Some((text, from)) => parse_list(&text, |part| parse_endpoint(part, from))?,
        None => file.connect,
    };
    let interfaces = match word(&overrides.interfaces, "--interfaces", "RNET_INTERFACES")? {
        Some((text, from)) => {
            parse_list(&text, |part| Ok(with_source(parse_interface(part, from)?, from)))?
        }
        None => file.interfaces,
    };
    let lost_after = match word(&overrides.lost_after_ms, "--lost-after-ms", "RNET_LOST_AFTER_MS")?
    {
        Some((text, from)) => Some(parse_lost_after(&text, from)?),
        None => file.lost_after,
    };
    let insecure = match word(&None, "", "RNET_INSECURE")? {
        Some((text, from)) => match &*text {
            "1" => true,
            "0" => false,
            _ => return Err(value_error(from, "1 or 0", &text)),
        },
        None => file.insecure.unwrap_or(false),
    };
    let keys = match word(&None, "", "RNET_KEYS")? {
        Some((path, _)) => Some(PathBuf::from(path)),
        None => file.keys,
    };
    let host = match word(&overrides.host, "--host", "RNET_HOST")? {
        Some((name, from)) => match invalid_host_reason(&name) {
            Some(expected) => return Err(value_error(from, &expected, &name)),
            None => name,
        },
        None => file.host.unwrap_or_else(this_host),
    };
    let (mode, mode_source) = match word(&overrides.network, "--network", "RNET_NETWORK")? {
        Some((text, from)) => (parse_mode(&text, from)?, SettingSource::Text(from)),
        None => match file.mode {
            Some((mode, place)) => (mode, SettingSource::File(place)),
            // Configured endpoints imply a network.
            None if !(listen.is_empty() && connect.is_empty()) => {
                (Mode::Peers, SettingSource::Text(ENDPOINTS_ARE_SET))
            }
            None => (Mode::Off, SettingSource::Default),
        },
    };
    if mode == Mode::Peers && listen.is_empty() && connect.is_empty() {
        return Err(ConfigError::Value {
            from: mode_source.to_string(),
            expected: "listen or connect endpoints (network.listen, network.connect, RNET_LISTEN, \
                       RNET_CONNECT) with mode \"peers\""
                .into(),
            found: "neither".into(),
            hint: None,
        });
    }
    // Useless with another mode, where users would take them for a limit of what is reachable.
    if let (Mode::Peers, Some(interface)) = (mode, interfaces.first()) {
        return Err(ConfigError::Value {
            from: interface.source.clone(),
            expected: "mode \"lan\" with interfaces".into(),
            found: format!("{:?} ({mode_source})", mode.to_string()),
            hint: None,
        });
    }
    Ok(Config {
        offline: OfflineLimits::default(),
        mode,
        mode_source,
        host,
        listen,
        connect,
        interfaces,
        lost_after: lost_after.unwrap_or(DEFAULT_LOST_AFTER),
        insecure,
        keys: keys.filter(|_| !insecure),
        rules: file.rules,
        topics: file.topics,
        file: file.path,
        local_only_rules: local_only_rules(),
    })
}

fn value_error(from: &str, expected: &str, found: &str) -> ConfigError {
    let (from, expected, found) = (from.into(), expected.into(), format!("{found:?}"));
    ConfigError::Value { from, expected, found, hint: None }
}

fn with_source<T>(value: T, from: &str) -> WithSource<T> {
    WithSource { value, source: from.to_owned() }
}

/// Checks that no two lanes listen on the same port.
fn check_port_conflicts(listen: &[WithSource<Endpoint>]) -> Result<(), ConfigError> {
    for (at, second) in listen.iter().enumerate() {
        if let Some(first) =
            listen[..at].iter().find(|first| first.value.conflicts_with(&second.value))
        {
            return Err(ConfigError::Value {
                from: second.source.clone(),
                expected: format!(
                    "an address other than that of \"{first}\", or a port at least two away: the urgent lane uses \
                     the given port, and the bulk lane the next one"
                ),
                found: format!("\"{second}\""),
                hint: None,
            });
        }
    }
    Ok(())
}

fn parse_mode(text: &str, from: &'static str) -> Result<Mode, ConfigError> {
    Mode::from_str(text).map_err(|()| ConfigError::Value {
        from: from.into(),
        expected: one_of(&Mode::NAMES),
        found: format!("{text:?}"),
        hint: closest(text, &Mode::NAMES),
    })
}

/// Parses values separated by commas.
fn parse_list<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(read).collect()
}

fn parse_endpoint(text: &str, from: &'static str) -> Result<Endpoint, ConfigError> {
    let expected = |why| format!("{} ({why})", endpoint::ENDPOINT_FORMAT);
    text.parse().map_err(|why| value_error(from, &expected(why), text))
}

fn parse_interface(text: &str, from: &'static str) -> Result<String, ConfigError> {
    match interface_name_error(text) {
        Some(expected) => Err(value_error(from, &expected, text)),
        None => Ok(text.to_owned()),
    }
}

fn parse_lost_after(text: &str, from: &'static str) -> Result<Duration, ConfigError> {
    let ms = text.trim().parse().ok().filter(|ms| LOST_AFTER_MS.contains(ms));
    let ms = ms.ok_or_else(|| value_error(from, &parse::lost_after_format(), text))?;
    Ok(Duration::from_millis(ms))
}
