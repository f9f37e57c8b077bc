//! Reads `/proc` and `/sys`. Nothing here fails: a missing, unreadable or invalid file gives `None`, and the
//! check reports that.

use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// Longer files are truncated. Only `/proc/cpuinfo` of 512 cores is longer.
const MAX_FILE_LEN_BYTES: u64 = 1 << 20;
/// Maximum number of a core.
const MAX_CORE: u32 = 1 << 16;

/// A machine, described by its files.
pub(super) struct Machine<'a> {
    /// The directory with `/proc`, `/sys`, ….
    pub root: &'a Path,
    /// The directory of domains.
    pub dir: &'a Path,
}

/// A resource limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Limit {
    Of(u64),
    Unlimited,
}

/// Capabilities, by their number in `capability.h`.
#[derive(Clone, Copy)]
pub(super) enum Capability {
    IpcLock = 14,
    SysNice = 23,
}

impl Machine<'_> {
    /// The actual location of a path of the machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The content of a file, trimmed.
    pub fn text(&self, path: &str) -> Option<String> {
        let path = self.path(path);
        // Opening a pipe or a device could block.
        if !std::fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        file.take(MAX_FILE_LEN_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The content of a file as a number.
    pub fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The names in a directory that consist of `prefix` and a number, sorted by that number.
    pub fn numbered_entries(&self, directory: &str, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(directory)).into_iter().flatten().flatten();
        let mut found: Vec<(u32, String)> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter_map(|name| Some((name.strip_prefix(prefix)?.parse().ok()?, name)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// The soft limit of this process, by its name in `/proc/self/limits`.
    pub fn limit(&self, name: &str) -> Option<Limit> {
        let text = self.text("/proc/self/limits")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        match line.split_whitespace().next()? {
            "unlimited" => Some(Limit::Unlimited),
            number => Some(Limit::Of(number.parse().ok()?)),
        }
    }

    /// A line of `/proc/self/status`.
    pub fn status(&self, key: &str) -> Option<String> {
        let text = self.text("/proc/self/status")?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(line.trim().to_owned())
    }

    /// Whether this process has a capability in effect.
    pub fn is_capable(&self, capability: Capability) -> Option<bool> {
        let set = u64::from_str_radix(&self.status("CapEff")?, 16).ok()?;
        Some(set >> capability as u32 & 1 == 1)
    }

    /// Major and minor version of the kernel, such as 6 and 12.
    pub fn kernel(&self) -> Option<(u32, u32)> {
        let release = self.text("/proc/sys/kernel/osrelease")?;
        let mut parts = release.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// A list of cores such as `0-3,8`; `None` also if it is invalid.
    pub fn cores(&self, path: &str) -> Option<Vec<u32>> {
        parse_cores(&self.text(path)?)
    }

    /// The cores that this process may run on; if that is unknown, the cores that are online.
    pub fn own_cores(&self) -> Option<Vec<u32>> {
        let allowed = self.status("Cpus_allowed_list").and_then(|list| parse_cores(&list));
        allowed.filter(|c| !c.is_empty()).or_else(|| self.cores("/sys/devices/system/cpu/online"))
    }

    /// Whether this is a container, judging by its files.
    pub fn is_container(&self) -> bool {
        ["/.dockerenv", "/run/.containerenv"].iter().any(|p| self.path(p).exists())
    }

    /// The control group directory of this process and all its ancestors: of version 2 if `controller` is
    /// empty, else of version 1.
    pub fn groups(&self, controller: &str) -> Vec<String> {
        let Some(text) = self.text("/proc/self/cgroup") else { return Vec::new() };
        let own = text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|c| c == controller).then_some(path)
        });
        let Some(own) = own else { return Vec::new() };
        // In a container the path may lead out of the mount: `/../..`.
        let parts: Vec<&str> = Path::new(own)
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let base = match controller {
            "" if !self.path("/sys/fs/cgroup/cgroup.controllers").exists() => {
                "/sys/fs/cgroup/unified".to_owned()
            }
            "" => "/sys/fs/cgroup".to_owned(),
            _ => format!("/sys/fs/cgroup/{controller}"),
        };
        let at =
            |n: usize| parts[..n].iter().fold(base.clone(), |path, part| format!("{path}/{part}"));
        (0..=parts.len()).rev().map(at).collect()
    }
}

/// Parses a list of cores such as `0-3,8`. An empty text is the empty list; so is `(null)`, which some kernels
/// write for it.
pub(super) fn parse_cores(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    if text.is_empty() || text == "(null)" {
        return Some(Vec::new());
    }
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MAX_CORE {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

/// Formats a list of cores as the kernel does.
pub(super) fn list_cores(cores: &[u32]) -> String {
    let mut parts = Vec::new();
    let mut rest = cores;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(first..).take_while(|(core, next)| *core == next).count();
        let last = rest[run - 1];
        parts.push(if first == last { first.to_string() } else { format!("{first}-{last}") });
        rest = &rest[run..];
    }
    parts.join(",")
}

/// The selected word, in brackets: `always [madvise] never`, or `none (full)` of the scheduler.
pub(super) fn bracketed_choice(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| {
        let square = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
        square.or_else(|| word.strip_prefix('(').and_then(|w| w.strip_suffix(')')))
    })
}
