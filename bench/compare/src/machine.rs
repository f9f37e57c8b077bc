//! What the figures were measured on.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The machine and the tools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// The kernel's version.
    pub kernel: String,
    /// How the clock speed is governed; `None` where the machine does not say.
    pub governor: Option<String>,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// The distribution.
    pub os: String,
    /// The kind of virtual machine, where it is one.
    #[serde(rename = "virtual")]
    pub virtual_machine: Option<String>,
    /// The compiler.
    pub rustc: String,
    /// The interpreter.
    pub python: String,
    /// How processes were bound to cores.
    pub pinning: String,
    /// Where durable values were kept: file system and device.
    #[serde(default)]
    pub disk: String,
    /// The commit of robot-net, with "+" when the tree had changes.
    pub commit: String,
    /// What `cargo xtask message-path` printed: the hash of the sources that a message passes; empty if it failed.
    #[serde(default)]
    pub message_path: String,
}

impl Machine {
    /// This machine, with durable values in the folder `disk`.
    pub fn this(bench: &Path, disk: &Path) -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let field = |text: &str, key: &str, by: char| {
            text.lines()
                .find_map(|l| l.split_once(by).filter(|(k, _)| k.trim() == key))
                .map(|(_, value)| value.trim().trim_matches('"').to_owned())
        };
        let memory_kib = field(&read("/proc/meminfo"), "MemTotal", ':')
            .and_then(|v| v.split(' ').next().and_then(|kib| kib.parse::<f64>().ok()));
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let here = bench.to_string_lossy();
        let changed = !program_output("git", &["-C", &here, "status", "--porcelain"]).is_empty();
        let commit = program_output("git", &["-C", &here, "rev-parse", "--short", "HEAD"]);
        let manifest = bench.join("../Cargo.toml");
        let xtask = ["run", "--quiet", "--package", "xtask", "--manifest-path"];
        let hash = [&manifest.to_string_lossy(), "--", "message-path"];
        let message_path = program_output("cargo", &[&xtask[..], &hash].concat());
        if message_path.is_empty() {
            eprintln!(
                "compare: `cargo xtask message-path` failed: without its hash, `cargo xtask tidy` \
                 rejects the report"
            );
        }
        let virtual_machine = program_output("systemd-detect-virt", &["--vm"]);
        let hypervisor = cpuinfo.contains(" hypervisor").then(|| "yes".to_owned());
        Self {
            cpu: field(&cpuinfo, "model name", ':').unwrap_or_else(|| "not known".into()),
            cores: std::thread::available_parallelism().map_or(0, |n| n.get()),
            kernel: read("/proc/sys/kernel/osrelease"),
            governor: (!governor.is_empty()).then_some(governor),
            memory_gib: memory_kib.unwrap_or(0.0) / 1048576.0,
            os: field(&read("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or_default(),
            virtual_machine: Some(virtual_machine)
                .filter(|v| !v.is_empty() && v != "none")
                .or(hypervisor),
            rustc: program_output("rustc", &["--version"]),
            python: program_output(
                &bench.join(".venv/bin/python").to_string_lossy(),
                &["--version"],
            ),
            pinning: "none: the scheduler places processes".into(),
            disk: mounted(disk).map_or_else(|| "not known".into(), |(t, d)| format!("{t} on {d}")),
            commit: if changed { format!("{commit}+") } else { commit },
            message_path,
        }
    }
}

/// Whether a folder's files are in memory only, where nothing can be durable.
pub fn is_memory(folder: &Path) -> bool {
    mounted(folder).is_some_and(|(kind, _)| kind == "tmpfs" || kind == "ramfs")
}

/// Type and device of the file system that a folder is on.
fn mounted(folder: &Path) -> Option<(String, String)> {
    let folder = folder.canonicalize().ok()?;
    mounted_in(&read("/proc/self/mountinfo"), &folder)
}

/// Of the mounts that hold the folder the deepest, and of several at one place the last.
fn mounted_in(mounts: &str, folder: &Path) -> Option<(String, String)> {
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut words = after.split(' ');
        let point = before.split(' ').nth(4)?.replace("\\040", " ");
        Some((PathBuf::from(point), words.next()?.to_owned(), words.next()?.to_owned()))
    };
    let holding = mounts.lines().filter_map(mount).filter(|(point, ..)| folder.starts_with(point));
    holding.max_by_key(|(point, ..)| point.components().count()).map(|(_, t, d)| (t, d))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

fn program_output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_that_holds_a_folder_is_its_own() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/root rw\n\
                      30 22 0:5 / /dev/shm rw,nosuid shared:3 - tmpfs tmpfs rw\n\
                      31 22 0:6 / /a\\040disk rw - xfs /dev/sdb1 rw";
        let found = |folder: &str| {
            mounted_in(mounts, Path::new(folder)).map(|(kind, device)| format!("{kind} {device}"))
        };
        assert_eq!(found("/dev/shm/x").as_deref(), Some("tmpfs tmpfs"));
        assert_eq!(found("/dev/shmem").as_deref(), Some("ext4 /dev/root"));
        assert_eq!(found("/a disk/x").as_deref(), Some("xfs /dev/sdb1"));
        assert!(is_memory(Path::new("/dev/shm")));
        assert!(mounted(Path::new("/")).is_some());
    }
}
