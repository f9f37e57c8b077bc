//! The namespace and the remapped names of a node.

use rnet::{NameResolver, NodeName, TopicName};
use rnet_config::{Entry, Result, Table};

use super::node::name_error;
use super::vars::Vars;

const NAMESPACE: &str = "namespace";
const REMAP: &str = "remap";

/// `namespace` and `remap` of a node. Its process gets them by environment variables.
pub struct NodeNaming {
    /// Only the namespace: node names in the file are names of the domain.
    nodes: NameResolver,
    all: NameResolver,
    /// Key, variable and its value.
    env: Vec<(&'static str, &'static str, String)>,
}

impl NodeNaming {
    pub fn read(table: &Table<'_>, vars: &Vars) -> Result<NodeNaming> {
        let mut names = NodeNaming {
            nodes: NameResolver::default(),
            all: NameResolver::default(),
            env: Vec::new(),
        };
        let mut namespace = None;
        if let Some(entry) = table.get(NAMESPACE) {
            let given = vars.expand(&entry, entry.text("a namespace, such as \"/left\"")?)?;
            names.nodes = NameResolver::new(Some(&given), &[])
                .map_err(|error| naming_error(&entry, error))?;
            names.all = names.nodes.clone();
            names.env.push((NAMESPACE, "RNET_NAMESPACE", given.clone()));
            namespace = Some(given);
        }
        let Some(entry) = table.get(REMAP) else { return Ok(names) };
        let mut rules = Vec::new();
        for (from, to) in entry.table("a table, such as { \"/scan\" = \"/left/scan\" }")?.entries()
        {
            let rule = (from.to_owned(), vars.expand(&to, to.text("a name")?)?);
            NameResolver::new(namespace.as_deref(), std::slice::from_ref(&rule))
                .map_err(|error| naming_error(&to, error))?;
            rules.push(rule);
        }
        names.all = NameResolver::new(namespace.as_deref(), &rules)
            .map_err(|error| naming_error(&entry, error))?;
        // Names contain neither a comma nor '=', so the process parses the same rules.
        let text: Vec<String> = rules.iter().map(|(from, to)| format!("{from}={to}")).collect();
        names.env.push((REMAP, "RNET_REMAP", text.join(",")));
        Ok(names)
    }

    /// Resolves the name of a node in the file.
    pub fn node(&self, name: &str) -> rnet::Result<NodeName> {
        self.nodes.node(name)
    }

    /// Resolves a topic name of the node's program.
    pub fn topic(&self, node: &NodeName, name: &str) -> rnet::Result<TopicName> {
        self.all.topic(node, name)
    }

    /// Key of the file, variable and its value.
    pub fn env(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        self.env.iter().map(|(key, variable, value)| (*key, *variable, value.as_str()))
    }
}

fn naming_error(entry: &Entry<'_>, error: rnet::Error) -> rnet_config::ConfigError {
    name_error(entry, "names", error)
}
