//! Who may depend on whom.
//!
//! The map is that of the design, §2, written down once more as a table that a program can read. An
//! edge that is not in the table is a finding, for normal, build and dev dependencies alike: a test
//! that reaches around the map is a design that needs reaching around. The few crates that stand
//! outside the map each need a page in docs/decisions/ that names them.

use crate::Finding;
use serde_json::Value;
use std::path::Path;

/// A crate of ours and the crates of ours that it may depend on. Crates in `crates/` go by their
/// package name, all others by their top directory.
type Row = (&'static str, &'static [&'static str]);

/// The map of the design, §2.
const MAP: &[Row] = &[
    ("rnet-core", &[]),
    ("rnet-ring", &[]),
    ("rnet-shm", &["rnet-core", "rnet-ring"]),
    ("rnet-schema", &[]),
    ("rnet-net", &["rnet", "rnet-core", "rnet-shm"]),
    ("rnet-node", &["rnet-core", "rnet-shm", "rnet-schema"]),
    ("rnet-call", &["rnet-node", "rnet-core", "rnet-shm"]),
    ("rnet-state", &["rnet-call", "rnet-node", "rnet-core", "rnet-shm", "rnet-schema"]),
    (
        "rnet-inspect",
        &["rnet-state", "rnet-call", "rnet-node", "rnet-core", "rnet-shm", "rnet-schema"],
    ),
    (
        "rnet",
        &[
            "rnet-inspect",
            "rnet-state",
            "rnet-call",
            "rnet-node",
            "rnet-core",
            "rnet-shm",
            "rnet-schema",
            "rnet-derive",
        ],
    ),
    ("rnet-record", &["rnet", "rnet-schema"]),
    ("rnet-c", &["rnet"]),
    ("rnet-cli", &["rnet", "rnet-record"]),
    ("python", &["rnet", "rnet-record"]),
    // Its crates may use each other: the harness, the drivers, the program (decision 0005).
    ("bench", &["rnet", "bench"]),
    ("examples", &["rnet"]),
];

const WORKSPACE_HACK: &str = "rnet-workspace-hack";

/// Crates beyond that map: each needs a page in docs/decisions/ that names it.
const OUTSIDE_MAP: &[Row] = &[
    ("rnet-build", &["rnet-schema"]),
    ("rnet-derive", &[]),
    // The file of settings is read in one way by the link and by the launcher (decision 0036).
    ("rnet-config", &["rnet-core"]),
    ("rnet-net", &["rnet-config"]),
    ("rnet-launch", &["rnet", "rnet-config", "rnet-core", "rnet-record"]),
    ("rnet-cli", &["rnet-launch"]),
    // What tools and dashboards show of a domain is read and judged once (decision 0005).
    ("rnet-monitor", &["rnet", "rnet-launch"]),
    ("rnet-cli", &["rnet-monitor"]),
    // The server of the page, with what it serves (decision 0046).
    ("rnet-dashboard", &["rnet", "rnet-access", "rnet-launch", "rnet-monitor", "rnet-record"]),
    ("rnet-cli", &["rnet-dashboard"]),
    // Viewers of the Foxglove protocol look at a domain or at a recording (decision 0046).
    ("rnet-foxglove", &["rnet", "rnet-access", "rnet-record"]),
    // The token and TLS of both servers (decision 0050).
    ("rnet-access", &[]),
    ("rnet-cli", &["rnet-foxglove"]),
    ("xtask", &[]),
    // Every crate may depend on it: it has no code (decision 0050).
    (WORKSPACE_HACK, &[]),
    // One reader of topologies and one protocol of workers, for the comparison and for `rnet bench` (decision 0005).
    ("rnet-bench", &[]),
    ("bench", &["rnet-bench"]),
    ("rnet-cli", &["rnet-bench"]),
    // The layer for `tracing` (decision 0005).
    ("rnet-tracing", &["rnet"]),
    ("rnet-demo", &["rnet"]),
    ("demo", &["rnet"]),
    (
        "fuzz",
        &["rnet", "rnet-core", "rnet-net", "rnet-record", "rnet-ring", "rnet-schema", "rnet-shm"],
    ),
    // Its crates may use each other: what kills nodes serves more than one of them.
    // The launcher is killed at its fail points, as the nodes are.
    ("tests", &["rnet", "rnet-launch", "tests"]),
    // A user's build script names it beside `rnet` (decision 0014).
    ("examples", &["rnet-build"]),
    ("tests", &["rnet-build"]),
];

/// Dependencies of one kind allowed against the map: kind, from, to, and the reason.
const EXCEPTIONS: &[(Kind, &str, &str, &str)] = &[
    (
        Kind::Dev,
        "rnet-derive",
        "rnet-core",
        "the derived code implements traits of rnet-core; its tests need them",
    ),
    (
        Kind::Build,
        "rnet",
        "rnet-build",
        "the types of the built-in messages are made as a user's are",
    ),
    (Kind::Build, "rnet-node", "rnet-build", "as of rnet: of the messages that the crate sends"),
    (Kind::Build, "rnet-call", "rnet-build", "as of rnet: of the messages that the crate sends"),
    (Kind::Build, "rnet-state", "rnet-build", "as of rnet: of the messages that the crate sends"),
    (
        Kind::Dev,
        "rnet-node",
        "rnet",
        "the examples on the pages of typed endpoints are those that users of rnet read",
    ),
    (Kind::Dev, "rnet-call", "rnet", "as of rnet-node: its examples are those of users"),
    (Kind::Dev, "rnet-state", "rnet", "as of rnet-node: its examples are those of users"),
    (Kind::Dev, "rnet-inspect", "rnet", "as of rnet-node: its examples are those of users"),
];

/// A foreign crate that only some of ours may name, by the start of its name.
struct ForeignRule {
    prefix: &'static str,
    allowed_in: &'static [&'static str],
    why: &'static str,
}

const FOREIGN: &[ForeignRule] = &[
    ForeignRule {
        prefix: "atomic-wait",
        allowed_in: &[],
        why: "its futexes are private to a process and wake nobody in another",
    },
    ForeignRule {
        prefix: "zenoh",
        allowed_in: &["rnet-net", "bench"],
        why: "rnet-net is the only crate that names Zenoh",
    },
    ForeignRule {
        prefix: "hyper",
        allowed_in: &["rnet-dashboard"],
        why: "pages are served in one place, and tokio stays out of everybody's API (decision 0046)",
    },
    ForeignRule {
        prefix: "pyo3",
        allowed_in: &["python"],
        why: "foreign types stay out of rnet; bindings convert",
    },
    ForeignRule {
        prefix: "prost-build",
        allowed_in: &["rnet-build"],
        why: "code is made in one place, without protoc (decision 0014)",
    },
    ForeignRule {
        prefix: "redb",
        allowed_in: &["rnet-state"],
        why: "durable state is written in one place, and none of redb's types leave it",
    },
    ForeignRule {
        prefix: "mcap",
        allowed_in: &["rnet-record"],
        why: "recordings are written and read in one place (docs/design/recording.md)",
    },
    ForeignRule {
        prefix: "memmap",
        allowed_in: &["rnet-shm"],
        why: "rnet-shm is the only crate that maps memory",
    },
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Normal,
    Dev,
    Build,
}

struct Edge {
    from: String,
    to: String,
    kind: Kind,
    ours: bool,
}

/// What `cargo metadata` said, of all workspaces of the repository.
#[derive(Default)]
pub struct Graph {
    /// Our crates: the name in the map, and the manifest's path from the root.
    crates: Vec<(String, String)>,
    edges: Vec<Edge>,
    /// Every foreign package in a lock file, direct or not.
    foreign: Vec<String>,
}

impl Graph {
    pub fn knows_manifest(&self, manifest: &str) -> bool {
        self.crates.iter().any(|(_, m)| m == manifest)
    }

    pub fn our_edges(&self) -> usize {
        self.edges.iter().filter(|e| e.ours).count()
    }

    pub fn summary(&self) -> String {
        let (ours, all) = (self.our_edges(), self.edges.len());
        let (crates, packages) = (self.crates.len(), self.foreign.len());
        format!(
            "{crates} crates, {ours} edges between them, {} to others, {packages} foreign packages",
            all - ours
        )
    }

    /// Adds the packages of one workspace, given the output of `cargo metadata`.
    pub fn add_metadata(&mut self, root: &Path, metadata: &Value) -> Result<(), String> {
        let root = root.to_str().ok_or("the path of the repository is not UTF-8")?;
        let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
        let mut local = Vec::new();
        for package in packages {
            let name = package["name"].as_str().ok_or("a package without a name")?;
            if !package["source"].is_null() {
                self.foreign.push(name.into());
                continue;
            }
            let manifest = package["manifest_path"].as_str().ok_or("a package without a path")?;
            let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
            local.push((name, name_in_map(name, manifest), manifest, package));
        }
        for (_, from, manifest, package) in &local {
            if self.knows_manifest(manifest) {
                continue;
            }
            self.crates.push((from.clone(), (*manifest).into()));
            for dependency in package["dependencies"].as_array().into_iter().flatten() {
                let name = dependency["name"].as_str().ok_or("a dependency without a name")?;
                let ours = dependency["source"].is_null();
                let target = local.iter().find(|l| ours && l.0 == name).map(|l| l.1.clone());
                self.edges.push(Edge {
                    from: from.clone(),
                    to: target.unwrap_or_else(|| name.into()),
                    kind: match dependency["kind"].as_str() {
                        Some("dev") => Kind::Dev,
                        Some("build") => Kind::Build,
                        _ => Kind::Normal,
                    },
                    ours,
                });
            }
        }
        Ok(())
    }
}

fn name_in_map(package: &str, manifest: &str) -> String {
    match manifest.split('/').next() {
        Some("crates" | "Cargo.toml") | None => package.into(),
        Some(directory) => directory.into(),
    }
}

/// Holds the graph to the map; `decisions` are the texts of the pages in docs/decisions/.
pub fn check(graph: &Graph, decisions: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, manifest) in &graph.crates {
        let in_map = MAP.iter().any(|row| row.0 == name);
        let known = in_map || OUTSIDE_MAP.iter().any(|row| row.0 == name);
        if !known {
            let text = format!("crate {name} is neither in the map nor in xtask/src/deps.rs");
            findings.push(Finding::new(manifest, text));
        }
        if !in_map && !decisions.iter().any(|page| names_word(page, name)) {
            let text =
                format!("crate {name} is beyond the map and no docs/decisions page names it");
            findings.push(Finding::new(manifest, text));
        }
    }
    for edge in &graph.edges {
        let text = if edge.ours { check_ours(edge) } else { check_foreign(edge) };
        findings.extend(text.map(|t| Finding::new(format!("{} -> {}", edge.from, edge.to), t)));
    }
    for rule in FOREIGN.iter().filter(|rule| rule.allowed_in.is_empty()) {
        if graph.foreign.iter().any(|name| name == rule.prefix) {
            let text = format!("forbidden, also by way of others: {}", rule.why);
            findings.push(Finding::new(rule.prefix, text));
        }
    }
    findings
}

fn check_ours(edge: &Edge) -> Option<String> {
    let allowed = MAP
        .iter()
        .chain(OUTSIDE_MAP)
        .any(|(from, to)| *from == edge.from && to.contains(&edge.to.as_str()));
    let excepted =
        EXCEPTIONS.iter().any(|e| e.0 == edge.kind && e.1 == edge.from && e.2 == edge.to);
    (!allowed && !excepted && edge.to != WORKSPACE_HACK)
        .then(|| format!("this {:?} dependency is not in the map (DESIGN §2)", edge.kind))
}

fn check_foreign(edge: &Edge) -> Option<String> {
    let rule = FOREIGN.iter().find(|rule| edge.to.starts_with(rule.prefix))?;
    (!rule.allowed_in.contains(&edge.from.as_str())).then(|| format!("forbidden: {}", rule.why))
}

/// Whether `page` has `name` as a word of its own: "rnet" does not occur in "rnet-core".
fn names_word(page: &str, name: &str) -> bool {
    page.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A graph of one crate with one dependency.
    fn graph(from: &str, manifest: &str, to: &str, kind: Option<&str>, ours: bool) -> Graph {
        let source = if ours { Value::Null } else { json!("registry") };
        let metadata = json!({"packages": [
            {"name": from, "source": null, "manifest_path": format!("/r/{manifest}"),
             "dependencies": [{"name": to, "source": source, "kind": kind}]},
            {"name": to, "source": source, "manifest_path": format!("/r/crates/{to}/Cargo.toml"),
             "dependencies": []},
        ]});
        let mut graph = Graph::default();
        graph.add_metadata(Path::new("/r"), &metadata).expect("well formed");
        graph
    }

    fn ours(from: &str, to: &str, kind: Option<&str>) -> Vec<Finding> {
        check(
            &graph(from, &format!("crates/{from}/Cargo.toml"), to, kind, true),
            &["`rnet-derive`, `rnet-build` and `rnet-workspace-hack`"],
        )
    }

    fn foreign(from: &str, manifest: &str, to: &str) -> Vec<Finding> {
        check(&graph(from, manifest, to, None, false), &[])
    }

    #[test]
    fn an_edge_of_the_map_passes_and_is_counted() {
        assert_eq!(ours("rnet-shm", "rnet-ring", None), []);
        assert_eq!(ours("rnet", "rnet-derive", None), []);
        let graph = graph("rnet-shm", "crates/rnet-shm/Cargo.toml", "rnet-ring", None, true);
        assert_eq!(graph.our_edges(), 1);
        assert_eq!(Graph::default().our_edges(), 0);
    }

    #[test]
    fn an_edge_outside_the_map_fails_whatever_its_kind() {
        for kind in [None, Some("dev"), Some("build")] {
            assert_eq!(ours("rnet", "rnet-ring", kind).len(), 1, "{kind:?}");
            assert_eq!(ours("rnet-core", "rnet-shm", kind).len(), 1, "{kind:?}");
        }
    }

    #[test]
    fn every_crate_may_depend_on_the_workspace_hack() {
        assert_eq!(ours("rnet", WORKSPACE_HACK, Some("dev")), []);
        assert_eq!(ours(WORKSPACE_HACK, "rnet", None).len(), 1);
    }

    #[test]
    fn an_excepted_edge_passes_as_dev_dependency_only() {
        assert_eq!(ours("rnet-derive", "rnet-core", Some("dev")), []);
        assert_eq!(ours("rnet-derive", "rnet-core", None).len(), 1);
    }

    #[test]
    fn an_excepted_edge_passes_as_build_dependency_only() {
        assert_eq!(ours("rnet", "rnet-build", Some("build")), []);
        assert_eq!(ours("rnet", "rnet-build", None).len(), 1);
        assert_eq!(ours("rnet", "rnet-build", Some("dev")).len(), 1);
    }

    #[test]
    fn a_crate_beyond_the_map_needs_a_page() {
        let graph = graph("xtask", "xtask/Cargo.toml", "serde_json", None, false);
        assert_eq!(check(&graph, &["`xtask` runs the checks"]), []);
        assert_eq!(check(&graph, &["`xtasks` is another word"]).len(), 1);
    }

    #[test]
    fn an_unknown_crate_fails_even_with_a_page() {
        let graph = graph("rnet-extra", "crates/rnet-extra/Cargo.toml", "libc", None, false);
        assert_eq!(check(&graph, &["rnet-extra"]).len(), 1);
    }

    #[test]
    fn foreign_crates_are_held_to_their_place() {
        assert_eq!(foreign("rnet-net", "crates/rnet-net/Cargo.toml", "zenoh"), []);
        assert_eq!(foreign("rnet", "crates/rnet/Cargo.toml", "zenoh-ext").len(), 1);
        assert_eq!(foreign("rnet-python", "python/Cargo.toml", "pyo3"), []);
        assert_eq!(foreign("rnet", "crates/rnet/Cargo.toml", "pyo3").len(), 1);
        assert_eq!(foreign("rnet", "crates/rnet/Cargo.toml", "memmap2").len(), 1);
    }

    #[test]
    fn a_crate_forbidden_everywhere_is_found_behind_others() {
        let graph = Graph { foreign: vec!["atomic-wait".into()], ..Graph::default() };
        assert_eq!(check(&graph, &[]).len(), 1);
    }
}
