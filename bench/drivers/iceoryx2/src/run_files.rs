//! Paths of a run's files and shared memory, and their removal.
//!
//! iceoryx2 keeps its files below a root path and its memory in `/dev/shm` under a prefix; here both are the
//! run's own, so that runs do not see each other's nodes. Each node that closes also cleans up after nodes
//! that died. What then remains is a counter that iceoryx2 leaves for the next node: the run's last node
//! removes it. If all processes of a run were killed, none cleans up; a link beside the memory names its
//! directory, and the next run removes the memory whose directory is gone.

use bench_harness::{Net, Result};
use iceoryx2::prelude::{Config, FileName, Path, SemanticString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

const MEMORY: &str = "/dev/shm";
const LINK: &str = "bench-iceoryx2-";
const PREFIX_LEN: usize = 10;

/// The files of a run. Dropped after the node that uses it.
pub(crate) struct RunFiles {
    root: PathBuf,
    prefix: String,
}

impl RunFiles {
    /// The files of this run.
    pub(crate) fn of(net: &Net) -> Self {
        remove_abandoned();
        let mut hash = DefaultHasher::new();
        net.dir.hash(&mut hash);
        // Short: both are part of the path of each listener's socket, which has 108 bytes.
        let prefix = format!("i{:08x}_", hash.finish() as u32);
        // The other endpoints of the run make the same link.
        let _ = std::os::unix::fs::symlink(&net.dir, link(&prefix));
        Self { root: net.dir.join("iox2"), prefix }
    }

    /// A configuration that no other run shares; the rest is iceoryx2's default.
    pub(crate) fn config(&self) -> Result<Config> {
        let mut config = Config::default();
        config.global.set_root_path(&Path::new(self.root.as_os_str().as_encoded_bytes())?);
        config.global.prefix = FileName::new(self.prefix.as_bytes())?;
        Ok(config)
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        let nodes = fs::read_dir(self.root.join("nodes"));
        if nodes.is_ok_and(|mut nodes| nodes.next().is_none()) {
            remove_memory(&self.prefix);
        }
    }
}

fn link(prefix: &str) -> PathBuf {
    PathBuf::from(MEMORY).join(format!("{LINK}{prefix}"))
}

/// The names in `/dev/shm` that begin like this.
fn names(start: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(MEMORY) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(start)).collect()
}

/// Removes a run's memory. Another process may remove it at the same time.
fn remove_memory(prefix: &str) {
    for name in names(prefix) {
        let _ = fs::remove_file(PathBuf::from(MEMORY).join(name));
    }
    let _ = fs::remove_file(link(prefix));
}

fn remove_abandoned() {
    for name in names(LINK) {
        let prefix = &name[LINK.len()..];
        // Checks the target of the link. Only prefixes of runs are removed.
        let is_gone = !fs::exists(link(prefix)).unwrap_or(true);
        if is_gone && prefix.len() == PREFIX_LEN {
            remove_memory(prefix);
        }
    }
}
