//! Variables: words that the file names and the command line may choose.

use std::collections::BTreeMap;

use rnet_config::{ConfigError, Entry, Result, Table, one_of};
use toml::de::DeValue;

/// The variable that is always there: the name of the host.
const HOST: &str = "host";

/// The variables of a launch.
pub struct Vars {
    values: BTreeMap<String, String>,
    /// What the command line says, and whether a file has such a variable.
    chosen: Vec<(String, String)>,
}

impl Vars {
    /// Those of the command line.
    pub fn chosen(set: &[(String, String)]) -> Vars {
        Vars { values: BTreeMap::new(), chosen: set.to_vec() }
    }

    /// The name of the host, which is there without `[var]` too.
    pub fn say_host(&mut self, host: &str) {
        self.values.insert(HOST.into(), host.into());
    }

    /// Adds those of a file. One that an including file has keeps its value.
    pub fn declare(&mut self, table: &Table<'_>) -> Result<()> {
        for (name, entry) in table.entries() {
            let is_word =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_word || name == HOST {
                return Err(entry.wrong("a name of letters, digits and '_', other than host"));
            }
            let default = word(&entry)?;
            let chosen = self.chosen.iter().rev().find(|(chosen, _)| chosen == name);
            let value = chosen.map_or(default, |(_, value)| value.clone());
            self.values.entry(name.to_owned()).or_insert(value);
        }
        Ok(())
    }

    /// That the command line has chosen no value for a variable that there is not.
    pub fn check_chosen(&self) -> Result<()> {
        let missing =
            |(name, _): &&(String, String)| name == HOST || !self.values.contains_key(name);
        let Some((name, _)) = self.chosen.iter().find(missing) else { return Ok(()) };
        Err(ConfigError::Value {
            from: "--set".into(),
            expected: self.known(),
            found: format!("{name:?}"),
            hint: None,
        })
    }

    fn known(&self) -> String {
        let names: Vec<&str> =
            self.values.keys().map(String::as_str).filter(|name| *name != HOST).collect();
        match names.is_empty() {
            true => "no variable: the file has no [var]".into(),
            false => format!("one of the variables {}", one_of(&names)),
        }
    }

    /// Whether the variables have the values that a table names.
    pub fn hold(&self, table: &Table<'_>) -> Result<bool> {
        let mut all = true;
        for (name, entry) in table.entries() {
            let value = self
                .values
                .get(name)
                .ok_or_else(|| entry.wrong(format!("{} before it", self.known())))?;
            all &= *value == word(&entry)?;
        }
        Ok(all)
    }

    /// A text with the value of each `${name}` in its place; `$$` is a dollar.
    pub fn filled(&self, entry: &Entry<'_>, text: &str) -> Result<String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            rest = if let Some(after) = after.strip_prefix('$') {
                filled.push('$');
                after
            } else if let Some((name, after)) =
                after.strip_prefix('{').and_then(|after| after.split_once('}'))
            {
                let value = self.values.get(name);
                filled.push_str(
                    value.ok_or_else(|| entry.wrong(format!("{} in ${{…}}", self.known())))?,
                );
                after
            } else {
                return Err(entry.wrong("${NAME} for a variable, or $$ for a dollar"));
            };
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

/// A value as a word.
fn word(entry: &Entry<'_>) -> Result<String> {
    match entry.value() {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Boolean(truth) => Ok(truth.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_owned()),
        _ => Err(entry.wrong("a text, true, false or a whole number")),
    }
}
