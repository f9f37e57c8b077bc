//! Tables and values of a file, with their positions.

use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, SourceLocation, closest, one_of};
use crate::{Result, invalid_host_reason};

/// All tables of `robot.toml`, for any reader.
pub const FILE_KEYS: [&str; 5] = ["network", "include", "var", "node", "blackbox"];

/// The parser's message for a duplicate key.
const DUPLICATE: &str = "duplicate key";

/// The text of a file, with its path.
pub struct Reader<'t> {
    text: &'t str,
    path: &'t Arc<Path>,
    file: Spanned<DeTable<'t>>,
}

impl<'t> Reader<'t> {
    /// Parses the text as TOML.
    ///
    /// # Errors
    /// The position of a syntax error.
    pub fn new(text: &'t str, path: &'t Arc<Path>) -> Result<Reader<'t>> {
        let file = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            // The parser's message does not contain the key, which is at the reported position.
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

/// A table with its position.
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

    /// Its position.
    pub fn place(&self) -> SourceLocation {
        self.reader.place(self.at.clone())
    }

    /// Checks that it has only known keys.
    ///
    /// # Errors
    /// The first unknown key, and the known ones.
    pub fn check_keys(&self, known: &[&'static str]) -> Result<()> {
        // Entries are sorted by name; the first one in the file is reported.
        let unknown = self.entries.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        Err(ConfigError::UnknownKey {
            place: self.reader.place(key.span()),
            key: self.key(&shown(key.get_ref())),
            expected: one_of(known),
            hint: closest(key.get_ref(), known),
        })
    }

    /// The value of a key, if present.
    pub fn get(&self, key: &str) -> Option<Entry<'t>> {
        let value = self.entries.get(key)?;
        Some(Entry { reader: self.reader, key: self.key(key), value })
    }

    /// Parses the value of a key with `read`, if present.
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

    /// The value of a required key.
    ///
    /// # Errors
    /// The missing key, and the expected value.
    pub fn require(&self, key: &str, expected: &str) -> Result<Entry<'t>> {
        self.get(key).ok_or_else(|| ConfigError::Missing {
            place: self.place(),
            key: self.key(key),
            expected: expected.into(),
        })
    }

    /// All keys with their values, in the order of the file.
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
    /// Its position.
    pub fn place(&self) -> SourceLocation {
        self.reader.place(self.value.span())
    }

    /// The key, with its enclosing tables.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value as it was parsed.
    pub fn value(&self) -> &'t DeValue<'t> {
        self.value.get_ref()
    }

    /// The error that the value is not as expected.
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
    /// The value is not a text.
    pub fn text(&self, expected: &str) -> Result<&'t str> {
        self.value.get_ref().as_str().ok_or_else(|| self.wrong(expected))
    }

    /// One of several words.
    ///
    /// # Errors
    /// The value is not one of them; contains the most similar one.
    pub fn keyword<T: FromStr>(&self, words: &[&'static str]) -> Result<T> {
        let text = self.text(&one_of(words))?;
        text.parse().map_err(|_| self.wrong_with(one_of(words), closest(text, words)))
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// The value is not a boolean.
    pub fn boolean(&self) -> Result<bool> {
        self.value.get_ref().as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// A host name.
    ///
    /// # Errors
    /// The value is not a valid host name.
    pub fn host(&self) -> Result<String> {
        let text = self.text("a host name")?;
        match invalid_host_reason(text) {
            Some(expected) => Err(self.wrong(expected)),
            None => Ok(text.to_owned()),
        }
    }

    /// A non-negative integer.
    pub fn unsigned(&self) -> Option<u64> {
        match self.value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    /// A number in a range.
    ///
    /// # Errors
    /// The value is not a number in the range; `what` describes it.
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

    /// A positive integer.
    ///
    /// # Errors
    /// The value is not a positive integer.
    pub fn count(&self) -> Result<NonZeroU32> {
        let number = self.unsigned().and_then(|number| u32::try_from(number).ok());
        number
            .and_then(NonZeroU32::new)
            .ok_or_else(|| self.wrong(format!("a whole number, 1 to {}", u32::MAX)))
    }

    /// A table.
    ///
    /// # Errors
    /// The value is not a table.
    pub fn table(&self, expected: &str) -> Result<Table<'t>> {
        let entries = self.value.get_ref().as_table().ok_or_else(|| self.wrong(expected))?;
        Ok(Table { reader: self.reader, name: self.key.clone(), at: self.value.span(), entries })
    }

    /// Parses each value of an array with `read`.
    ///
    /// # Errors
    /// The value is not an array, or those of `read`.
    pub fn each<T>(&self, read: impl FnMut(&Entry<'t>) -> Result<T>) -> Result<Vec<T>> {
        let values = self.value.get_ref().as_array();
        let values = values.ok_or_else(|| self.wrong("an array, such as [\"…\", \"…\"]"))?;
        let entry = |value| Entry { reader: self.reader, key: self.key.clone(), value };
        let entries: Vec<Entry<'t>> = values.iter().map(entry).collect();
        entries.iter().map(read).collect()
    }
}

/// The given text, truncated for display.
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
    fn duplicate_key_is_reported() {
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
