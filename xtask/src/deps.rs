//! Checks the dependencies between crates.
//!
//! The table repeats the map of the design (§2) in machine-readable form. An edge that is not in the table is
//! a finding, for normal, build and dev dependencies alike, because a test that bypasses the map shows a
//! design problem. Each crate beyond the map needs a page in docs/decisions/ that contains its name.

use crate::Finding;
use serde_json::Value;
use std::path::Path;

/// A workspace crate and the workspace crates that it may depend on. Crates in `crates/` have their package
/// name, all others the name of their top-level directory.
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
    // Its crates may depend on each other: the harness, the drivers, the program (decision 0005).
    ("bench", &["rnet", "bench"]),
    ("examples", &["rnet"]),
];

const WORKSPACE_HACK: &str = "rnet-workspace-hack";

/// Crates beyond that map: each needs a page in docs/decisions/ that contains its name.
const OUTSIDE_MAP: &[Row] = &[
    ("rnet-build", &["rnet-schema"]),
    ("rnet-derive", &[]),
    // The link and the launcher read the settings file with the same code (decision 0036).
    ("rnet-config", &["rnet-core"]),
    ("rnet-net", &["rnet-config"]),
    ("rnet-launch", &["rnet", "rnet-config", "rnet-core", "rnet-record"]),
    ("rnet-cli", &["rnet-launch"]),
    // Recordings are a part of every language (decision 0052).
    ("rnet-c", &["rnet-record"]),
    // System calls without a safe wrapper are functions of `rnet_shm::os` (decision 0005).
    ("rnet-cli", &["rnet-shm"]),
    ("rnet-launch", &["rnet-shm"]),
    ("rnet-record", &["rnet-shm"]),
    // Messages, values and types as text (decision 0005).
    ("rnet-format", &["rnet", "rnet-core", "rnet-schema"]),
    ("rnet-record", &["rnet-format"]),
    ("rnet-c", &["rnet-format"]),
    ("rnet-cli", &["rnet-format", "rnet-schema"]),
    // What tools and dashboards show of a domain is read and judged once (decision 0005).
    ("rnet-monitor", &["rnet", "rnet-format", "rnet-launch", "rnet-record"]),
    ("rnet-cli", &["rnet-monitor"]),
    // The server of the page, with what it serves (decision 0046).
    (
        "rnet-dashboard",
        &[
            "rnet",
            "rnet-access",
            "rnet-format",
            "rnet-launch",
            "rnet-monitor",
            "rnet-record",
            "rnet-schema",
        ],
    ),
    ("rnet-cli", &["rnet-dashboard"]),
    // Foxglove viewers connect to a domain or a recording (decision 0046).
    ("rnet-foxglove", &["rnet", "rnet-access", "rnet-record"]),
    // The token and TLS of both servers (decision 0050).
    ("rnet-access", &[]),
    // Certificates, rights and tokens of hosts, read by the link and all servers (decision 0050).
    ("rnet-keys", &["rnet-config", "rnet-core"]),
    ("rnet-access", &["rnet-keys"]),
    ("rnet-net", &["rnet-keys"]),
    ("rnet-monitor", &["rnet-keys"]),
    ("rnet-cli", &["rnet-keys"]),
    ("rnet-cli", &["rnet-foxglove"]),
    // The C++ structs of the built-in messages are generated.
    ("xtask", &["rnet-schema"]),
    // Every crate may depend on it: it contains no code (decision 0050).
    (WORKSPACE_HACK, &[]),
    // `rnet bench`, `rnet demo`, and the topologies and workers that the comparison uses too (decision 0005).
    ("rnet-bench", &["rnet", "rnet-format"]),
    ("bench", &["rnet-bench"]),
    ("rnet-cli", &["rnet-bench"]),
    // The layer for `tracing` (decision 0005).
    ("rnet-tracing", &["rnet"]),
    ("rnet-demo", &["rnet"]),
    ("demo", &["rnet"]),
    (
        "fuzz",
        &[
            "rnet",
            "rnet-core",
            "rnet-keys",
            "rnet-net",
            "rnet-record",
            "rnet-ring",
            "rnet-schema",
            "rnet-shm",
        ],
    ),
    // Its crates may depend on each other: several use the code that kills nodes. The launcher is killed at
    // its fail points, like the nodes. `rnet-shm` arms the fail points.
    ("tests", &["rnet", "rnet-launch", "rnet-shm", "tests"]),
    // A user's build script depends on it in addition to `rnet` (decision 0014).
    ("examples", &["rnet-build"]),
    ("tests", &["rnet-build", "rnet-schema"]),
];

/// Exceptions for one kind of dependency: kind, from, to, and the reason.
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
        "generates the types of the built-in messages like a user's build script",
    ),
    (Kind::Build, "rnet-node", "rnet-build", "as of rnet: of the messages that the crate sends"),
    (Kind::Build, "rnet-call", "rnet-build", "as of rnet: of the messages that the crate sends"),
    (Kind::Build, "rnet-state", "rnet-build", "as of rnet: of the messages that the crate sends"),
    (
        Kind::Dev,
        "rnet-node",
        "rnet",
        "the examples on the pages of typed endpoints are those that users of rnet read, and the \
         integration tests use the public API",
    ),
    (Kind::Dev, "rnet-call", "rnet", "as of rnet-node: its examples and its integration tests"),
    (Kind::Dev, "rnet-state", "rnet", "as of rnet-node: its examples and its integration tests"),
    (Kind::Dev, "rnet-keys", "rnet-keys", "its tests issue certificates (feature `authority`)"),
    (Kind::Dev, "rnet-dashboard", "rnet-keys", "its tests issue certificates and tokens"),
    (Kind::Dev, "rnet-foxglove", "rnet-keys", "its tests issue certificates and tokens"),
    (Kind::Dev, "rnet-inspect", "rnet", "as of rnet-node: its examples are those of users"),
];

/// A foreign crate that only some workspace crates may depend on, by the prefix of its name.
struct ForeignRule {
    prefix: &'static str,
    allowed_in: &'static [&'static str],
    why: &'static str,
}

const FOREIGN: &[ForeignRule] = &[
    ForeignRule {
        prefix: "atomic-wait",
        allowed_in: &[],
        why: "its futexes are process-private and cannot wake other processes",
    },
    ForeignRule {
        prefix: "zenoh",
        allowed_in: &["rnet-net", "bench"],
        why: "only rnet-net uses Zenoh",
    },
    ForeignRule {
        prefix: "hyper",
        allowed_in: &["rnet-dashboard"],
        why: "only the web servers use it, and tokio stays out of public APIs (decision 0046)",
    },
    ForeignRule {
        prefix: "pyo3",
        allowed_in: &["python"],
        why: "foreign types stay out of rnet; the bindings convert them",
    },
    ForeignRule {
        prefix: "prost-build",
        allowed_in: &["rnet-build"],
        why: "only rnet-build generates code, without protoc (decision 0014)",
    },
    ForeignRule {
        prefix: "redb",
        allowed_in: &["rnet-state"],
        why: "only one crate writes durable state and hides redb's types",
    },
    ForeignRule {
        prefix: "mcap",
        allowed_in: &["rnet-record"],
        why: "only one crate reads and writes recordings (docs/design/recording.md)",
    },
    ForeignRule { prefix: "memmap", allowed_in: &["rnet-shm"], why: "only rnet-shm maps memory" },
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

/// The output of `cargo metadata` for all workspaces of the repository.
#[derive(Default)]
pub struct Graph {
    /// Workspace crates: the name in the map, and the manifest's path from the root.
    crates: Vec<(String, String)>,
    edges: Vec<Edge>,
    /// Every foreign package in a lock file, direct or transitive.
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

    /// Adds the packages of one workspace from the output of `cargo metadata`.
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

/// Checks the graph against the map; `decisions` are the texts of the pages in docs/decisions/.
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
            let text = format!(
                "crate {name} is beyond the map, but no docs/decisions page contains its name"
            );
            findings.push(Finding::new(manifest, text));
        }
    }
    for edge in &graph.edges {
        let text = if edge.ours { check_ours(edge) } else { check_foreign(edge) };
        findings.extend(text.map(|t| Finding::new(format!("{} -> {}", edge.from, edge.to), t)));
    }
    for rule in FOREIGN.iter().filter(|rule| rule.allowed_in.is_empty()) {
        if graph.foreign.iter().any(|name| name == rule.prefix) {
            let text = format!("forbidden, also as a transitive dependency: {}", rule.why);
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

/// Whether `page` contains `name` as a whole word: "rnet" does not occur in "rnet-core".
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
    fn foreign_crates_are_restricted_to_their_users() {
        assert_eq!(foreign("rnet-net", "crates/rnet-net/Cargo.toml", "zenoh"), []);
        assert_eq!(foreign("rnet", "crates/rnet/Cargo.toml", "zenoh-ext").len(), 1);
        assert_eq!(foreign("rnet-python", "python/Cargo.toml", "pyo3"), []);
        assert_eq!(foreign("rnet", "crates/rnet/Cargo.toml", "pyo3").len(), 1);
        assert_eq!(foreign("rnet", "crates/rnet/Cargo.toml", "memmap2").len(), 1);
    }

    #[test]
    fn forbidden_crate_is_found_as_transitive_dependency() {
        let graph = Graph { foreign: vec!["atomic-wait".into()], ..Graph::default() };
        assert_eq!(check(&graph, &[]).len(), 1);
    }
}
