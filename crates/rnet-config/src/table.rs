//! Tables and values of a file, each with its place.

use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, SourceLocation, closest, one_of};
use crate::{Result, invalid_host_reason};

/// The tables that `robot.toml` has, of whoever reads them.
pub const FILE_KEYS: [&str; 5] = ["network", "include", "var", "node", "blackbox"];

/// What the parser says of a key that its table has already.
const DUPLICATE: &str = "duplicate key";

/// The text of a file, and where it is from.
pub struct Reader<'t> {
    text: &'t str,
    path: &'t Arc<Path>,
    file: Spanned<DeTable<'t>>,
}

impl<'t> Reader<'t> {
    /// Reads the text as TOML.
    ///
    /// # Errors
    /// Where it is none.
    pub fn new(text: &'t str, path: &'t Arc<Path>) -> Result<Reader<'t>> {
        let file = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            // The parser does not name the key, which is at the place that it points to.
            let key = text.get(span.clone()).filter(|_| error.message() == DUPLICATE);
            let key = key.map_or_else(String::new, |key| format!(" {}", shown(key)));
            let what = format!("{}{key}", error.message());
            ConfigError::Syntax { place: SourceLocation::of(path, text, &span), what }
        })?;
        Ok(Reader { text, path, file })
    }

    /// The table of the whole file.
    pub fn table(&'t self) -> Table<'t> {
        Table { reader: self, name: String::new(), at: 0..0, entries: self.file.get_ref() }
    }

    fn place(&self, span: Range<usize>) -> SourceLocation {
        SourceLocation::of(self.path, self.text, &span)
    }
}

/// A table, and where it stands.
pub struct Table<'t> {
    reader: &'t Reader<'t>,
    name: String,
    at: Range<usize>,
    entries: &'t DeTable<'t>,
}

/// The value of a key.
pub struct Entry<'t> {
    reader: &'t Reader<'t>,
    key: String,
    value: &'t Spanned<DeValue<'t>>,
}

impl<'t> Table<'t> {
    fn key(&self, key: &str) -> String {
        match self.name.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.name),
        }
    }

    /// Where it stands.
    pub fn place(&self) -> SourceLocation {
        self.reader.place(self.at.clone())
    }

    /// That it has no other keys than these.
    ///
    /// # Errors
    /// The first that it has, and which there are.
    pub fn check_keys(&self, known: &[&'static str]) -> Result<()> {
        // Entries are in the order of their names; the first in the file is told.
        let unknown = self.entries.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        Err(ConfigError::UnknownKey {
            place: self.reader.place(key.span()),
            key: self.key(&shown(key.get_ref())),
            expected: one_of(known),
            hint: closest(key.get_ref(), known),
        })
    }

    /// The value of a key, if it is there.
    pub fn get(&self, key: &str) -> Option<Entry<'t>> {
        let value = self.entries.get(key)?;
        Some(Entry { reader: self.reader, key: self.key(key), value })
    }

    /// What `read` makes of the value of a key, if it is there.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Entry<'t>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.get(key).map(|entry| read(&entry)).transpose()
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// It is missing, and what it would be.
    pub fn require(&self, key: &str, expected: &str) -> Result<Entry<'t>> {
        self.get(key).ok_or_else(|| ConfigError::Missing {
            place: self.place(),
            key: self.key(key),
            expected: expected.into(),
        })
    }

    /// All keys with their values, as they stand in the file.
    pub fn entries(&self) -> Vec<(&'t str, Entry<'t>)> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_by_key(|(key, _)| key.span().start);
        let entry = |key: &str, value| Entry { reader: self.reader, key: self.key(key), value };
        all.into_iter()
            .map(|(key, value)| (key.get_ref().as_ref(), entry(key.get_ref(), value)))
            .collect()
    }
}

impl<'t> Entry<'t> {
    /// Where it stands.
    pub fn place(&self) -> SourceLocation {
        self.reader.place(self.value.span())
    }

    /// The key, with the tables in which it stands.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value as it was parsed.
    pub fn value(&self) -> &'t DeValue<'t> {
        self.value.get_ref()
    }

    /// That it is something else than what was expected.
    pub fn wrong(&self, expected: impl Into<String>) -> ConfigError {
        self.wrong_with(expected.into(), None)
    }

    fn wrong_with(&self, expected: String, hint: Option<&'static str>) -> ConfigError {
        let found = match self.value.get_ref() {
            DeValue::String(text) if text.is_empty() => "an empty text".into(),
            DeValue::String(text) => format!("{:?}", shown(text)),
            DeValue::Integer(number) => shown(number.as_str()),
            DeValue::Float(number) => shown(number.as_str()),
            DeValue::Boolean(truth) => truth.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Array(values) if values.is_empty() => "an empty array".into(),
            DeValue::Array(_) => "an array".into(),
            DeValue::Table(_) => "a table".into(),
        };
        let from = format!("{}: {}", self.place(), self.key);
        ConfigError::Value { from, expected, found, hint }
    }

    /// A text.
    ///
    /// # Errors
    /// It is none.
    pub fn text(&self, expected: &str) -> Result<&'t str> {
        self.value.get_ref().as_str().ok_or_else(|| self.wrong(expected))
    }

    /// One of some words.
    ///
    /// # Errors
    /// It is none of them, and which was meant.
    pub fn keyword<T: FromStr>(&self, words: &[&'static str]) -> Result<T> {
        let text = self.text(&one_of(words))?;
        text.parse().map_err(|_| self.wrong_with(one_of(words), closest(text, words)))
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// It is neither.
    pub fn boolean(&self) -> Result<bool> {
        self.value.get_ref().as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// The name of a host.
    ///
    /// # Errors
    /// It is none.
    pub fn host(&self) -> Result<String> {
        let text = self.text("a host name")?;
        match invalid_host_reason(text) {
            Some(expected) => Err(self.wrong(expected)),
            None => Ok(text.to_owned()),
        }
    }

    /// A whole number that is not negative.
    pub fn unsigned(&self) -> Option<u64> {
        match self.value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    /// A number of these.
    ///
    /// # Errors
    /// It is none, or not one of these; `what` is what it would be.
    pub fn number(&self, what: &str, range: RangeInclusive<f64>) -> Result<f64> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .map(|number| number as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.wrong(format!("{what}, {} to {}", range.start(), range.end())))
    }

    /// A whole number from 1 on.
    ///
    /// # Errors
    /// It is none.
    pub fn count(&self) -> Result<NonZeroU32> {
        let number = self.unsigned().and_then(|number| u32::try_from(number).ok());
        number
            .and_then(NonZeroU32::new)
            .ok_or_else(|| self.wrong(format!("a whole number, 1 to {}", u32::MAX)))
    }

    /// A table.
    ///
    /// # Errors
    /// It is none.
    pub fn table(&self, expected: &str) -> Result<Table<'t>> {
        let entries = self.value.get_ref().as_table().ok_or_else(|| self.wrong(expected))?;
        Ok(Table { reader: self.reader, name: self.key.clone(), at: self.value.span(), entries })
    }

    /// What `read` makes of each value of an array.
    ///
    /// # Errors
    /// It is none, or those of `read`.
    pub fn each<T>(&self, read: impl FnMut(&Entry<'t>) -> Result<T>) -> Result<Vec<T>> {
        let values = self.value.get_ref().as_array();
        let values = values.ok_or_else(|| self.wrong("an array, such as [\"…\", \"…\"]"))?;
        let entry = |value| Entry { reader: self.reader, key: self.key.clone(), value };
        let entries: Vec<Entry<'t>> = values.iter().map(entry).collect();
        entries.iter().map(read).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_named() {
        let path: Arc<Path> = Path::new("robot.toml").into();
        for (text, said) in [
            (
                "[node.a]\ndir = 1\n[node.b]\ndir = 1\n dir = 2\n",
                "robot.toml:5:2: duplicate key dir",
            ),
            ("[node.arm]\n[node.arm]\n", "robot.toml:2:7: duplicate key arm"),
        ] {
            let error = Reader::new(text, &path).err().expect(text);
            assert_eq!(error.to_string(), said);
        }
    }
}
