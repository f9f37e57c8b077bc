//! What this process uses: CPU time, memory, wake-ups.

use std::fs;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// The thread of a worker that listens to its parent: that of [`rnet_bench::worker::listen`].
pub const LISTENER: &str = "orders";

/// CPU time of this process so far, all threads together, in ns.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Resident memory of this process, in bytes: all that it has touched, shared pages included.
pub fn rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&status, "VmRSS:").unwrap_or(0) * 1024
}

/// How often the threads of robot-net in this process have gone to sleep by themselves, which is
/// how often they were awake for something. The main thread and the listener belong to the bench.
pub fn wakeups() -> u64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    let main = std::process::id().to_string();
    let library = tasks.flatten().filter(|task| task.file_name().to_string_lossy() != main);
    library
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .filter(|status| !status.lines().any(|l| l.split_whitespace().eq(["Name:", LISTENER])))
        .filter_map(|status| field(&status, "voluntary_ctxt_switches:"))
        .sum()
}

/// The number behind `name` in a file of /proc.
pub fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// What a process used in a stretch of time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Used {
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub wakeups: u64,
    /// At the end of it.
    pub rss_bytes: u64,
}

impl Used {
    /// CPU time per time: 1 is a core kept busy.
    pub fn cores(&self) -> f64 {
        self.cpu_ns as f64 / self.wall_ns.max(1) as f64
    }

    pub fn wakeups_per_s(&self) -> f64 {
        self.wakeups as f64 * 1e9 / self.wall_ns.max(1) as f64
    }
}

/// Reads what is used from now on.
#[derive(Debug)]
pub struct Meter {
    start_ns: u64,
    cpu_ns: u64,
    wakeups: u64,
}

impl Meter {
    pub fn start() -> Meter {
        let wakeups = wakeups();
        Meter { start_ns: rnet::now_ns(), cpu_ns: cpu_ns(), wakeups }
    }

    pub fn read(&self) -> Used {
        let (wall_ns, cpu_ns) = (rnet::now_ns() - self.start_ns, cpu_ns() - self.cpu_ns);
        let wakeups = wakeups().saturating_sub(self.wakeups);
        Used { wall_ns, cpu_ns, wakeups, rss_bytes: rss_bytes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_uses_cpu_and_memory() {
        let meter = Meter::start();
        while meter.read().cpu_ns == 0 {
            std::hint::spin_loop();
        }
        let used = meter.read();
        assert!(used.wall_ns > 0 && used.rss_bytes > 0 && used.cores() > 0.0, "{used:?}");
    }

    #[test]
    fn fields_are_found_by_name() {
        let text = "Name:\tx\nVmRSS:\t  12 kB\nnonvoluntary_ctxt_switches:\t9\n";
        assert_eq!(field(text, "VmRSS:"), Some(12));
        assert_eq!(field(text, "voluntary_ctxt_switches:"), None);
        assert_eq!(field(text, "Name:"), None);
    }
}
