//! The namespace of a node and the names that are changed for it.

use rnet::{NameResolver, NodeName, TopicName};
use rnet_config::{Entry, Result, Table};

use super::node::name_error;
use super::vars::Vars;

const NAMESPACE: &str = "namespace";
const REMAP: &str = "remap";

/// What `namespace` and `remap` of a node say. The node's process gets it by variables.
pub struct NodeNaming {
    /// The namespace alone: for names of nodes in the file, which are those of the domain.
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
        // Names hold no comma and no '=', so the process reads the same rules.
        let text: Vec<String> = rules.iter().map(|(from, to)| format!("{from}={to}")).collect();
        names.env.push((REMAP, "RNET_REMAP", text.join(",")));
        Ok(names)
    }

    /// A node that the file names.
    pub fn node(&self, name: &str) -> rnet::Result<NodeName> {
        self.nodes.node(name)
    }

    /// A topic as the node's program calls it.
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
