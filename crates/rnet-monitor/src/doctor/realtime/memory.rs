//! Memory: locking, swap and huge pages.

use std::path::PathBuf;

use super::machine::{Capability, Limit, Machine, bracketed_choice};
use super::{Check, Finding};

const THP_DIR: &str = "/sys/kernel/mm/transparent_hugepage";

/// With this limit or less, no program of several threads can be locked: mlockall counts all mapped memory,
/// including 2 MiB of stack per thread.
const LOW_MEMLOCK_BYTES: u64 = 64 << 20;

/// A limit with which any ordinary node can be locked; used if the machine's memory is unknown.
const AMPLE_MEMLOCK_BYTES: u64 = 4 << 30;

/// The memory of the machine.
fn memory_bytes(machine: &Machine<'_>) -> Option<u64> {
    let text = machine.text("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib = line.split_whitespace().next()?.parse::<u64>().ok()?;
    kib.checked_mul(1024).filter(|bytes| *bytes > 0)
}

/// The number of swap areas and their used size in KiB.
fn swap_areas(machine: &Machine<'_>) -> Option<(usize, u64)> {
    let text = machine.text("/proc/swaps")?;
    let used = text.lines().skip(1).map(|line| {
        // Columns: name (with spaces escaped), type, size, used.
        line.split_whitespace().nth(3).and_then(|used| used.parse::<u64>().ok()).unwrap_or(0)
    });
    Some(used.fold((0, 0), |(areas, sum), used| (areas + 1, sum.saturating_add(used))))
}

/// Checks whether this user may lock its memory.
pub(super) fn lock(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "memory_lock",
        "/proc/self/limits, CapEff in /proc/self/status, /proc/meminfo",
        "mlockall keeps program, heap and logs in memory: no page fault reads from disk during a message",
    );
    let swaps = swap_areas(machine).is_some_and(|(areas, _)| areas > 0);
    let limit = machine.limit("Max locked memory");
    match (machine.is_capable(Capability::IpcLock), limit) {
        (Some(true), _) => check.ok("CAP_IPC_LOCK is set: any amount of memory may be locked"),
        (_, Some(Limit::Unlimited)) => check.ok("any amount of memory may be locked"),
        (_, Some(Limit::Of(bytes)))
            if bytes >= memory_bytes(machine).unwrap_or(AMPLE_MEMLOCK_BYTES) =>
        {
            check.ok(format!("{} MiB of memory may be locked", bytes >> 20))
        }
        (_, Some(Limit::Of(bytes))) => {
            let is_little = bytes <= LOW_MEMLOCK_BYTES;
            let how = if is_little { "will" } else { "may" };
            let what = format!("{} KiB of memory may be locked: mlockall {how} fail", bytes >> 10);
            let advice = if machine.is_container() {
                "docker run --ulimit memlock=-1"
            } else {
                "echo '@realtime - memlock unlimited' | sudo tee -a /etc/security/limits.d/90-realtime.conf, \
                 and add the user to the group realtime; systemd unit: LimitMEMLOCK=infinity"
            };
            if swaps && is_little {
                check.problem(format!("{what}, and this machine swaps"), advice)
            } else {
                check.advice(what, advice)
            }
        }
        (_, None) => check.unknown("the limits of this process cannot be read"),
    }
}

/// Checks whether memory is swapped to disk.
pub(super) fn swap(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "swap",
        "/proc/swaps, /proc/sys/vm/swappiness",
        "robot-net's logs are in tmpfs, which can be swapped out like any memory; reading a page back takes \
         milliseconds",
    );
    let Some((areas, used_kib)) = swap_areas(machine) else {
        return check.unknown("the swap areas cannot be read");
    };
    if areas == 0 {
        return check.ok("swap is off");
    }
    let swappiness = machine
        .number::<u32>("/proc/sys/vm/swappiness")
        .map_or(String::new(), |n| format!(", swappiness {n}"));
    check.advice(
        format!("swap is on, {} MiB of it used{swappiness}", used_kib >> 10),
        "run sudo swapoff -a and remove its line from /etc/fstab; or call mlockall in each latency-critical \
         program, and run sudo sysctl vm.swappiness=1",
    )
}

/// Checks whether the kernel moves the heap to huge pages.
pub(super) fn huge_heap_pages(machine: &Machine<'_>) -> Finding {
    let file = format!("{THP_DIR}/enabled");
    let check = Check::new(
        "huge_heap_pages",
        file.as_str(),
        "the first access to a huge page clears 2 MiB, which takes 40 µs at best and milliseconds at worst, \
         and khugepaged moves memory while programs use it",
    );
    match machine.text(&file).as_deref().and_then(bracketed_choice) {
        Some("always") => check.advice(
            "every program gets huge pages, even without requesting them",
            format!("echo madvise | sudo tee {file} (to make it permanent: transparent_hugepage=madvise on the \
                     kernel command line)"),
        ),
        Some(mode) => check.ok(format!("huge pages for programs: {mode}")),
        None => check.unknown("the setting cannot be read; the kernel may not have huge pages"),
    }
}

/// Checks whether logs use huge pages.
pub(super) fn huge_shared_pages(machine: &Machine<'_>) -> Finding {
    let file = format!("{THP_DIR}/shmem_enabled");
    let check = Check::new(
        "huge_shared_pages",
        format!("{file}, huge= of {} in /proc/self/mountinfo", machine.dir.display()),
        "if tmpfs uses huge pages, the first access to a log or chunk clears 2 MiB, which takes 40 µs at best \
         and milliseconds at worst; later accesses are as fast or faster",
    );
    let general = machine.text(&file);
    let general = general.as_deref().and_then(bracketed_choice);
    let mount = mount_of(machine);
    let option = mount.as_ref().and_then(|mount| {
        mount.options.split(',').find_map(|option| option.strip_prefix("huge=")).map(str::to_owned)
    });
    match (general, mount, option.as_deref()) {
        (Some("force"), ..) => check.advice(
            "huge pages are forced for all tmpfs mounts",
            format!("echo never | sudo tee {file}"),
        ),
        (Some("deny"), ..) => check.ok("tmpfs uses no huge pages (deny)"),
        (_, Some(Mount { point, .. }), Some(mode @ ("always" | "within_size"))) => check.advice(
            format!("{} uses huge pages (huge={mode})", point.display()),
            format!("sudo mount -o remount,huge=never {}", point.display()),
        ),
        (_, Some(Mount { point, .. }), mode) => check.ok(format!(
            "{} uses no huge pages by default (huge={})",
            point.display(),
            mode.unwrap_or("never")
        )),
        (_, None, _) => check.unknown("the mount options of the domain directory cannot be read"),
    }
}

/// A mounted file system.
struct Mount {
    point: PathBuf,
    options: String,
}

/// The mount that contains the directory of domains.
fn mount_of(machine: &Machine<'_>) -> Option<Mount> {
    let text = machine.text("/proc/self/mountinfo")?;
    // The path may be relative or contain symbolic links.
    let dir = machine.dir.canonicalize().unwrap_or_else(|_| machine.dir.to_owned());
    let mounts = text.lines().filter_map(|line| {
        // id, parent, device, root, mount point, …; after the dash: type, source, options.
        let point = PathBuf::from(unescape(line.split_whitespace().nth(4)?));
        let options = line.split_once(" - ")?.1.split_whitespace().nth(2)?.to_owned();
        dir.starts_with(&point).then_some(Mount { point, options })
    });
    // Of two mounts at the same point, the later one hides the other.
    mounts.max_by_key(|mount| mount.point.components().count())
}

/// Unescapes a path: the kernel writes white space and backslashes as octal numbers.
fn unescape(path: &str) -> String {
    path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}
