//! Flags, environment, file and defaults, in this order.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use rnet_config::{ConfigError, find, near, one_of, this_host, why_no_host};

use super::parse::{self, Parsed};
use super::{Config, Endpoint, From, LOST_AFTER, Mode, endpoint, stay};

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
    let endpoints = |given, in_file| match given {
        Some((text, from)) => list(text, from),
        None => Ok(in_file),
    };
    let listen = endpoints(word(&given.listen, "--listen", "RNET_LISTEN")?, file.listen)?;
    let connect = endpoints(word(&given.connect, "--connect", "RNET_CONNECT")?, file.connect)?;
    let host = match word(&given.host, "--host", "RNET_HOST")? {
        Some((name, from)) => match why_no_host(&name) {
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
                       RNET_CONNECT) beside the mode \"peers\""
                .into(),
            found: "neither".into(),
            hint: None,
        });
    }
    Ok(Config {
        mode,
        mode_from,
        host,
        listen,
        connect,
        interfaces: file.interfaces,
        lost_after: file.lost_after.unwrap_or(LOST_AFTER),
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

fn mode(text: &str, from: &'static str) -> Result<Mode, ConfigError> {
    Mode::from_str(text).map_err(|()| ConfigError::Value {
        from: from.into(),
        expected: one_of(&Mode::NAMES),
        found: format!("{text:?}"),
        hint: near(text, &Mode::NAMES),
    })
}

fn list(text: String, from: &'static str) -> Result<Vec<Endpoint>, ConfigError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let expected = |why| format!("{} ({why})", endpoint::FORM);
            part.parse().map_err(|why| wrong(from, &expected(why), part))
        })
        .collect()
}
