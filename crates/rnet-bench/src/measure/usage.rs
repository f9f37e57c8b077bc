//! What a figure depends on, the machine, and what this process uses of it: CPU time, memory, wake-ups.

use std::fmt;
use std::fs;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use rnet_format::units;

/// The thread of a worker that listens to its parent: that of [`crate::worker::spawn_order_reader`].
const ORDER_THREAD_NAME: &str = "orders";

/// CPU time of this process so far, all threads together, in ns.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Resident memory of this process, in bytes: all that it has touched, shared pages included.
pub fn rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    proc_field(&status, "VmRSS:").unwrap_or(0) * 1024
}

/// How often the threads of robot-net in this process have gone to sleep by themselves, which is
/// how often they were awake for something. The main thread and the listener belong to the bench.
fn wakeups() -> u64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    let main = std::process::id().to_string();
    let library = tasks.flatten().filter(|task| task.file_name().to_string_lossy() != main);
    library
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .filter(|status| {
            !status.lines().any(|l| l.split_whitespace().eq(["Name:", ORDER_THREAD_NAME]))
        })
        .filter_map(|status| proc_field(&status, "voluntary_ctxt_switches:"))
        .sum()
}

/// The number behind `name` in a file of /proc.
fn proc_field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// What a process used in a stretch of time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ResourceUsage {
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub wakeups: u64,
    /// At the end of it.
    pub rss_bytes: u64,
}

impl ResourceUsage {
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
pub struct UsageMeter {
    start_ns: u64,
    cpu_ns: u64,
    wakeups: u64,
}

impl UsageMeter {
    pub fn start() -> UsageMeter {
        let wakeups = wakeups();
        UsageMeter { start_ns: rnet::now_ns(), cpu_ns: cpu_ns(), wakeups }
    }

    pub fn read(&self) -> ResourceUsage {
        let (wall_ns, cpu_ns) = (rnet::now_ns() - self.start_ns, cpu_ns() - self.cpu_ns);
        let wakeups = wakeups().saturating_sub(self.wakeups);
        ResourceUsage { wall_ns, cpu_ns, wakeups, rss_bytes: rss_bytes() }
    }
}

/// What of the machine a figure depends on.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// Whether it is a virtual machine, as far as the processor says.
    pub virtual_machine: bool,
    /// What sets the clock of the cores; `None` if the kernel does not say.
    pub governor: Option<String>,
    /// Processes that ran or wanted to, the last minute's mean, before the first run.
    pub load_1min: f64,
    /// `release`, or `debug`, whose figures mean nothing.
    pub build: &'static str,
}

impl Machine {
    pub(super) fn detect() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let of = |name: &str| {
            let value = info.lines().find(|line| line.starts_with(name))?.split_once(':')?.1;
            Some(value.trim().to_owned())
        };
        let flags = of("flags").unwrap_or_default();
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let load = read("/proc/loadavg");
        Machine {
            cpu: of("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: proc_field(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0) * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            virtual_machine: flags.split_whitespace().any(|flag| flag == "hypervisor"),
            governor: Some(governor.trim().to_owned()).filter(|g| !g.is_empty()),
            load_1min: load.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = if self.cores == 1 { "core" } else { "cores" };
        let memory = units::bytes(self.memory_bytes as f64);
        write!(f, "{}, {} {cores}, {memory}, Linux {}", self.cpu, self.cores, self.kernel)?;
        if self.virtual_machine {
            write!(f, ", virtual machine")?;
        }
        if let Some(governor) = &self.governor {
            write!(f, ", governor {governor}")?;
        }
        write!(f, ", load {:.1}; rnet {} ({})", self.load_1min, rnet::VERSION, self.build)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::detect();
        assert!(machine.cores >= 1 && machine.memory_bytes > 0, "{machine:?}");
        assert!(machine.to_string().contains("core"), "{machine}");
    }

    #[test]
    fn a_busy_process_uses_cpu_and_memory() {
        let meter = UsageMeter::start();
        while meter.read().cpu_ns == 0 {
            std::hint::spin_loop();
        }
        let used = meter.read();
        assert!(used.wall_ns > 0 && used.rss_bytes > 0 && used.cores() > 0.0, "{used:?}");
    }

    #[test]
    fn fields_are_found_by_name() {
        let text = "Name:\tx\nVmRSS:\t  12 kB\nnonvoluntary_ctxt_switches:\t9\n";
        assert_eq!(proc_field(text, "VmRSS:"), Some(12));
        assert_eq!(proc_field(text, "voluntary_ctxt_switches:"), None);
        assert_eq!(proc_field(text, "Name:"), None);
    }
}
