//! Flags, environment, file and defaults, in this order.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rnet_config::{ConfigError, find, closest, one_of, this_host, invalid_host_reason};

use super::parse::{self, LOST_AFTER_MS, Parsed, why_no_interface};
use super::{Config, Endpoint, From, LOST_AFTER, Listed, Mode, OfflineLimits, endpoint, stay};

/// Who wants a network without naming a mode.
const ENDPOINTS: &str = "listen or connect endpoints are set";

/// What the command line says; `None` where it says nothing.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The file.
    pub config: Option<PathBuf>,
    /// The mode.
    pub network: Option<String>,
    /// The name of this host.
    pub host: Option<String>,
    /// Where the link can be reached, separated by commas.
    pub listen: Option<String>,
    /// Where the links of other hosts can be reached, separated by commas.
    pub connect: Option<String>,
    /// Network interfaces of mode `lan`, separated by commas.
    pub interfaces: Option<String>,
    /// For how long another host may be silent before it counts as lost, in ms.
    pub lost_after_ms: Option<String>,
}

pub(super) fn load(
    given: &Given,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Config, ConfigError> {
    let file = find(given.config.as_deref(), env)?;
    let parsed = file.map(|file| parse::parse(&file.text, file.path)).transpose()?;
    merge(given, env, parsed.unwrap_or_default())
}

pub(super) fn merge(
    given: &Given,
    env: &dyn Fn(&str) -> Option<OsString>,
    file: Parsed,
) -> Result<Config, ConfigError> {
    let word = |flag: &Option<String>, option: &'static str, variable: &'static str| {
        if let Some(text) = flag {
            return Ok(Some((text.clone(), option)));
        }
        let set = env(variable).filter(|text| !text.is_empty());
        let text = set.map(|text| {
            text.into_string().map_err(|text| wrong(variable, "text", &text.to_string_lossy()))
        });
        Ok(text.transpose()?.map(|text| (text, variable)))
    };
    let listen = match word(&given.listen, "--listen", "RNET_LISTEN")? {
        Some((text, from)) => list(&text, |part| Ok(listed(reached(part, from)?, from)))?,
        None => file.listen,
    };
    lanes_apart(&listen)?;
    let connect = match word(&given.connect, "--connect", "RNET_CONNECT")? {
        Some((text, from)) => list(&text, |part| reached(part, from))?,
        None => file.connect,
    };
    let interfaces = match word(&given.interfaces, "--interfaces", "RNET_INTERFACES")? {
        Some((text, from)) => list(&text, |part| Ok(listed(interface(part, from)?, from)))?,
        None => file.interfaces,
    };
    let lost_after = match word(&given.lost_after_ms, "--lost-after-ms", "RNET_LOST_AFTER_MS")? {
        Some((text, from)) => Some(silence(&text, from)?),
        None => file.lost_after,
    };
    let insecure = match word(&None, "", "RNET_INSECURE")? {
        Some((text, from)) => match &*text {
            "1" => true,
            "0" => false,
            _ => return Err(wrong(from, "1 or 0", &text)),
        },
        None => file.insecure.unwrap_or(false),
    };
    let host = match word(&given.host, "--host", "RNET_HOST")? {
        Some((name, from)) => match invalid_host_reason(&name) {
            Some(expected) => return Err(wrong(from, &expected, &name)),
            None => name,
        },
        None => file.host.unwrap_or_else(this_host),
    };
    let (mode, mode_from) = match word(&given.network, "--network", "RNET_NETWORK")? {
        Some((text, from)) => (mode(&text, from)?, From::Word(from)),
        None => match file.mode {
            Some((mode, place)) => (mode, From::File(place)),
            // Whoever says where the others are wants them.
            None if !(listen.is_empty() && connect.is_empty()) => {
                (Mode::Peers, From::Word(ENDPOINTS))
            }
            None => (Mode::Off, From::Default),
        },
    };
    if mode == Mode::Peers && listen.is_empty() && connect.is_empty() {
        return Err(ConfigError::Value {
            from: mode_from.to_string(),
            expected: "listen or connect endpoints (network.listen, network.connect, RNET_LISTEN, \
                       RNET_CONNECT) with mode \"peers\""
                .into(),
            found: "neither".into(),
            hint: None,
        });
    }
    // Of no use beside another mode, where they would be thought to limit what is reached.
    if let (Mode::Peers, Some(interface)) = (mode, interfaces.first()) {
        return Err(ConfigError::Value {
            from: interface.from.clone(),
            expected: "mode \"lan\" with interfaces".into(),
            found: format!("{:?} ({mode_from})", mode.to_string()),
            hint: None,
        });
    }
    Ok(Config {
        offline: OfflineLimits::default(),
        mode,
        mode_from,
        host,
        listen,
        connect,
        interfaces,
        lost_after: lost_after.unwrap_or(LOST_AFTER),
        insecure,
        rules: file.rules,
        topics: file.topics,
        file: file.path,
        stay: stay(),
    })
}

fn wrong(from: &str, expected: &str, found: &str) -> ConfigError {
    let (from, expected, found) = (from.into(), expected.into(), format!("{found:?}"));
    ConfigError::Value { from, expected, found, hint: None }
}

fn listed<T>(value: T, from: &str) -> Listed<T> {
    Listed { value, from: from.to_owned() }
}

/// That no two lanes are to listen on one port.
fn lanes_apart(listen: &[Listed<Endpoint>]) -> Result<(), ConfigError> {
    for (at, second) in listen.iter().enumerate() {
        if let Some(first) = listen[..at].iter().find(|first| first.value.meets(&second.value)) {
            return Err(ConfigError::Value {
                from: second.from.clone(),
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

fn mode(text: &str, from: &'static str) -> Result<Mode, ConfigError> {
    Mode::from_str(text).map_err(|()| ConfigError::Value {
        from: from.into(),
        expected: one_of(&Mode::NAMES),
        found: format!("{text:?}"),
        hint: closest(text, &Mode::NAMES),
    })
}

/// What stands between commas.
fn list<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(read).collect()
}

fn reached(text: &str, from: &'static str) -> Result<Endpoint, ConfigError> {
    let expected = |why| format!("{} ({why})", endpoint::FORM);
    text.parse().map_err(|why| wrong(from, &expected(why), text))
}

fn interface(text: &str, from: &'static str) -> Result<String, ConfigError> {
    match why_no_interface(text) {
        Some(expected) => Err(wrong(from, &expected, text)),
        None => Ok(text.to_owned()),
    }
}

fn silence(text: &str, from: &'static str) -> Result<Duration, ConfigError> {
    let ms = text.trim().parse().ok().filter(|ms| LOST_AFTER_MS.contains(ms));
    let ms = ms.ok_or_else(|| wrong(from, &parse::silence_form(), text))?;
    Ok(Duration::from_millis(ms))
}
