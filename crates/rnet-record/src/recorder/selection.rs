//! Which publishers are recorded.

use std::fmt;

use rnet::inspect::{PublisherInfo, UnreadPublisher};
use rnet::limits::{MAX_NODE_NAME_LEN_BYTES, MAX_TOPIC_LEN_BYTES};
use rnet::{NamePattern, Result, TopicName};

/// What is recorded: everything, unless something is named. Who is named in several ways has to be right in each.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    topics: Vec<NamePattern>,
    types: Vec<String>,
    nodes: Vec<NamePattern>,
    hosts: Vec<String>,
    excluded: Vec<NamePattern>,
}

impl Selection {
    /// Topics of this name, or like this pattern, in which `*` stands for one part of a name and `**` for any number.
    ///
    /// # Errors
    /// `BadName`.
    pub fn topic(mut self, pattern: &str) -> Result<Self> {
        self.topics.push(NamePattern::new("topic pattern", pattern, MAX_TOPIC_LEN_BYTES)?);
        Ok(self)
    }

    /// Messages of this type, by its full name or the last part of it: `foxglove.LaserScan`, `LaserScan`.
    pub fn type_name(mut self, name: &str) -> Self {
        self.types.push(name.to_owned());
        self
    }

    /// What nodes of this name, or like this pattern, publish.
    ///
    /// # Errors
    /// `BadName`.
    pub fn node(mut self, pattern: &str) -> Result<Self> {
        self.nodes.push(NamePattern::new("node pattern", pattern, MAX_NODE_NAME_LEN_BYTES)?);
        Ok(self)
    }

    /// What nodes of this host publish.
    pub fn host(mut self, name: &str) -> Self {
        self.hosts.push(name.to_owned());
        self
    }

    /// Not the topics of this name, or like this pattern.
    ///
    /// # Errors
    /// `BadName`.
    pub fn exclude(mut self, pattern: &str) -> Result<Self> {
        self.excluded.push(NamePattern::new("topic pattern", pattern, MAX_TOPIC_LEN_BYTES)?);
        Ok(self)
    }

    /// Whether this publisher's messages are recorded on the host `own_host`.
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

    /// Whether this publisher may be one of those, as far as anything is known of it.
    pub fn may_include(&self, unheard: &UnreadPublisher, own_host: &str) -> bool {
        let (host, node) = host_and_node(&unheard.node, own_host);
        let may_be = |pattern: &NamePattern| match &unheard.topic {
            Some(topic) => pattern.matches(topic),
            // A pattern with a `*` is no name of a topic.
            None => TopicName::new(pattern.as_str()).map_or(true, |name| unheard.may_be_of(&name)),
        };
        let is_excluded = |topic: &str| self.excluded.iter().any(|pattern| pattern.matches(topic));
        any(&self.topics, may_be)
            && any(&self.nodes, |pattern| pattern.matches(node))
            && any(&self.hosts, |wanted| wanted == host)
            && !unheard.topic.as_deref().is_some_and(is_excluded)
    }
}

/// What was asked for, to stand behind a noun: `of /scan in /lidar `; nothing if it is everything.
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

/// Whether nothing is named, or this is among what is.
fn any<T>(named: &[T], is_it: impl FnMut(&T) -> bool) -> bool {
    named.is_empty() || named.iter().any(is_it)
}

/// Host and name of a node, which may be the `@host/node` for which a proxy stands.
pub fn host_and_node<'a>(node: &'a str, own_host: &'a str) -> (&'a str, &'a str) {
    let parts = node.strip_prefix('@').and_then(|rest| rest.split_at_checked(rest.find('/')?));
    parts.unwrap_or((own_host, node))
}
