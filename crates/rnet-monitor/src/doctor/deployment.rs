//! The deployment: what removes the directory of running nodes, and what isolates containers.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rnet::inspect::{Location, default_base};

use crate::Findings;

/// How long a restored directory counts as a problem, because the removal is likely to happen again.
const RECENT_REMOVAL_S: u64 = 24 * 3600;
/// Docker's default size of `/dev/shm`.
const DOCKER_SHM_BYTES: u64 = 64 << 20;
/// Lower numbers are system users, whose files systemd-logind does not remove.
const FIRST_REGULAR_UID: u32 = 1000;

/// How to prevent logind from removing the files of a user.
const LINGER_ADVICE: &str = "prevent systemd-logind from removing the files of logged-out users: run loginctl \
                      enable-linger, set RemoveIPC=no in /etc/systemd/logind.conf, run the nodes as a system \
                      user, or set RNET_DIR to a tmpfs directory outside /dev/shm";

/// Checks whether the directory, or a part of it, was removed while nodes were running.
pub fn directory_removed(findings: &mut Findings, location: &Location) {
    for (pid, node) in location.removed_nodes() {
        findings.problem(
            "removed",
            format!(
                "process {pid} is alive, but the folder of its node {node} was removed: new nodes cannot find it"
            ),
            "the node restores the folder within a second; if the process is suspended, resume it, otherwise \
             restart it",
        );
    }
    let Some((at, node)) = location.put_back_at() else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let ago = now.saturating_sub(at);
    let what = format!(
        "{} or a part of it was removed while nodes were running; it was restored {ago} s ago, last by {node}",
        location.path().display()
    );
    if ago < RECENT_REMOVAL_S {
        findings.problem("removed", what, LINGER_ADVICE);
    } else {
        findings.note("removed", what);
    }
}

/// Checks what may remove the directory or limit it: logind, Docker's defaults, other containers.
pub fn directory_risks(findings: &mut Findings, path: &Path, nodes: usize) {
    let base = path.parent().unwrap_or(path);
    let shm = base == default_base();
    if shm && logind_removes() {
        findings.note(
            "removeipc",
            format!(
                "systemd-logind removes this user's files in {} when the last session ends (RemoveIPC); nodes \
                 restore them, but cannot find each other until then; {LINGER_ADVICE}",
                base.display()
            ),
        );
    }
    let all = rustix::fs::statvfs(base).map_or(u64::MAX, |s| s.f_blocks.saturating_mul(s.f_frsize));
    if shm && all <= DOCKER_SHM_BYTES {
        findings.note(
            "shm_size",
            format!(
                "{} has only {} MiB, Docker's default for a container; to enlarge it: docker run --shm-size=1g",
                base.display(),
                all >> 20
            ),
        );
    }
    let contained =
        ["/.dockerenv", "/run/.containerenv"].iter().any(|file| Path::new(file).exists());
    if contained && nodes < 2 {
        findings.note(
            "container",
            format!(
                "this is a container, and {nodes} nodes are visible: other containers and the host are visible \
                 only if they share {}; start them with the same --ipc (docker run --ipc=host, or \
                 --ipc=container:NAME), or mount one tmpfs volume in all of them and set RNET_DIR",
                base.display()
            ),
        );
    }
}

/// Whether systemd-logind removes the files of this user; `false` if unknown.
fn logind_removes() -> bool {
    let uid = rustix::process::geteuid().as_raw();
    uid >= FIRST_REGULAR_UID
        && Path::new("/run/systemd/seats").exists()
        && !has_lingering(uid)
        && removes_ipc(Path::new("/"))
}

fn has_lingering(uid: u32) -> bool {
    let Ok(users) = std::fs::read_to_string("/etc/passwd") else { return false };
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    name.is_some_and(|name| Path::new("/var/lib/systemd/linger").join(name).exists())
}

/// The `RemoveIPC` setting of logind: the last one wins, and the default is on.
fn removes_ipc(root: &Path) -> bool {
    let mut files = vec![root.join("etc/systemd/logind.conf")];
    for folder in ["usr/lib", "run", "etc"] {
        let folder = root.join(folder).join("systemd/logind.conf.d");
        let mut here: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
        here.sort_by_key(std::fs::DirEntry::file_name);
        files.extend(here.into_iter().map(|entry| entry.path()));
    }
    let text = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    let mut removes = true;
    for text in text {
        for line in text.lines() {
            if let Some(value) = line.trim().strip_prefix("RemoveIPC=") {
                removes = !matches!(value.trim(), "no" | "false" | "0" | "off");
            }
        }
    }
    removes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_of_removeipc_wins() {
        let root = std::env::temp_dir().join(format!("rnet-logind-{}", std::process::id()));
        let conf = root.join("etc/systemd/logind.conf");
        let more = root.join("etc/systemd/logind.conf.d");
        std::fs::create_dir_all(&more).unwrap();
        assert!(removes_ipc(&root), "by default");
        std::fs::write(&conf, "[Login]\n#RemoveIPC=no\n").unwrap();
        assert!(removes_ipc(&root), "a comment");
        std::fs::write(&conf, "[Login]\nRemoveIPC=no\n").unwrap();
        assert!(!removes_ipc(&root));
        std::fs::write(more.join("50-robot.conf"), "[Login]\nRemoveIPC = yes\nRemoveIPC=yes\n")
            .unwrap();
        assert!(removes_ipc(&root));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
