//! What a host may do.

use std::fmt;

use rnet_core::{MAX_TOPIC_LEN_BYTES, NamePattern, key_name};

use crate::{KeyError, Result};

/// A kind of access to a host's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Publish to a topic.
    Publish,
    /// Subscribe to a topic.
    Subscribe,
    /// Call a service or an action, or push to a work queue.
    Call,
    /// Drive a command topic.
    Drive,
    /// Read keys of the state.
    Read,
    /// Write keys of the state.
    Write,
}

impl Right {
    /// All kinds.
    pub const ALL: [Right; 6] =
        [Right::Publish, Right::Subscribe, Right::Call, Right::Drive, Right::Read, Right::Write];

    /// The word in certificates and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Right::Publish => "publish",
            Right::Subscribe => "subscribe",
            Right::Call => "call",
            Right::Drive => "drive",
            Right::Read => "read",
            Right::Write => "write",
        }
    }

    /// Checks a pattern of names that this right applies to: topics, services and commands, or keys of the
    /// state, whose names may contain more characters.
    ///
    /// # Errors
    /// The pattern and what is wrong with it.
    pub fn pattern(self, text: &str) -> Result<NamePattern> {
        let pattern = match self {
            Right::Read | Right::Write => {
                let parts = text.split('/').map(|part| match part {
                    "*" | "**" => "_",
                    part => part,
                });
                let as_key = parts.collect::<Vec<_>>().join("/");
                key_name(&as_key).and_then(|_| NamePattern::foreign("key pattern", text))
            }
            _ => NamePattern::new("topic pattern", text, MAX_TOPIC_LEN_BYTES),
        };
        pattern.map_err(|why| KeyError::Request(why.to_string()))
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The names that a host may access, by patterns. The default allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights(Vec<(Right, NamePattern)>);

impl Rights {
    /// Every right on every name.
    pub fn all() -> Rights {
        let everything = |right: Right| Some((right, NamePattern::foreign("pattern", "/**").ok()?));
        Rights(Right::ALL.into_iter().filter_map(everything).collect())
    }

    /// Adds a right on the names that a pattern matches.
    pub fn allow(&mut self, right: Right, pattern: NamePattern) {
        let new = (right, pattern);
        if !self.0.contains(&new) {
            self.0.push(new);
        }
    }

    /// Whether a name, given with its leading `/`, may be accessed.
    pub fn allows(&self, right: Right, name: &str) -> bool {
        self.0.iter().any(|(of, pattern)| *of == right && pattern.matches(name))
    }

    /// The patterns of one right.
    pub fn patterns(&self, right: Right) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(of, _)| *of == right).map(|(_, pattern)| pattern.as_str())
    }
}
