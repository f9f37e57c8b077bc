//! The directory, the machine, other domains, and leftovers of dead nodes.

use std::path::Path;

use rnet::inspect::{Location, Snapshot, membarrier_is_offered};
use rnet::limits::DEFAULT_LOG_LEN_BYTES;
use rnet::{Error, NodeName, VERSION};
use rustix::fs::Access;

use crate::matching::NodeInOtherDomain;
use crate::{Findings, domains};
use rnet_format::units;
use rnet_record::blackbox::{NODE, RingMemory};

/// `statfs` type of tmpfs.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// With less, more publishers of an ordinary robot may not start: 32 logs of default length.
const MIN_FREE_BYTES: u64 = 32 * DEFAULT_LOG_LEN_BYTES;

/// Upper bound of the descriptors that a node needs for itself and its threads.
const FILES_PER_NODE: u64 = 32;
/// Upper bound of the descriptors that a node needs per peer (process handle, maps being opened).
const FILES_PER_PEER: u64 = 4;

pub fn machine(findings: &mut Findings) {
    if membarrier_is_offered() {
        findings.ok("membarrier", "the kernel supports membarrier(2): sends need no fence");
    } else {
        findings.note(
            "membarrier",
            "the kernel does not allow membarrier(2) (old kernel or seccomp filter): everything works, but \
             each send needs an extra fence",
        );
    }
}

/// Checks the directory; returns whether the domain can be read.
pub fn directory(findings: &mut Findings, location: &Location) -> bool {
    let (base, path) = (location.base(), location.path());
    let set_dir = "set RNET_DIR (or --dir) to a writable directory on tmpfs";
    match std::fs::metadata(base) {
        Err(e) => {
            let what = format!("the domain directory {} cannot be used: {e}", base.display());
            findings.problem("directory", what, set_dir);
            return false;
        }
        Ok(m) if !m.is_dir() => {
            findings.problem(
                "directory",
                format!("{} is not a directory", base.display()),
                set_dir,
            );
            return false;
        }
        Ok(_) => {}
    }
    if let Ok(stat) = rustix::fs::statfs(base)
        && stat.f_type != TMPFS_MAGIC
    {
        let what = format!(
            "{} is not on tmpfs: messages are delivered, but the kernel writes them to disk; set RNET_DIR to a \
             directory on tmpfs, such as /dev/shm",
            base.display()
        );
        findings.note("directory", what);
    }
    match location.exists() {
        Ok(true) => {
            let what = format!(
                "{} exists, belongs to this user or group, and has the layout version of this program",
                path.display()
            );
            findings.ok("directory", what);
            true
        }
        Ok(false) => {
            if rustix::fs::access(base, Access::WRITE_OK | Access::EXEC_OK).is_err() {
                let what = format!("cannot create a domain in {}", base.display());
                findings.problem("directory", what, set_dir);
                return false;
            }
            let what = format!(
                "no node has joined domain {} yet ({} does not exist)",
                location.id(),
                path.display()
            );
            findings.note("directory", what);
            true
        }
        Err(error) => {
            let advice = match &error {
                Error::LayoutVersion { .. } => {
                    "stop all nodes of the other version and remove the directory, or use another RNET_DOMAIN"
                }
                Error::NoPermission { .. } => {
                    "run all nodes as one user, or share the domain with a Unix group (RNET_GROUP), or use another \
                     RNET_DIR"
                }
                _ => set_dir,
            };
            let check =
                if matches!(error, Error::LayoutVersion { .. }) { "version" } else { "directory" };
            findings.problem(check, error.to_string(), advice);
            false
        }
    }
}

/// Checks shared memory and file descriptors.
pub fn capacity(findings: &mut Findings, path: &Path, nodes: usize) {
    let on = if path.exists() { path } else { path.parent().unwrap_or(path) };
    if let Ok(stat) = rustix::fs::statvfs(on) {
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let (free_mib, min_mib) = (free >> 20, MIN_FREE_BYTES >> 20);
        if free < MIN_FREE_BYTES {
            findings.problem(
                "space",
                format!("{free_mib} MiB of shared memory are free, less than the recommended {min_mib} MiB"),
                "enlarge the tmpfs (mount -o remount,size=…; docker run --shm-size), lower log_len_bytes or \
                 pool_limit_bytes of publishers, or delete other files on it",
            );
        } else {
            findings.ok("space", format!("{free_mib} MiB of shared memory are free"));
        }
    }
    let soft = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let need = FILES_PER_NODE + FILES_PER_PEER * nodes as u64;
    match soft {
        Some(soft) if soft < need => findings.problem(
            "files",
            format!("a process may open {soft} files, and a node needs {need} here"),
            format!("raise the limit: ulimit -n {}", need.next_power_of_two().max(1024)),
        ),
        _ => findings.ok("files", "a process may open as many files as a node needs"),
    }
}

/// Reports the memory of the black box, which is also shared memory.
pub fn black_box(findings: &mut Findings, path: &Path, snapshot: &Snapshot) {
    if snapshot.node(NODE).is_none() {
        return;
    }
    let Some(memory) = RingMemory::of(path) else { return };
    let most = memory
        .most_bytes
        .map_or_else(String::new, |most| format!(" of at most {}", units::bytes(most as f64)));
    findings.ok(
        "blackbox",
        format!(
            "the black box keeps {}{most} in {}",
            units::bytes(memory.ring_bytes as f64),
            memory.ring.display()
        ),
    );
}

/// The dead nodes that were not removed yet; the next snapshot removes them.
pub fn dead_nodes(findings: &mut Findings, location: &Location) -> Vec<String> {
    for (name, error) in location.unreadable_nodes() {
        findings.problem(
            "version",
            format!("cannot read the data of node {name}: {error}"),
            "run the same robot-net version in all processes of a domain",
        );
    }
    location.dead_nodes().into_iter().map(String::from).collect()
}

/// Reports leftovers of other users' nodes, which this user cannot remove.
pub fn foreign_leftovers(findings: &mut Findings, location: &Location) {
    for left in domains::foreign_leftovers(location)
        .into_iter()
        .chain(domains::foreign_inaccessible_files(location))
    {
        findings.problem("left_over", left.what, left.advice);
    }
}

/// Reports nodes of different versions.
pub fn versions(findings: &mut Findings, snapshot: &Snapshot) {
    for meta in snapshot.nodes.iter().map(|node| &node.meta).filter(|m| m.version != VERSION) {
        findings.note(
            "version",
            format!(
                "{} runs robot-net {}, this is {VERSION}; the layouts are compatible",
                meta.name, meta.version
            ),
        );
    }
}

/// Reports other domains in the same directory and returns their nodes: the missing node may be among them.
pub fn other_domains(
    findings: &mut Findings,
    location: &Location,
    nodes_here: usize,
) -> Vec<NodeInOtherDomain> {
    let mut elsewhere = Vec::new();
    let me = rustix::process::geteuid().as_raw();
    for other in domains::list_domain_dirs(location) {
        let domains::DomainDir { path, id, user, owner, .. } = &other;
        let path = path.display();
        match *user {
            _ if other.path == location.path() => continue,
            Some(user) if user == me => {
                if let Some(owner) = owner.filter(|owner| *owner != me) {
                    findings.note(
                        "left_over",
                        format!(
                            "{path} has the name of this user's domain directory but belongs to user {owner}: \
                             nodes of user {me} cannot join domain {id}; remove it: sudo rm -r {path}"
                        ),
                    );
                    continue;
                }
            }
            Some(user) if id == location.id() => {
                // Usually a part of the robot was started with sudo.
                let what = format!(
                    "user {user} also has a domain {id}: nodes of different users cannot communicate"
                );
                let advice = format!(
                    "start all nodes as one user; or set RNET_GROUP for all of them to a group that both users \
                     are in; or, if they should not communicate, use another domain (RNET_DOMAIN). If no node \
                     of user {user} runs, that user can remove {path}"
                );
                findings.problem("other_user", what, advice);
                continue;
            }
            Some(user) => {
                findings.note(
                    "other_user",
                    format!(
                        "user {user} has a domain {id}: nodes of different users cannot communicate unless \
                         both set RNET_GROUP"
                    ),
                );
                continue;
            }
            None => {}
        }
        match other.nodes(location) {
            Ok(nodes) if nodes.living.is_empty() => {}
            Ok(nodes) => {
                let how = other.options(location);
                let list = first_few(nodes.living.iter().map(NodeName::as_str));
                let what = format!("another domain has nodes: {list} ({how})");
                if nodes_here == 0 {
                    let advice =
                        format!("domain {} has no nodes: did you mean {how}?", location.id());
                    findings.problem("other_domain", what, advice);
                } else {
                    findings.note("other_domain", what);
                }
                elsewhere.extend(
                    nodes.living.into_iter().map(|node| NodeInOtherDomain {
                        domain: how.clone(),
                        node: node.to_string(),
                    }),
                );
            }
            Err(why) => findings.note("other_domain", format!("cannot inspect {path}: {why}")),
        }
    }
    elsewhere
}

/// The first few names, and the number of the others.
fn first_few<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
