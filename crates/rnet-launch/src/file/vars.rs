//! Variables: words that the file names and the command line may choose. A variable has the type of its default.

use std::collections::BTreeMap;
use std::fmt;

use rnet_config::{ConfigError, Entry, Result, Table, one_of};
use toml::de::DeValue;

/// The variable that is always there: the name of the host.
const HOST: &str = "host";

/// The variables of a launch.
pub struct Vars {
    known: BTreeMap<String, Var>,
    /// What the command line says, and whether a file has such a variable.
    chosen: Vec<(String, String)>,
}

/// A variable, and where its default stands, which says of which type it is.
struct Var {
    value: Word,
    place: String,
}

/// A value of a variable.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    Text(String),
    Truth(bool),
    Whole(i64),
}

impl Word {
    fn read(entry: &Entry<'_>) -> Result<Word> {
        let whole = |number: &str, radix| i64::from_str_radix(number, radix).ok().map(Word::Whole);
        let word = match entry.value() {
            DeValue::String(text) => Some(Word::Text(text.clone().into_owned())),
            DeValue::Boolean(truth) => Some(Word::Truth(*truth)),
            DeValue::Integer(number) => whole(number.as_str(), number.radix()),
            _ => None,
        };
        word.ok_or_else(|| entry.wrong("a string, true, false or a 64-bit whole number"))
    }

    /// A word of this one's type, as the command line has it; `None` if it is of another.
    fn like(&self, text: &str) -> Option<Word> {
        match self {
            Word::Text(_) => Some(Word::Text(text.to_owned())),
            Word::Truth(_) => text.parse().ok().map(Word::Truth),
            Word::Whole(_) => text.parse().ok().map(Word::Whole),
        }
    }

    fn is_like(&self, other: &Word) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// What its type is.
    fn kind(&self) -> &'static str {
        match self {
            Word::Text(_) => "a string",
            Word::Truth(_) => "true or false",
            Word::Whole(_) => "a whole number",
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Text(text) => f.write_str(text),
            Word::Truth(truth) => truth.fmt(f),
            Word::Whole(number) => number.fmt(f),
        }
    }
}

impl Var {
    /// What a value of it must be, and why.
    fn expected(&self, name: &str) -> String {
        match name {
            HOST => format!("{}, because host names are strings", self.value.kind()),
            _ => format!("{}, like the default of {name} at {}", self.value.kind(), self.place),
        }
    }
}

impl Vars {
    /// Those of the command line.
    pub fn chosen(set: &[(String, String)]) -> Vars {
        Vars { known: BTreeMap::new(), chosen: set.to_vec() }
    }

    /// The name of the host, which is there without `[var]` too.
    pub fn say_host(&mut self, host: &str) {
        let host = Var { value: Word::Text(host.into()), place: String::new() };
        self.known.insert(HOST.into(), host);
    }

    /// Adds those of a file. One that an including file has keeps its value, and must be of its type.
    pub fn declare(&mut self, table: &Table<'_>) -> Result<()> {
        for (name, entry) in table.entries() {
            let is_word =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_word || name == HOST {
                return Err(entry.wrong("a name of letters, digits and '_', other than host"));
            }
            let value = Word::read(&entry)?;
            if let Some(before) = self.known.get(name) {
                if !before.value.is_like(&value) {
                    return Err(entry.wrong(before.expected(name)));
                }
                continue;
            }
            let mut var = Var { value, place: entry.place().to_string() };
            if let Some((_, text)) = self.chosen.iter().rev().find(|(chosen, _)| chosen == name) {
                var.value = var.value.like(text).ok_or_else(|| {
                    let found = format!("{text:?}");
                    ConfigError::value(format!("--set {name}"), var.expected(name), found)
                })?;
            }
            self.known.insert(name.to_owned(), var);
        }
        Ok(())
    }

    /// That the command line has chosen no value for a variable that there is not.
    pub fn check_chosen(&self) -> Result<()> {
        let missing =
            |(name, _): &&(String, String)| name == HOST || !self.known.contains_key(name);
        let Some((name, _)) = self.chosen.iter().find(missing) else { return Ok(()) };
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

    /// Whether the variables have the values that a table names.
    pub fn hold(&self, table: &Table<'_>) -> Result<bool> {
        let mut all = true;
        for (name, entry) in table.entries() {
            let var = self.known.get(name).ok_or_else(|| {
                entry.wrong(format!("{} (declared before this table)", self.names()))
            })?;
            let value = Word::read(&entry)?;
            if !var.value.is_like(&value) {
                return Err(entry.wrong(var.expected(name)));
            }
            all &= var.value == value;
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
                let var = self.known.get(name);
                let var = var.ok_or_else(|| {
                    entry.wrong(format!("in ${{…}}: {} ({})", self.names(), no_environment(name)))
                })?;
                filled.push_str(&var.value.to_string());
                after
            } else {
                let word = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
                let name: String = after.chars().take_while(word).collect();
                return Err(entry.wrong(format!(
                    "${{NAME}} for a variable of [var], or $$ for a dollar ({})",
                    no_environment(if name.is_empty() { "NAME" } else { &name })
                )));
            };
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

/// How something that looks like a variable of the environment is read: by a shell, or as a variable of the file.
fn no_environment(name: &str) -> String {
    format!(
        "launch files do not read environment variables: use a shell, [\"sh\", \"-c\", \"… $${name} …\"], or \
         declare {name} in [var] and start with --set {name}=VALUE"
    )
}
