//! What the figures were measured on.

use serde::{Deserialize, Serialize};
use std::path::Path;
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
    /// The commit of robot-net, with "+" when the tree had changes.
    pub commit: String,
}

impl Machine {
    /// This machine.
    pub fn this(bench: &Path) -> Self {
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
        let changed = !said("git", &["-C", &here, "status", "--porcelain"]).is_empty();
        let commit = said("git", &["-C", &here, "rev-parse", "--short", "HEAD"]);
        let virtual_machine = said("systemd-detect-virt", &["--vm"]);
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
            rustc: said("rustc", &["--version"]),
            python: said(&bench.join(".venv/bin/python").to_string_lossy(), &["--version"]),
            pinning: "none: the scheduler places processes".into(),
            commit: if changed { format!("{commit}+") } else { commit },
        }
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}
