//! The topic rules: which topics may cross, in which direction, and to or from which host.

use std::fmt;

use rnet::NamePattern;

use super::{Config, Direction, SourceLocation, pattern};

/// Topics that never cross, whatever the rules: each host has its own.
const LOCAL_ONLY_TOPICS: &[&str] = &["/_rnet/link", rnet::bridge::NODES_TOPIC];

/// Whether messages of matching topics may cross.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The topics.
    pub topic: NamePattern,
    /// The direction.
    pub direction: Direction,
    /// The other host; `None` for all.
    pub host: Option<String>,
    /// Whether the messages may cross.
    pub allow: bool,
    /// Its location; `None` for the built-in rule that keeps reserved topics on their host.
    pub place: Option<SourceLocation>,
}

impl Rule {
    fn matches(&self, topic: &str, direction: Direction, host: &str) -> bool {
        self.direction.covers(direction)
            && self.host.as_deref().is_none_or(|only| only == host)
            && self.topic.matches(topic)
    }
}

impl fmt::Display for Rule {
    /// The rule as text, with its location: `the rule "/camera/**" (robot.toml:7)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => {
                write!(
                    f,
                    "the rule {:?} ({}:{})",
                    self.topic.as_str(),
                    place.file.display(),
                    place.line
                )
            }
            None => write!(f, "the rule that {} stays on its host", self.topic),
        }
    }
}

impl Config {
    /// Checks that messages of `topic` may cross in `direction`, to or from `host`.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn allows(&self, topic: &str, direction: Direction, host: &str) -> Result<(), &Rule> {
        let mut rules = self.local_only_rules.iter().chain(&self.rules);
        match rules.find(|rule| rule.matches(topic, direction, host)) {
            Some(rule) if !rule.allow => Err(rule),
            _ => Ok(()),
        }
    }
}

/// The rules that precede all others.
pub(super) fn local_only_rules() -> Vec<Rule> {
    let rule = |name: &&str| {
        let topic = pattern(name).expect("the names of internal topics are valid patterns");
        Rule { topic, direction: Direction::Both, host: None, allow: false, place: None }
    };
    LOCAL_ONLY_TOPICS.iter().map(rule).collect()
}
