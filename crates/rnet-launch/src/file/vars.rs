//! Variables: values in the file that the command line may set. A variable has the type of its default.

use std::collections::BTreeMap;
use std::fmt;

use rnet_config::{ConfigError, Entry, Result, Table, one_of};
use toml::de::DeValue;

/// The variable that always exists: the name of the host.
const HOST: &str = "host";

/// The variables of a launch.
pub struct Vars {
    known: BTreeMap<String, Var>,
    /// Values of the command line.
    overrides: Vec<(String, String)>,
}

/// A variable, and the location of its default, which determines its type.
struct Var {
    value: VarValue,
    place: String,
}

/// A value of a variable.
#[derive(Clone, Debug, PartialEq)]
enum VarValue {
    Text(String),
    Bool(bool),
    Int(i64),
}

impl VarValue {
    fn read(entry: &Entry<'_>) -> Result<VarValue> {
        let whole =
            |number: &str, radix| i64::from_str_radix(number, radix).ok().map(VarValue::Int);
        let word = match entry.value() {
            DeValue::String(text) => Some(VarValue::Text(text.clone().into_owned())),
            DeValue::Boolean(truth) => Some(VarValue::Bool(*truth)),
            DeValue::Integer(number) => whole(number.as_str(), number.radix()),
            _ => None,
        };
        word.ok_or_else(|| entry.wrong("a string, true, false or a 64-bit whole number"))
    }

    /// Parses text of the command line as this value's type; `None` if it is of another.
    fn parse_like(&self, text: &str) -> Option<VarValue> {
        match self {
            VarValue::Text(_) => Some(VarValue::Text(text.to_owned())),
            VarValue::Bool(_) => text.parse().ok().map(VarValue::Bool),
            VarValue::Int(_) => text.parse().ok().map(VarValue::Int),
        }
    }

    fn has_same_type(&self, other: &VarValue) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// The name of its type.
    fn type_name(&self) -> &'static str {
        match self {
            VarValue::Text(_) => "a string",
            VarValue::Bool(_) => "true or false",
            VarValue::Int(_) => "a whole number",
        }
    }
}

impl fmt::Display for VarValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VarValue::Text(text) => f.write_str(text),
            VarValue::Bool(truth) => truth.fmt(f),
            VarValue::Int(number) => number.fmt(f),
        }
    }
}

impl Var {
    /// What a value of it must be, and why.
    fn expected(&self, name: &str) -> String {
        match name {
            HOST => format!("{}, because host names are strings", self.value.type_name()),
            _ => {
                format!("{}, like the default of {name} at {}", self.value.type_name(), self.place)
            }
        }
    }
}

impl Vars {
    /// Variables with the values of the command line.
    pub fn with_overrides(set: &[(String, String)]) -> Vars {
        Vars { known: BTreeMap::new(), overrides: set.to_vec() }
    }

    /// Sets the name of the host, which exists without `[var]` too.
    pub fn set_host(&mut self, host: &str) {
        let host = Var { value: VarValue::Text(host.into()), place: String::new() };
        self.known.insert(HOST.into(), host);
    }

    /// Adds the variables of a file. A variable of an including file keeps its value and must have the same
    /// type.
    pub fn declare(&mut self, table: &Table<'_>) -> Result<()> {
        for (name, entry) in table.entries() {
            let is_word =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_word || name == HOST {
                return Err(entry.wrong("a name of letters, digits and '_', other than host"));
            }
            let value = VarValue::read(&entry)?;
            if let Some(before) = self.known.get(name) {
                if !before.value.has_same_type(&value) {
                    return Err(entry.wrong(before.expected(name)));
                }
                continue;
            }
            let mut var = Var { value, place: entry.place().to_string() };
            if let Some((_, text)) = self.overrides.iter().rev().find(|(chosen, _)| chosen == name)
            {
                var.value = var.value.parse_like(text).ok_or_else(|| {
                    let found = format!("{text:?}");
                    ConfigError::value(format!("--set {name}"), var.expected(name), found)
                })?;
            }
            self.known.insert(name.to_owned(), var);
        }
        Ok(())
    }

    /// Checks that the command line sets only existing variables.
    pub fn check_overrides(&self) -> Result<()> {
        let missing =
            |(name, _): &&(String, String)| name == HOST || !self.known.contains_key(name);
        let Some((name, _)) = self.overrides.iter().find(missing) else { return Ok(()) };
        Err(ConfigError::value("--set", self.names(), format!("{name:?}")))
    }

    fn names(&self) -> String {
        let names: Vec<&str> =
            self.known.keys().map(String::as_str).filter(|name| *name != HOST).collect();
        match names.is_empty() {
            true => "no variable, because the file has no [var]".into(),
            false => format!("one of the variables {}", one_of(&names)),
        }
    }

    /// Whether the variables have the values in a table.
    pub fn match_all(&self, table: &Table<'_>) -> Result<bool> {
        let mut all = true;
        for (name, entry) in table.entries() {
            let var = self.known.get(name).ok_or_else(|| {
                entry.wrong(format!("{} (declared before this table)", self.names()))
            })?;
            let value = VarValue::read(&entry)?;
            if !var.value.has_same_type(&value) {
                return Err(entry.wrong(var.expected(name)));
            }
            all &= var.value == value;
        }
        Ok(all)
    }

    /// Replaces each `${name}` in a text by its value; `$$` is a dollar.
    pub fn expand(&self, entry: &Entry<'_>, text: &str) -> Result<String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            rest = if let Some(after) = after.strip_prefix('$') {
                filled.push('$');
                after
            } else if let Some((name, after)) =
                after.strip_prefix('{').and_then(|after| after.split_once('}'))
            {
                let var = self.known.get(name);
                let var = var.ok_or_else(|| {
                    entry.wrong(format!("in ${{…}}: {} ({})", self.names(), environment_hint(name)))
                })?;
                filled.push_str(&var.value.to_string());
                after
            } else {
                let word = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
                let name: String = after.chars().take_while(word).collect();
                return Err(entry.wrong(format!(
                    "${{NAME}} for a variable of [var], or $$ for a dollar ({})",
                    environment_hint(if name.is_empty() { "NAME" } else { &name })
                )));
            };
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

/// Explains how to use an environment variable: through a shell, or as a variable of the file.
fn environment_hint(name: &str) -> String {
    format!(
        "launch files do not read environment variables: use a shell, [\"sh\", \"-c\", \"… $${name} …\"], or \
         declare {name} in [var] and start with --set {name}=VALUE"
    )
}
