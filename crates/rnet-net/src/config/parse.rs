//! The text of `robot.toml`, key by key.

use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Place, near, one_of};
use super::{
    Compression, Direction, Endpoint, Mode, Rule, Shaping, TopicShaping, endpoint, pattern,
    why_no_host,
};

const FILE_KEYS: [&str; 1] = ["network"];
const NETWORK_KEYS: [&str; 8] =
    ["mode", "host", "interfaces", "listen", "connect", "lost_after_ms", "rule", "topic"];
const RULE_KEYS: [&str; 4] = ["topic", "direction", "host", "allow"];
/// A host sends something every 100 ms, and one may be lost or late.
const LOST_AFTER_MS: RangeInclusive<u32> = 300..=60_000;
const TOPIC_KEYS: [&str; 5] = ["topic", "rate_limit_hz", "newest_only", "every", "compression"];

/// The longest name of a network interface, in bytes (IFNAMSIZ - 1).
const MAX_INTERFACE_LEN_BYTES: usize = 15;

/// Highest and lowest rate of a limit, in Hz: one message in a day, and one in a microsecond.
const RATE_HZ: RangeInclusive<f64> = 1e-5..=1e6;

/// What a file says; nothing where it says nothing.
#[derive(Default)]
pub(super) struct Parsed {
    pub path: Option<PathBuf>,
    pub mode: Option<(Mode, Place)>,
    pub host: Option<String>,
    pub interfaces: Vec<String>,
    pub listen: Vec<Endpoint>,
    pub connect: Vec<Endpoint>,
    pub lost_after: Option<Duration>,
    pub rules: Vec<Rule>,
    pub topics: Vec<TopicShaping>,
}

type Result<T> = std::result::Result<T, ConfigError>;
type Value<'t> = Spanned<DeValue<'t>>;

pub(super) fn parse(text: &str, path: Arc<Path>) -> Result<Parsed> {
    let reader = Reader { text, path: &path };
    let file = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        place: reader.place(error.span().unwrap_or(0..0)),
        what: error.message().to_owned(),
    })?;
    let mut parsed = Parsed { path: Some(path.to_path_buf()), ..Parsed::default() };
    let file = Table { reader: &reader, name: String::new(), at: 0..0, entries: file.get_ref() };
    file.check_keys(&FILE_KEYS)?;
    let Some(network) = file.get("network") else { return Ok(parsed) };
    if let DeValue::String(_) = network.value.get_ref() {
        parsed.mode = Some((network.word(&Mode::NAMES)?, network.place()));
        return Ok(parsed);
    }
    network.table("a table, or \"off\" or \"lan\"")?.network(&mut parsed)?;
    Ok(parsed)
}

struct Reader<'t> {
    text: &'t str,
    path: &'t Arc<Path>,
}

impl Reader<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        Place::of(self.path, self.text, &span)
    }
}

/// A table, and where it stands.
struct Table<'t> {
    reader: &'t Reader<'t>,
    name: String,
    at: Range<usize>,
    entries: &'t DeTable<'t>,
}

/// The value of a key.
struct Entry<'t> {
    reader: &'t Reader<'t>,
    key: String,
    value: &'t Value<'t>,
}

impl<'t> Table<'t> {
    fn key(&self, key: &str) -> String {
        match self.name.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.name),
        }
    }

    fn check_keys(&self, known: &[&'static str]) -> Result<()> {
        // Entries are in the order of their names; the first in the file is told.
        let unknown = self.entries.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        Err(ConfigError::UnknownKey {
            place: self.reader.place(key.span()),
            key: self.key(&shown(key.get_ref())),
            expected: one_of(known),
            hint: near(key.get_ref(), known),
        })
    }

    fn get(&self, key: &str) -> Option<Entry<'t>> {
        let value = self.entries.get(key)?;
        Some(Entry { reader: self.reader, key: self.key(key), value })
    }

    fn need(&self, key: &str, expected: &str) -> Result<Entry<'t>> {
        self.get(key).ok_or_else(|| ConfigError::Missing {
            place: self.reader.place(self.at.clone()),
            key: self.key(key),
            expected: expected.into(),
        })
    }

    fn network(&self, parsed: &mut Parsed) -> Result<()> {
        self.check_keys(&NETWORK_KEYS)?;
        if let Some(mode) = self.get("mode") {
            parsed.mode = Some((mode.word(&Mode::NAMES)?, mode.place()));
        }
        if let Some(host) = self.get("host") {
            parsed.host = Some(host.host()?);
        }
        if let Some(interfaces) = self.get("interfaces") {
            if parsed.mode.as_ref().is_some_and(|(mode, _)| *mode != Mode::Lan) {
                return Err(interfaces.wrong("mode = \"lan\" beside interfaces".into()));
            }
            parsed.interfaces = interfaces.each(Entry::interface)?;
        }
        if let Some(listen) = self.get("listen") {
            parsed.listen = listen.each(Entry::endpoint)?;
        }
        if let Some(connect) = self.get("connect") {
            parsed.connect = connect.each(Entry::endpoint)?;
        }
        if let Some(lost_after) = self.get("lost_after_ms") {
            parsed.lost_after = Some(lost_after.silence()?);
        }
        if let Some(rules) = self.get("rule") {
            parsed.rules = rules.each(|rule| rule.table("a table [[network.rule]]")?.rule())?;
        }
        if let Some(topics) = self.get("topic") {
            parsed.topics =
                topics.each(|topic| topic.table("a table [[network.topic]]")?.topic())?;
        }
        Ok(())
    }

    fn rule(&self) -> Result<Rule> {
        self.check_keys(&RULE_KEYS)?;
        let direction = self.get("direction").map(|entry| entry.word(&Direction::NAMES));
        Ok(Rule {
            topic: self.need("topic", "a topic pattern")?.pattern()?,
            direction: direction.transpose()?.unwrap_or_default(),
            host: self.get("host").map(|host| host.host()).transpose()?,
            allow: self.need("allow", "true or false")?.truth()?,
            place: Some(self.reader.place(self.at.clone())),
        })
    }

    fn topic(&self) -> Result<TopicShaping> {
        self.check_keys(&TOPIC_KEYS)?;
        let mut shaping = Shaping::default();
        let topic = self.need("topic", "a topic pattern")?.pattern()?;
        if let Some(rate) = self.get("rate_limit_hz") {
            shaping.rate_limit_hz = Some(rate.rate_hz()?);
        }
        if let Some(newest) = self.get("newest_only") {
            shaping.newest_only = newest.truth()?;
        }
        if let Some(every) = self.get("every") {
            shaping.every = every.count()?;
        }
        if let Some(compression) = self.get("compression") {
            shaping.compression = compression.word(&Compression::NAMES)?;
        }
        Ok(TopicShaping { topic, shaping, place: self.reader.place(self.at.clone()) })
    }
}

impl<'t> Entry<'t> {
    fn place(&self) -> Place {
        self.reader.place(self.value.span())
    }

    fn wrong(&self, expected: String) -> ConfigError {
        self.wrong_with(expected, None)
    }

    fn wrong_with(&self, expected: String, hint: Option<&'static str>) -> ConfigError {
        let found = match self.value.get_ref() {
            DeValue::String(text) => format!("{:?}", shown(text)),
            DeValue::Integer(number) => shown(number.as_str()),
            DeValue::Float(number) => shown(number.as_str()),
            DeValue::Boolean(truth) => truth.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Array(_) => "an array".into(),
            DeValue::Table(_) => "a table".into(),
        };
        let from = format!("{}: {}", self.place(), self.key);
        ConfigError::Value { from, expected, found, hint }
    }

    fn text(&self, expected: &str) -> Result<&'t str> {
        self.value.get_ref().as_str().ok_or_else(|| self.wrong(expected.into()))
    }

    fn word<T: FromStr>(&self, words: &[&'static str]) -> Result<T> {
        let text = self.text(&one_of(words))?;
        text.parse().map_err(|_| self.wrong_with(one_of(words), near(text, words)))
    }

    fn truth(&self) -> Result<bool> {
        self.value.get_ref().as_bool().ok_or_else(|| self.wrong("true or false".into()))
    }

    fn host(&self) -> Result<String> {
        let text = self.text("the name of a host")?;
        match why_no_host(text) {
            Some(expected) => Err(self.wrong(expected)),
            None => Ok(text.to_owned()),
        }
    }

    fn interface(&self) -> Result<String> {
        let text = self.text("the name of a network interface, as \"eth0\"")?;
        let fine = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        match (1..=MAX_INTERFACE_LEN_BYTES).contains(&text.len()) && text.bytes().all(fine) {
            true => Ok(text.to_owned()),
            false => Err(self.wrong(format!(
                "the name of a network interface, of at most {MAX_INTERFACE_LEN_BYTES} letters"
            ))),
        }
    }

    fn endpoint(&self) -> Result<Endpoint> {
        let text = self.text(endpoint::FORM)?;
        text.parse().map_err(|why| self.wrong(format!("{} ({why})", endpoint::FORM)))
    }

    fn pattern(&self) -> Result<rnet::NamePattern> {
        let text = self.text("a topic pattern, as \"/camera/**\"")?;
        pattern(text).map_err(|error| match error {
            rnet::Error::BadName { why, .. } => self.wrong(format!("a topic pattern ({why})")),
            other => self.wrong(format!("a topic pattern ({other})")),
        })
    }

    fn rate_hz(&self) -> Result<f64> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .map(|number| number as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number.filter(|rate| RATE_HZ.contains(rate)).ok_or_else(|| {
            self.wrong(format!("messages per second, {} to {}", RATE_HZ.start(), RATE_HZ.end()))
        })
    }

    fn whole(&self) -> Option<u32> {
        match self.value.get_ref() {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    fn silence(&self) -> Result<Duration> {
        let ms = self.whole().filter(|ms| LOST_AFTER_MS.contains(ms)).ok_or_else(|| {
            let (least, most) = (LOST_AFTER_MS.start(), LOST_AFTER_MS.end());
            self.wrong(format!("a whole number of milliseconds, {least} to {most}"))
        })?;
        Ok(Duration::from_millis(ms.into()))
    }

    fn count(&self) -> Result<NonZeroU32> {
        self.whole()
            .and_then(NonZeroU32::new)
            .ok_or_else(|| self.wrong(format!("a whole number, 1 to {}", u32::MAX)))
    }

    fn table(&self, expected: &str) -> Result<Table<'t>> {
        let entries = self.value.get_ref().as_table().ok_or_else(|| self.wrong(expected.into()))?;
        Ok(Table { reader: self.reader, name: self.key.clone(), at: self.value.span(), entries })
    }

    fn each<T>(&self, read: impl Fn(&Entry<'t>) -> Result<T>) -> Result<Vec<T>> {
        let values = self.value.get_ref().as_array();
        let values = values.ok_or_else(|| self.wrong("an array, as [\"…\", \"…\"]".into()))?;
        let entry = |value| Entry { reader: self.reader, key: self.key.clone(), value };
        values.iter().map(|value| read(&entry(value))).collect()
    }
}

/// What somebody wrote, not longer than people read.
fn shown(text: &str) -> String {
    const CHARS: usize = 80;
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
