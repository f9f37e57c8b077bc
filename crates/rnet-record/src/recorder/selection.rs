//! Selection of the recorded publishers.

use std::fmt;

use rnet::inspect::{PublisherInfo, UnreadPublisher};
use rnet::limits::{MAX_NODE_NAME_LEN_BYTES, MAX_TOPIC_LEN_BYTES};
use rnet::{NamePattern, Result, TopicName};

/// Which publishers are recorded; by default all. A publisher must match every kind of criterion that is
/// given.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    topics: Vec<NamePattern>,
    types: Vec<String>,
    nodes: Vec<NamePattern>,
    hosts: Vec<String>,
    excluded: Vec<NamePattern>,
}

impl Selection {
    /// Selects topics by name or pattern: `*` matches one part of a name and `**` any number of parts.
    ///
    /// # Errors
    /// `BadName`.
    pub fn topic(mut self, pattern: &str) -> Result<Self> {
        self.topics.push(NamePattern::new("topic pattern", pattern, MAX_TOPIC_LEN_BYTES)?);
        Ok(self)
    }

    /// Selects messages of this type, by its full name or its last part: `foxglove.LaserScan`, `LaserScan`.
    pub fn type_name(mut self, name: &str) -> Self {
        self.types.push(name.to_owned());
        self
    }

    /// Selects publishers of nodes by name or pattern.
    ///
    /// # Errors
    /// `BadName`.
    pub fn node(mut self, pattern: &str) -> Result<Self> {
        self.nodes.push(NamePattern::new("node pattern", pattern, MAX_NODE_NAME_LEN_BYTES)?);
        Ok(self)
    }

    /// Selects publishers of this host's nodes.
    pub fn host(mut self, name: &str) -> Self {
        self.hosts.push(name.to_owned());
        self
    }

    /// Excludes topics by name or pattern.
    ///
    /// # Errors
    /// `BadName`.
    pub fn exclude(mut self, pattern: &str) -> Result<Self> {
        self.excluded.push(NamePattern::new("topic pattern", pattern, MAX_TOPIC_LEN_BYTES)?);
        Ok(self)
    }

    /// Whether the messages of this publisher are recorded on the host `own_host`.
    pub fn includes(&self, publisher: &PublisherInfo, own_host: &str) -> bool {
        let (host, node) = host_and_node(&publisher.node, own_host);
        let type_name = publisher.type_desc.name().unwrap_or("bytes");
        let is_of = |wanted: &String| {
            wanted == type_name
                || type_name.strip_suffix(&**wanted).is_some_and(|rest| rest.ends_with('.'))
        };
        any(&self.topics, |pattern| pattern.matches(&publisher.topic))
            && any(&self.types, is_of)
            && any(&self.nodes, |pattern| pattern.matches(node))
            && any(&self.hosts, |wanted| wanted == host)
            && !self.excluded.iter().any(|pattern| pattern.matches(&publisher.topic))
    }

    /// Whether an unread publisher may match, as far as it is known.
    pub fn may_include(&self, unheard: &UnreadPublisher, own_host: &str) -> bool {
        let (host, node) = host_and_node(&unheard.node, own_host);
        let may_be = |pattern: &NamePattern| match &unheard.topic {
            Some(topic) => pattern.matches(topic),
            // A pattern with a `*` is not a topic name.
            None => TopicName::new(pattern.as_str()).map_or(true, |name| unheard.may_be_of(&name)),
        };
        let is_excluded = |topic: &str| self.excluded.iter().any(|pattern| pattern.matches(topic));
        any(&self.topics, may_be)
            && any(&self.nodes, |pattern| pattern.matches(node))
            && any(&self.hosts, |wanted| wanted == host)
            && !unheard.topic.as_deref().is_some_and(is_excluded)
    }
}

/// The criteria as a suffix of a noun: `of /scan in /lidar `; empty if all publishers match.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns = |named: &[NamePattern]| -> Vec<String> {
            named.iter().map(|pattern| pattern.as_str().to_owned()).collect()
        };
        let all = [
            ("of", patterns(&self.topics)),
            ("of type", self.types.clone()),
            ("in", patterns(&self.nodes)),
            ("on host", self.hosts.clone()),
            ("except", patterns(&self.excluded)),
        ];
        all.iter()
            .filter(|(_, named)| !named.is_empty())
            .try_for_each(|(word, named)| write!(f, "{word} {} ", named.join(" or ")))
    }
}

/// Whether the list is empty, or contains a match.
fn any<T>(named: &[T], is_it: impl FnMut(&T) -> bool) -> bool {
    named.is_empty() || named.iter().any(is_it)
}

/// Host and name of a node, which may be the `@host/node` that a proxy represents.
pub fn host_and_node<'a>(node: &'a str, own_host: &'a str) -> (&'a str, &'a str) {
    let parts = node.strip_prefix('@').and_then(|rest| rest.split_at_checked(rest.find('/')?));
    parts.unwrap_or((own_host, node))
}
