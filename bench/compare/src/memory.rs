//! How much memory the processes of a run take together, with each page counted once.

use bench_harness::{Net, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where files are memory.
const SHARED: &str = "/dev/shm/";
/// Unit of `st_blocks` on all file systems.
const BLOCK_LEN: u64 = 512;

/// The memory of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Of the processes, KiB: heap, stacks, program files, and shared memory without a name. A page
    /// that several processes have is divided among them.
    pub processes_kib: u64,
    /// Of the files in `/dev/shm` that the processes map or that lie in the run's directory (less the
    /// harness's notes), KiB: the blocks that they occupy, each file once, touched or not.
    pub shared_kib: u64,
}

impl Memory {
    /// Measures these processes and the files of `dir`.
    ///
    /// # Errors
    /// If a process has exited, or the kernel does not report it.
    pub fn of(pids: impl Iterator<Item = u32>, dir: &Path) -> Result<Self> {
        let mut files = BTreeSet::new();
        files_below(dir, &mut files);
        let mut processes_kib = 0;
        for pid in pids {
            let smaps = std::fs::read(format!("/proc/{pid}/smaps"))?;
            processes_kib += private_kib(&String::from_utf8_lossy(&smaps), &mut files);
        }
        // By device and inode: one file may have several names.
        let blocks: BTreeMap<_, _> = files
            .iter()
            // A removed file occupies nothing.
            .filter_map(|path| std::fs::symlink_metadata(path).ok())
            .map(|file| ((file.dev(), file.ino()), file.blocks()))
            .collect();
        Ok(Self { processes_kib, shared_kib: blocks.values().sum::<u64>() * BLOCK_LEN / 1024 })
    }
}

/// The proportional share of all mappings but those of files in [`SHARED`], which join `files`. A
/// file that was removed while it is mapped has no blocks to look up, and so counts by its share.
fn private_kib(smaps: &str, files: &mut BTreeSet<PathBuf>) -> u64 {
    let (mut kib, mut is_file) = (0, false);
    for line in smaps.lines() {
        if let Some(pss) = line.strip_prefix("Pss:") {
            let pss = pss.trim_end_matches("kB").trim().parse().unwrap_or(0);
            kib += if is_file { 0 } else { pss };
        } else if line.split(' ').next().is_some_and(|first| first.contains('-')) {
            // A mapping begins: addresses, permissions, offset, device, inode, name.
            let name = line.find(SHARED).map(|at| &line[at..]);
            let name = name.filter(|name| !name.ends_with(" (deleted)"));
            is_file = name.is_some_and(|name| {
                files.insert(name.into());
                true
            });
        }
    }
    kib
}

fn files_below(dir: &Path, files: &mut BTreeSet<PathBuf>) {
    // A removed file occupies nothing.
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path(), files),
            Ok(kind) if kind.is_file() && !is_note(&entry) => drop(files.insert(entry.path())),
            _ => {}
        }
    }
}

fn is_note(entry: &std::fs::DirEntry) -> bool {
    Net::is_note(&entry.file_name().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
00400000-00500000 r-xp 00000000 08:02 173521 /usr/bin/worker-of-the-run
Rss:                1000 kB
Pss:                 100 kB
Pss_Dirty:            50 kB
VmFlags: rd ex
7f0000000000-7f0000100000 rw-s 00000000 00:18 42 /dev/shm/run-1/a log
Pss:                 512 kB
7f0000200000-7f0000300000 rw-s 00000000 00:18 43 /dev/shm/run-1/gone (deleted)
Pss:                   8 kB
7f0000400000-7f0000500000 rw-p 00000000 00:00 0
Pss:                  30 kB
7ffc00000000-7ffc00100000 rw-s 00000000 00:01 77 /memfd:pool (deleted)
Pss:                   4 kB
";

    #[test]
    fn named_shared_memory_counts_by_its_file_and_all_else_by_its_share() {
        let mut files = BTreeSet::new();
        assert_eq!(private_kib(SMAPS, &mut files), 100 + 8 + 30 + 4);
        assert_eq!(files, BTreeSet::from(["/dev/shm/run-1/a log".into()]));
    }

    #[test]
    fn a_file_counts_once_by_the_blocks_that_it_occupies() {
        let dir = PathBuf::from(format!("{SHARED}rnet-bench-memory-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("deep")).expect("a folder");
        std::fs::write(dir.join("deep/full"), vec![1; 64 << 10]).expect("a file");
        std::fs::hard_link(dir.join("deep/full"), dir.join("again")).expect("its second name");
        let sparse = std::fs::File::create(dir.join("sparse")).expect("a file");
        sparse.set_len(1 << 30).expect("of a length that nothing fills");
        let memory = Memory::of(std::iter::once(std::process::id()), &dir);
        std::fs::remove_dir_all(&dir).expect("it was made above");
        let memory = memory.expect("this process runs");
        // Other tests of this process may map files there.
        assert!((64..1 << 20).contains(&memory.shared_kib), "{memory:?}");
        assert!(memory.processes_kib > 100, "{memory:?}");
    }

    #[test]
    fn a_process_that_has_ended_is_an_error() {
        assert!(Memory::of(std::iter::once(u32::MAX), Path::new("/nowhere")).is_err());
    }
}
