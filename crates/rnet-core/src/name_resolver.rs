//! Resolves the names in a program to names of the domain: a namespace and remapping rules.
//!
//! As in ROS 2 (<https://design.ros2.org/articles/topic_and_service_names.html>), a name without a leading
//! `/` is relative to the namespace, `~/x` is relative to the node's name, and rules apply to the result.
//! Unlike in ROS 2, a rule may also move a whole subtree of names, so that programs with absolute names can
//! be moved too.

use crate::error::{Error, Result};
use crate::name::{NodeName, TopicName};

/// Names with the same meaning on every node; rules cannot remap them.
const FIXED_TOPICS: [&str; 2] = ["/log", "/clock"];
/// Prefix of the internal names of robot-net.
const RESERVED_PREFIX: &str = "/_rnet/";
/// Prefix of a rule for node names.
const NODE_RULE_PREFIX: &str = "node:";
/// Suffix on both sides of a rule that moves a subtree.
const SUBTREE_SUFFIX: &str = "/**";
/// In a rule for nodes: any node.
const WILDCARD: &str = "*";
/// Maximum number of rules per node. Opening an endpoint scans them linearly.
const MAX_RULES: usize = 1024;

/// Whether a topic is internal to robot-net (calls, commands, the link). Tools show these on request only.
pub fn is_internal(topic: &str) -> bool {
    topic.starts_with(RESERVED_PREFIX)
}

/// The namespace and the rules of a node.
///
/// ```
/// use rnet_core::NameResolver;
/// let rules = NameResolver::parse_rules("/scan=/left/scan, node:lidar=eye")?;
/// let naming = NameResolver::new(Some("/left"), &rules)?;
/// let node = naming.node("lidar")?;
/// assert_eq!(node.as_str(), "/left/eye");
/// assert_eq!(naming.topic(&node, "/scan")?.as_str(), "/left/scan");
/// assert_eq!(naming.topic(&node, "points")?.as_str(), "/left/points");
/// assert_eq!(naming.topic(&node, "~/dirty")?.as_str(), "/left/eye/dirty");
/// # Ok::<(), rnet_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameResolver {
    /// The namespace with its leading `/`; empty for none.
    namespace: String,
    node_rules: Vec<(String, String)>,
    topic_rules: Vec<(String, String)>,
}

impl NameResolver {
    /// Rules are pairs of an old and a new name, as returned by [`NameResolver::parse_rules`]. The first
    /// matching rule applies.
    ///
    /// # Errors
    /// `BadValue` for an invalid namespace or rule.
    pub fn new(namespace: Option<&str>, rules: &[(String, String)]) -> Result<NameResolver> {
        let namespace = match namespace {
            // The spellings of an empty namespace in ROS 2.
            None | Some("" | "/") => String::new(),
            Some(given) => match TopicName::new(given) {
                Ok(name) => name.into(),
                Err(error) => {
                    let why = format!("invalid name {given:?}: {}", reason(error));
                    return Err(Error::BadValue { what: "namespace".to_owned(), why });
                }
            },
        };
        let mut naming = NameResolver { namespace, ..NameResolver::default() };
        if rules.len() > MAX_RULES {
            let why = format!("{} rules exceed the limit of {MAX_RULES}", rules.len());
            return Err(Error::BadValue { what: "remap".to_owned(), why });
        }
        for (from, to) in rules {
            naming.add_rule(from, to).map_err(|why| Error::BadValue {
                what: "remap".to_owned(),
                why: format!("the rule {:?}: {why}", format!("{from}={to}")),
            })?;
        }
        Ok(naming)
    }

    /// Parses rules in the form `FROM=TO,FROM=TO`, as in `RNET_REMAP`.
    ///
    /// # Errors
    /// `BadValue` for a part that is not a rule.
    pub fn parse_rules(text: &str) -> Result<Vec<(String, String)>> {
        let parts = text.split(',').map(str::trim).enumerate().filter(|(_, part)| !part.is_empty());
        let rule = |(at, part): (usize, &str)| match part.split_once('=') {
            Some((from, to)) => Ok((from.trim().to_owned(), to.trim().to_owned())),
            None => Err(Error::BadValue {
                what: "remap".to_owned(),
                why: format!(
                    "rule {} is {part:?}; expected FROM=TO, such as /scan=/left/scan; separate rules with commas",
                    at + 1
                ),
            }),
        };
        parts.map(rule).collect()
    }

    fn add_rule(&mut self, from: &str, to: &str) -> std::result::Result<(), String> {
        let why = |error: Error| match error {
            Error::BadName { name, why, .. } => format!("invalid name {name:?}: {why}"),
            other => other.to_string(),
        };
        if let Some(node) = from.strip_prefix(NODE_RULE_PREFIX) {
            let from = match node {
                WILDCARD => WILDCARD.to_owned(),
                node => self.absolute::<NodeName>(None, node).map_err(why)?.into(),
            };
            let to = to.strip_prefix(NODE_RULE_PREFIX).unwrap_or(to);
            let to = self.absolute::<NodeName>(None, to).map_err(why)?;
            self.node_rules.push((from, to.into()));
            return Ok(());
        }
        let sides = (from.strip_suffix(SUBTREE_SUFFIX), to.strip_suffix(SUBTREE_SUFFIX));
        let [from_name, to_name] = match sides {
            (Some(from), Some(to)) => [from, to],
            (None, None) => [from, to],
            _ => {
                return Err(format!(
                    "{SUBTREE_SUFFIX} must be at the end of both names or of neither"
                ));
            }
        };
        // The root: `/**=/left/**` moves all names.
        let is_root = |side: Option<&str>| side == Some("");
        for (name, side) in [(from_name, sides.0), (to_name, sides.1)] {
            let is_name = is_root(side) || name.starts_with("~/");
            if !is_name {
                self.absolute::<TopicName>(None, name).map_err(why)?;
            } else if let Some(rest) = name.strip_prefix("~/") {
                TopicName::new(rest).map_err(why)?;
            }
            if format!("{name}/").starts_with(RESERVED_PREFIX) || FIXED_TOPICS.contains(&name) {
                return Err(format!("{name} is a name of robot-net itself and cannot be remapped"));
            }
        }
        self.topic_rules.push((from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// Resolves the name of a node.
    ///
    /// # Errors
    /// `BadName`.
    pub fn node(&self, name: &str) -> Result<NodeName> {
        let node: NodeName = self.absolute(None, name)?;
        let rule =
            self.node_rules.iter().find(|(from, _)| from == WILDCARD || from == node.as_str());
        rule.map_or(Ok(node), |(_, to)| NodeName::new(to))
    }

    /// Resolves the name of a topic, service, action or command of this node.
    ///
    /// # Errors
    /// `BadName`.
    pub fn topic(&self, node: &NodeName, name: &str) -> Result<TopicName> {
        let topic: TopicName = self.absolute(Some(node), name)?;
        if self.topic_rules.is_empty()
            || is_internal(topic.as_str())
            || FIXED_TOPICS.contains(&topic.as_str())
        {
            return Ok(topic);
        }
        for (from, to) in &self.topic_rules {
            let Some((from, to)) =
                from.strip_suffix(SUBTREE_SUFFIX).zip(to.strip_suffix(SUBTREE_SUFFIX))
            else {
                if self.absolute::<TopicName>(Some(node), from)? == topic {
                    return self.absolute(Some(node), to);
                }
                continue;
            };
            let root = |name: &str| match name {
                "" => Ok(String::new()),
                name => self.absolute::<TopicName>(Some(node), name).map(String::from),
            };
            let below = topic.as_str().strip_prefix(&root(from)?);
            if let Some(below) = below.filter(|below| below.starts_with('/')) {
                return TopicName::new(&format!("{}{below}", root(to)?));
            }
        }
        Ok(topic)
    }

    /// Makes a name absolute with a prefix.
    fn absolute<N: for<'n> TryFrom<&'n str, Error = Error>>(
        &self,
        node: Option<&NodeName>,
        name: &str,
    ) -> Result<N> {
        match (name.strip_prefix("~/"), node) {
            (Some(rest), Some(node)) => N::try_from(&format!("{node}/{rest}")),
            _ if name.starts_with('/') || self.namespace.is_empty() => N::try_from(name),
            // The error refers to the name as given.
            _ => N::try_from(name).and_then(|_| N::try_from(&format!("{}/{name}", self.namespace))),
        }
    }
}

/// The reason in an error.
fn reason(error: Error) -> String {
    match error {
        Error::BadName { why, .. } => why,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naming(namespace: &str, rules: &str) -> NameResolver {
        NameResolver::new(Some(namespace), &NameResolver::parse_rules(rules).unwrap()).unwrap()
    }

    fn topic(naming: &NameResolver, name: &str) -> String {
        naming.topic(&NodeName::new("/arm").unwrap(), name).unwrap().into()
    }

    #[test]
    fn names_are_unchanged_without_namespace_and_rules() {
        let plain = NameResolver::default();
        assert_eq!(plain.node("lidar").unwrap().as_str(), "/lidar");
        for (given, kept) in [("scan", "/scan"), ("/a/b", "/a/b"), ("~/dirty", "/arm/dirty")] {
            assert_eq!(topic(&plain, given), kept);
        }
        for none in ["", "/"] {
            assert_eq!(naming(none, ""), plain);
        }
    }

    #[test]
    fn relative_names_go_below_the_namespace_and_absolute_ones_do_not() {
        let left = naming("left/eye", "");
        assert_eq!(left.node("lidar").unwrap().as_str(), "/left/eye/lidar");
        assert_eq!(left.node("/lidar").unwrap().as_str(), "/lidar");
        assert_eq!(topic(&left, "scan"), "/left/eye/scan");
        assert_eq!(topic(&left, "/scan"), "/scan");
        assert_eq!(topic(&left, "~/scan"), "/arm/scan");
    }

    #[test]
    fn first_matching_rule_applies_once() {
        let swapped = naming("", "/a=/b, /b=/a, /a=/c");
        assert_eq!((topic(&swapped, "a"), topic(&swapped, "/b")), ("/b".into(), "/a".into()));
        assert_eq!(topic(&swapped, "/a/b"), "/a/b");
        let left = naming("/left", "scan=points, ~/x=/x");
        assert_eq!(topic(&left, "scan"), "/left/points");
        assert_eq!(topic(&left, "/left/scan"), "/left/points");
        assert_eq!(topic(&left, "/scan"), "/scan");
        assert_eq!(topic(&left, "~/x"), "/x");
    }

    #[test]
    fn rule_moves_a_subtree() {
        let moved = naming("", "/cam/raw=/raw, /cam/**=/left/**, /up/**=/**");
        assert_eq!(topic(&moved, "/cam/raw"), "/raw");
        assert_eq!(topic(&moved, "/cam/image/small"), "/left/image/small");
        assert_eq!(topic(&moved, "/cam"), "/cam");
        assert_eq!(topic(&moved, "/camera/image"), "/camera/image");
        assert_eq!(topic(&moved, "/up/x"), "/x");
        let all = naming("", "/**=/left/**");
        assert_eq!(topic(&all, "/scan"), "/left/scan");
        for fixed in ["/log", "/clock", "/_rnet/call/plan/s0"] {
            assert_eq!(topic(&all, fixed), fixed);
        }
    }

    #[test]
    fn node_rules_rename_nodes() {
        let left = naming("/left", "/lidar=/topic, node:lidar=eye, node:/far=node:/near");
        assert_eq!(left.node("lidar").unwrap().as_str(), "/left/eye");
        assert_eq!(left.node("/lidar").unwrap().as_str(), "/lidar");
        assert_eq!(left.node("/far").unwrap().as_str(), "/near");
        assert_eq!(naming("", "node:*=only").node("any").unwrap().as_str(), "/only");
    }

    #[test]
    fn invalid_rules_are_rejected_with_reason() {
        let why = |rules: &str| {
            let made =
                NameResolver::parse_rules(rules).and_then(|rules| NameResolver::new(None, &rules));
            made.unwrap_err().to_string()
        };
        assert!(why("/a=/b,/c").contains("rule 2 is \"/c\""), "{}", why("/a=/b,/c"));
        assert!(why("/a b=/c").contains("' ' at character 3"), "{}", why("/a b=/c"));
        assert!(why("/a=").contains("it is empty"), "{}", why("/a="));
        assert!(why("/a=/b=/c").contains("'=' at character 3"), "{}", why("/a=/b=/c"));
        assert!(why("/a/**=/b").contains("both names or of neither"), "{}", why("/a/**=/b"));
        assert!(why("/*=/b").contains("'*' at character 2"), "{}", why("/*=/b"));
        assert!(why("~=/b").contains("'~'"), "{}", why("~=/b"));
        assert!(why("~/=/b").contains("empty"), "{}", why("~/=/b"));
        assert!(why("node:~/a=/b").contains("'~'"), "{}", why("node:~/a=/b"));
        for name in ["/clock", "/log", "/_rnet/call/a", "/_rnet/**"] {
            let to = if name.ends_with(SUBTREE_SUFFIX) { "/b/**" } else { "/b" };
            assert!(why(&format!("{name}={to}")).contains("of robot-net itself"), "{name}");
            assert!(why(&format!("{to}={name}")).contains("of robot-net itself"), "{name}");
        }
        let many = "/a=/b,".repeat(MAX_RULES + 1);
        assert!(why(&many).contains("1025 rules"), "{}", why(&many));
        assert!(
            NameResolver::new(Some("/a b"), &[]).unwrap_err().to_string().contains("character 3")
        );
        let long = naming(&"n".repeat(200), "");
        assert!(long.topic(&NodeName::new("a").unwrap(), &"x".repeat(80)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_gives_rules_or_an_error(text in "\\PC{0,30}|[a/~*=,:node]{0,24}", name in "[a/~]{0,6}") {
            if let Ok(naming) = NameResolver::parse_rules(&text).and_then(|rules| NameResolver::new(Some("/ns"), &rules)) {
                let node = NodeName::new("/arm").unwrap();
                // Every result is a valid name.
                if let Ok(topic) = naming.topic(&node, &name) {
                    prop_assert_eq!(TopicName::new(topic.as_str()).unwrap(), topic);
                }
            }
        }
    }
}
