//! On what was measured.

use std::fs;

use serde::Serialize;

use crate::bench::usage::field;
use crate::table;

/// What of the machine a figure depends on.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    /// Whether it is a virtual machine, as far as the processor says.
    pub virtual_machine: bool,
    /// How the clock of the cores is governed; `None` where nothing is said.
    pub governor: Option<String>,
    /// Processes that ran or wanted to, the last minute's mean, before the first run.
    pub load_1min: f64,
    /// `release`, or `debug`, whose figures mean nothing.
    pub build: &'static str,
}

impl Machine {
    pub fn look() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == "model name").then(|| value.trim().to_owned())
        });
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let load = read("/proc/loadavg");
        Machine {
            cpu: model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: field(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0) * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            virtual_machine: flags
                .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor")),
            governor: Some(governor.trim().to_owned()).filter(|g| !g.is_empty()),
            load_1min: load.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cores = if self.cores == 1 { "core" } else { "cores" };
        let memory = table::bytes(self.memory_bytes as f64);
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
        let machine = Machine::look();
        assert!(machine.cores >= 1 && machine.memory_bytes > 0, "{machine:?}");
        assert!(machine.to_string().contains("core"), "{machine}");
    }
}
