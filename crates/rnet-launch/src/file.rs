//! `robot.toml` and its included files: they determine which nodes run.

mod blackbox;
mod names;
mod node;
mod vars;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rnet::NodeName;
use rnet_config::{
    ConfigError, Entry, FILE_KEYS, Reader, SourceLocation, Table, invalid_host_reason,
    network_host, this_host,
};

use self::blackbox::BlackBoxSettings;
use self::names::NodeNaming;
use self::vars::Vars;
use crate::node::Node;
use crate::{Result, dependency_order};

const INCLUDE_KEYS: [&str; 3] = ["file", "host", "when"];

/// The largest depth of files that include each other.
const MAX_INCLUDE_DEPTH: usize = 8;
/// The most nodes of a launch.
pub const MAX_NODES: usize = 256;

/// Options of the command line and the environment.
#[derive(Clone, Debug, Default)]
pub struct LaunchOptions {
    /// The host whose nodes are started: that of `--host` or `RNET_HOST`.
    pub host: Option<String>,
    /// Values of variables; they replace those of the file.
    pub set: Vec<(String, String)>,
    /// Where the black box writes its files unless the file specifies it.
    pub blackbox: PathBuf,
}

/// The nodes to start on this host.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The nodes, each after its dependencies.
    pub nodes: Vec<Node>,
    /// The absolute path of the file.
    pub file: PathBuf,
    /// The name of the host.
    pub host: String,
    /// All files that were read, with their text: a change of one changes the plan.
    pub read: Vec<(PathBuf, String)>,
    /// The hosts that the files name.
    pub hosts: BTreeSet<String>,
    /// Whether all included files were read.
    pub is_complete: bool,
    /// Nodes excluded by `host` or `when`.
    pub excluded: Vec<NodeName>,
    /// Nodes paired with an entry of their `after` that they do not wait for, because it is not started
    /// here.
    pub unstarted_dependencies: Vec<(NodeName, NodeName)>,
}

impl Plan {
    /// Checks that the files contain the host `named`, if they name hosts.
    ///
    /// # Errors
    /// They do not; the error lists their hosts.
    pub fn check_host(&self, named: &str) -> Result<()> {
        if self.hosts.is_empty() || self.hosts.contains(named) || !self.is_complete {
            return Ok(());
        }
        let expected = format!("one of the hosts {}", self.known_hosts());
        Err(ConfigError::value("--host", expected, format!("{named:?}")).into())
    }

    /// The settings that do not fit this machine, in the order of the nodes: a program that does not exist,
    /// a core that the machine does not have.
    pub fn requirement_errors(&self) -> Vec<ConfigError> {
        self.nodes.iter().flat_map(Node::requirement_errors).collect()
    }

    fn known_hosts(&self) -> String {
        let names: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
        rnet_config::one_of(&names)
    }

    /// Why there are no nodes to start; `None` if there are some.
    pub fn nothing_to_start_reason(&self) -> Option<String> {
        let (host, file) = (&self.host, self.file.display());
        let why = match self.excluded.len() {
            0 => format!("{file} has no nodes"),
            count if self.hosts.is_empty() => {
                format!("when excludes all {count} nodes of {file}")
            }
            count => format!(
                "host or when excludes all {count} nodes of {file}; its hosts are {}",
                self.known_hosts()
            ),
        };
        self.nodes.is_empty().then(|| format!("no nodes to start on host {host}: {why}"))
    }
}

/// A node and its location.
struct LoadedNode {
    node: Node,
    place: SourceLocation,
    after: Vec<(NodeName, String)>,
}

/// The files read so far.
struct Loader {
    vars: Vars,
    host: String,
    found: BTreeMap<NodeName, LoadedNode>,
    /// Nodes excluded by `host` or `when`.
    excluded: Vec<NodeName>,
    hosts: BTreeSet<String>,
    is_complete: bool,
    /// The table `[blackbox]` and its location.
    blackbox: Option<(BlackBoxSettings, SourceLocation)>,
    read: Vec<(PathBuf, String)>,
    include_stack: Vec<PathBuf>,
}

/// Reads a file and its includes.
///
/// # Errors
/// The first mistake: file, line, key, and what was expected.
pub fn load(path: &Path, options: &LaunchOptions) -> Result<Plan> {
    let unread = |why: std::io::Error| ConfigError::File {
        file: path.to_owned(),
        named_by: None,
        why: why.into(),
    };
    let file = path.canonicalize().map_err(unread)?;
    let host = options.host.clone().filter(|host| !host.is_empty());
    if let Some(expected) = host.as_deref().and_then(invalid_host_reason) {
        let found = format!("{:?}", host.unwrap_or_default());
        return Err(ConfigError::value("--host, RNET_HOST", expected, found).into());
    }
    let mut loader = Loader {
        vars: Vars::with_overrides(&options.set),
        host: host.unwrap_or_default(),
        found: BTreeMap::new(),
        excluded: Vec::new(),
        hosts: BTreeSet::new(),
        is_complete: true,
        blackbox: None,
        read: Vec::new(),
        include_stack: Vec::new(),
    };
    loader.file(path, &file)?;
    loader.vars.check_overrides()?;
    let Loader { host, found, excluded, hosts, is_complete, blackbox, read, .. } = loader;
    let unstarted_dependencies = unstarted_dependencies(&found, &excluded);
    let mut nodes = sort_by_dependency(found, &excluded)?;
    let companion = black_box(blackbox, &nodes, &file, &options.blackbox)?;
    // First, so that it records the start of the others.
    nodes.splice(..0, companion);
    Ok(Plan { nodes, file, host, read, hosts, is_complete, excluded, unstarted_dependencies })
}

/// The node of the black box, unless the file disables it or has its own.
fn black_box(
    said: Option<(BlackBoxSettings, SourceLocation)>,
    nodes: &[Node],
    file: &Path,
    output: &Path,
) -> Result<Option<Node>> {
    let name = NodeName::new(rnet_record::blackbox::NODE)?;
    let has_own = nodes.iter().any(|node| node.name == name);
    let (blackbox, place) = said.unzip();
    let blackbox = blackbox.unwrap_or_default();
    match place.filter(|_| has_own && blackbox.is_enabled()) {
        Some(place) => {
            let expected = format!("no table [blackbox], because node {name} is a black box");
            Err(ConfigError::value(format!("{place}: blackbox"), expected, "a table").into())
        }
        None if has_own || nodes.is_empty() || !blackbox.is_enabled() => Ok(None),
        None => {
            let dir = file.parent().unwrap_or(Path::new("/"));
            Ok(Some(blackbox.node(name, dir, output)))
        }
    }
}

impl Loader {
    /// Reads a file; errors call it `shown`.
    fn file(&mut self, shown: &Path, file: &Path) -> Result<()> {
        let text = rnet_config::text(file).map_err(|why| ConfigError::File {
            file: shown.to_owned(),
            named_by: None,
            why,
        })?;
        let is_first = self.include_stack.is_empty();
        self.include_stack.push(file.to_owned());
        self.read.push((file.to_owned(), text.clone()));
        let path: Arc<Path> = Arc::from(shown);
        let reader = Reader::new(&text, &path)?;
        let table = reader.table();
        table.check_keys(&FILE_KEYS)?;
        if is_first {
            let of_file = network_host(&table)?;
            self.hosts.extend(of_file.clone());
            if self.host.is_empty() {
                self.host = of_file.unwrap_or_else(this_host);
            }
        }
        self.vars.set_host(&self.host);
        if let Some(vars) = table.get("var") {
            self.vars.declare(&vars.table("a table [var]")?)?;
        }
        let dir = file.parent().unwrap_or(Path::new("/")).to_owned();
        if let Some(entry) = table.get("blackbox") {
            let said =
                BlackBoxSettings::read(&entry.table("a table [blackbox]")?, &self.vars, &dir)?;
            if let Some((_, before)) = &self.blackbox {
                let expected = format!("only one table [blackbox]; the first is at {before}");
                return Err(value_error(&entry)(expected, "another".into()).into());
            }
            self.blackbox = Some((said, entry.place()));
        }
        self.includes(&table, &dir)?;
        if let Some(nodes) = table.get("node") {
            for (name, entry) in nodes.table("tables [node.NAME]")?.entries() {
                self.node(name, &entry, &dir)?;
            }
        }
        self.include_stack.pop();
        Ok(())
    }

    fn includes(&mut self, table: &Table<'_>, dir: &Path) -> Result<()> {
        let Some(entry) = table.get("include") else { return Ok(()) };
        let mut files = Vec::new();
        entry.each(|entry| {
            let include = entry.table("a table [[include]]")?;
            include.check_keys(&INCLUDE_KEYS)?;
            let file = include.require("file", "the path of a file")?;
            let name = self.vars.expand(&file, file.text("the path of a file")?)?;
            let is_chosen = self.is_chosen(&include)?;
            self.is_complete &= is_chosen;
            if is_chosen {
                files.push((dir.join(&name), value_error(&file), format!("{name:?}")));
            }
            Ok(())
        })?;
        for (path, mistake, found) in files {
            let wrong = |expected: String| mistake(expected, found.clone());
            let file =
                path.canonicalize().map_err(|error| wrong(format!("a readable file ({error})")))?;
            if let Some(begin) = self.include_stack.iter().position(|before| *before == file) {
                let cycle = self.include_stack[begin..].iter().chain([&file]);
                let names: Vec<String> = cycle.map(|file| file.display().to_string()).collect();
                return Err(mistake("no cycle".into(), names.join(" -> ")).into());
            }
            if self.include_stack.len() >= MAX_INCLUDE_DEPTH {
                return Err(
                    wrong(format!("includes nested at most {MAX_INCLUDE_DEPTH} deep")).into()
                );
            }
            self.file(&path, &file)?;
        }
        Ok(())
    }

    fn node(&mut self, name: &str, entry: &Entry<'_>, dir: &Path) -> Result<()> {
        let table = entry.table("a table [node.NAME]")?;
        let names = NodeNaming::read(&table, &self.vars)?;
        let name = names
            .node(name)
            .map_err(|error| node::name_error(entry, "the name of a node", error))?;
        let found = node::read(&table, name.clone(), &names, &self.vars, dir)?;
        if !self.is_chosen(&table)? {
            self.excluded.push(name);
            return Ok(());
        }
        if let Some(before) = self.found.get(&name) {
            let expected = format!("a unique name; {} already uses it", before.place);
            return Err(value_error(entry)(expected, name.to_string()).into());
        }
        if self.found.len() >= MAX_NODES {
            return Err(value_error(entry)(
                format!("at most {MAX_NODES} nodes"),
                "one more".into(),
            )
            .into());
        }
        self.found.insert(name, found);
        Ok(())
    }

    /// Whether `host` and `when` of a table select it.
    fn is_chosen(&mut self, table: &Table<'_>) -> rnet_config::Result<bool> {
        let host = table.optional("host", Entry::host)?;
        self.hosts.extend(host.clone());
        let when = table
            .optional("when", |when| self.vars.match_all(&when.table("a table of variables")?))?;
        Ok(host.is_none_or(|host| host == self.host) && when.unwrap_or(true))
    }
}

/// Returns a function that makes an error from the expected and the found value, for use after the table is
/// gone.
fn value_error(entry: &Entry<'_>) -> impl Fn(String, String) -> ConfigError + use<> {
    let from = format!("{}: {}", entry.place(), entry.key());
    move |expected, found| ConfigError::value(from.clone(), expected, found)
}

/// The pairs of a node and an entry of its `after` that is not started here.
fn unstarted_dependencies(
    found: &BTreeMap<NodeName, LoadedNode>,
    excluded: &[NodeName],
) -> Vec<(NodeName, NodeName)> {
    let is_here = |name: &NodeName| found.contains_key(name) || !excluded.contains(name);
    let all =
        found.iter().flat_map(|(of, node)| node.after.iter().map(move |(name, _)| (of, name)));
    all.filter(|(_, name)| !is_here(name)).map(|(of, name)| (of.clone(), name.clone())).collect()
}

/// The nodes, each after its dependencies.
fn sort_by_dependency(
    mut found: BTreeMap<NodeName, LoadedNode>,
    excluded: &[NodeName],
) -> Result<Vec<Node>> {
    let names: Vec<String> = found.keys().map(ToString::to_string).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    for of in found.values() {
        let missing = |(name, _): &&(NodeName, String)| {
            !known.contains(&name.as_str()) && !excluded.contains(name)
        };
        if let Some((name, from)) = of.after.iter().find(missing) {
            let expected = format!("one of the nodes {}", rnet_config::one_of(&known));
            let found = format!("{:?}", name.as_str());
            return Err(ConfigError::value(from.clone(), expected, found).into());
        }
    }
    for of in found.values_mut() {
        // Nodes of another host are not waited for.
        of.node.after = of.after.iter().map(|(name, _)| name.clone()).collect();
        of.node.after.retain(|name| known.contains(&name.as_str()));
    }
    let after = found.iter().map(|(name, of)| (name.clone(), of.node.after.clone())).collect();
    let order = dependency_order::topological_order(&after).map_err(|cycle| {
        let first = &found[&cycle[0]];
        let from = first.after.iter().find(|(name, _)| *name == cycle[1]);
        let names: Vec<&str> = cycle.iter().map(NodeName::as_str).collect();
        let from = from.map(|(_, from)| from.clone()).unwrap_or_default();
        let found = format!("{} (each node waits for the next)", names.join(" -> "));
        ConfigError::value(from, "no cycle", found)
    })?;
    Ok(order.iter().filter_map(|name| found.remove(name)).map(|of| of.node).collect())
}

#[cfg(test)]
mod tests;
