//! The table `[network]` of `robot.toml`, key by key.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rnet_config::{Entry, FILE_KEYS, Reader, Result, SourceLocation, Table};
use toml::de::DeValue;

use super::{
    Compression, Direction, Endpoint, Mode, Rule, Shaping, TopicShaping, WithSource, endpoint,
    pattern,
};

const NETWORK_KEYS: [&str; 10] = [
    "mode",
    "host",
    "interfaces",
    "listen",
    "connect",
    "lost_after_ms",
    "insecure",
    "keys",
    "rule",
    "topic",
];
const RULE_KEYS: [&str; 4] = ["topic", "direction", "host", "allow"];
/// A host sends something every 100 ms, and one send may be lost or late.
pub(super) const LOST_AFTER_MS: RangeInclusive<u64> = 300..=60_000;
const TOPIC_KEYS: [&str; 6] =
    ["topic", "rate_limit_hz", "newest_only", "every", "compression", "resend_limit_bytes"];
/// The link keeps no more for all topics together.
const MAX_RESEND_LIMIT_BYTES: u64 = super::MAX_OFFLINE_LEN_BYTES;

/// The longest name of a network interface, in bytes (IFNAMSIZ - 1).
const MAX_INTERFACE_LEN_BYTES: usize = 15;

/// The range of a rate limit, in Hz: from one message a day to one per microsecond.
const RATE_LIMIT_HZ: RangeInclusive<f64> = 1e-5..=1e6;

/// Settings from a file; `None` where absent.
#[derive(Default)]
pub(super) struct FileSettings {
    pub path: Option<PathBuf>,
    pub mode: Option<(Mode, SourceLocation)>,
    pub host: Option<String>,
    pub interfaces: Vec<WithSource<String>>,
    pub listen: Vec<WithSource<Endpoint>>,
    pub connect: Vec<Endpoint>,
    pub lost_after: Option<Duration>,
    pub insecure: Option<bool>,
    pub keys: Option<PathBuf>,
    pub rules: Vec<Rule>,
    pub topics: Vec<TopicShaping>,
}

pub(super) fn parse(text: &str, path: Arc<Path>) -> Result<FileSettings> {
    let reader = Reader::new(text, &path)?;
    let mut parsed = FileSettings { path: Some(path.to_path_buf()), ..FileSettings::default() };
    let file = reader.table();
    file.check_keys(&FILE_KEYS)?;
    let Some(entry) = file.get("network") else { return Ok(parsed) };
    if let DeValue::String(_) = entry.value() {
        parsed.mode = Some((entry.keyword(&Mode::NAMES)?, entry.place()));
        return Ok(parsed);
    }
    read_network(&entry.table("a table, or \"off\" or \"lan\"")?, &mut parsed)?;
    Ok(parsed)
}

fn read_network(table: &Table<'_>, parsed: &mut FileSettings) -> Result<()> {
    table.check_keys(&NETWORK_KEYS)?;
    if let Some(mode) = table.get("mode") {
        parsed.mode = Some((mode.keyword(&Mode::NAMES)?, mode.place()));
    }
    parsed.host = table.optional("host", Entry::host)?;
    if let Some(interfaces) = table.get("interfaces") {
        if parsed.mode.as_ref().is_some_and(|(mode, _)| *mode != Mode::Lan) {
            return Err(interfaces.wrong("mode = \"lan\" with interfaces"));
        }
        parsed.interfaces = interfaces.each(|entry| with_source(entry, read_interface(entry)?))?;
    }
    if let Some(listen) = table.get("listen") {
        parsed.listen = listen.each(|entry| with_source(entry, read_endpoint(entry)?))?;
    }
    if let Some(connect) = table.get("connect") {
        parsed.connect = connect.each(read_endpoint)?;
    }
    parsed.lost_after = table.optional("lost_after_ms", read_lost_after)?;
    parsed.insecure = table.optional("insecure", Entry::boolean)?;
    let keys = table.optional("keys", |entry| entry.text("the path of a keys file"))?;
    // A relative path is relative to the file that names it.
    let folder = parsed.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    parsed.keys = keys.map(|keys| folder.join(keys));
    if let Some(rules) = table.get("rule") {
        let form = "[[network.rule]] in double brackets, one per rule";
        parsed.rules = read_tables(&rules, form, read_rule)?;
    }
    if let Some(topics) = table.get("topic") {
        let form = "[[network.topic]] in double brackets, one per entry";
        parsed.topics = read_tables(&topics, form, read_topic)?;
    }
    Ok(())
}

/// An array of tables; errors name the expected `form`.
fn read_tables<T>(
    list: &Entry<'_>,
    form: &str,
    read: impl Fn(&Table<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    if !matches!(list.value(), DeValue::Array(_)) {
        return Err(list.wrong(form));
    }
    list.each(|entry| read(&entry.table(form)?))
}

/// A value of a list with its location and key, in the form of errors.
fn with_source<T>(entry: &Entry<'_>, value: T) -> Result<WithSource<T>> {
    Ok(WithSource { value, source: format!("{}: {}", entry.place(), entry.key()) })
}

fn read_rule(table: &Table<'_>) -> Result<Rule> {
    table.check_keys(&RULE_KEYS)?;
    let direction = table.optional("direction", |entry| entry.keyword(&Direction::NAMES))?;
    Ok(Rule {
        topic: read_pattern(&table.require("topic", "a topic pattern")?)?,
        direction: direction.unwrap_or_default(),
        host: table.optional("host", Entry::host)?,
        allow: table.require("allow", "true or false")?.boolean()?,
        place: Some(table.place()),
    })
}

fn read_topic(table: &Table<'_>) -> Result<TopicShaping> {
    table.check_keys(&TOPIC_KEYS)?;
    let topic = read_pattern(&table.require("topic", "a topic pattern")?)?;
    let none = Shaping::default();
    let rate = |entry: &Entry<'_>| entry.number("messages per second", RATE_LIMIT_HZ);
    let shaping = Shaping {
        rate_limit_hz: table.optional("rate_limit_hz", rate)?,
        newest_only: table.optional("newest_only", Entry::boolean)?.unwrap_or(none.newest_only),
        every: table.optional("every", Entry::count)?.unwrap_or(none.every),
        compression: table
            .optional("compression", |entry| entry.keyword(&Compression::NAMES))?
            .unwrap_or(none.compression),
        resend_limit_bytes: table
            .optional("resend_limit_bytes", read_resend_limit)?
            .unwrap_or(none.resend_limit_bytes),
    };
    Ok(TopicShaping { topic, shaping, place: table.place() })
}

fn read_resend_limit(entry: &Entry<'_>) -> Result<u64> {
    let bytes = entry.unsigned().filter(|bytes| *bytes <= MAX_RESEND_LIMIT_BYTES);
    bytes.ok_or_else(|| {
        entry.wrong(format!("a whole number of bytes, 0 to {MAX_RESEND_LIMIT_BYTES}"))
    })
}

fn read_interface(entry: &Entry<'_>) -> Result<String> {
    let text = entry.text("a network interface name, such as \"eth0\"")?;
    match interface_name_error(text) {
        Some(expected) => Err(entry.wrong(expected)),
        None => Ok(text.to_owned()),
    }
}

/// What is expected instead of this interface name; `None` if the name is valid.
pub(super) fn interface_name_error(text: &str) -> Option<String> {
    let fine = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    let is_one = (1..=MAX_INTERFACE_LEN_BYTES).contains(&text.len()) && text.bytes().all(fine);
    (!is_one).then(|| {
        format!("a network interface name of at most {MAX_INTERFACE_LEN_BYTES} characters")
    })
}

/// The format of a silence time.
pub(super) fn lost_after_format() -> String {
    let (least, most) = (LOST_AFTER_MS.start(), LOST_AFTER_MS.end());
    format!("a whole number of milliseconds, {least} to {most}")
}

fn read_lost_after(entry: &Entry<'_>) -> Result<Duration> {
    let ms = entry.unsigned().filter(|ms| LOST_AFTER_MS.contains(ms));
    let ms = ms.ok_or_else(|| entry.wrong(lost_after_format()))?;
    Ok(Duration::from_millis(ms))
}

/// Reads an endpoint.
fn read_endpoint(entry: &Entry<'_>) -> Result<Endpoint> {
    let text = entry.text(endpoint::ENDPOINT_FORMAT)?;
    text.parse().map_err(|why| entry.wrong(format!("{} ({why})", endpoint::ENDPOINT_FORMAT)))
}

/// Reads a topic pattern.
fn read_pattern(entry: &Entry<'_>) -> Result<rnet::NamePattern> {
    let text = entry.text("a topic pattern, such as \"/camera/**\"")?;
    pattern(text).map_err(|error| match error {
        rnet::Error::BadName { why, .. } => entry.wrong(format!("a topic pattern ({why})")),
        other => entry.wrong(format!("a topic pattern ({other})")),
    })
}
