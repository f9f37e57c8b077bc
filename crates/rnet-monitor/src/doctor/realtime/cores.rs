//! The cores: their number, isolation, idle states and frequency, and what else uses them.

use super::machine::{Machine, list_cores};
use super::{Check, Finding};

const CPU: &str = "/sys/devices/system/cpu";
const PARTITIONS: &str = "/sys/fs/cgroup/cpuset.cpus.isolated";

/// With fewer cores, isolating one leaves too few for everything else, and only one thread should spin.
const ENOUGH_CORES: usize = 4;

/// Idle states with an exit latency up to this, in µs, are negligible next to a wake-up by the kernel.
const IDLE_EXIT_US: u64 = 10;

/// Percentage of stolen time that affects the 99th percentile of the latency.
const STEAL_PERCENT: f64 = 1.0;

/// Checks the number of usable cores.
pub(super) fn count(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "cores",
        "Cpus_allowed_list in /proc/self/status",
        "a spinning receiver occupies a core; a message takes 0.1 to 0.2 µs only if sender and receiver each \
         have their own",
    );
    let Some(cores) = machine.own_cores().filter(|c| !c.is_empty()) else {
        return check.unknown("the cores of this process cannot be read");
    };
    let what = match machine.cores(&format!("{CPU}/online")) {
        Some(online) if online.len() > cores.len() => {
            format!("this process may use {} of {} cores", list_cores(&cores), online.len())
        }
        _ if cores.len() == 1 => "this machine has one core".to_owned(),
        _ => format!("this process may use all {} cores", cores.len()),
    };
    let more = "allow more cores: taskset -c 0-3 PROGRAM, docker run --cpuset-cpus=0-3, or more virtual cores";
    match cores.len() {
        1 => check.problem(what, format!("{more}; until then, use Wait::Block, never Wait::Spin")),
        n if n < ENOUGH_CORES => {
            check.advice(what, format!("let at most {} thread spin (Wait::Spin), or {more}", n - 1))
        }
        _ => check.ok(what),
    }
}

/// Checks for a CPU quota, which stops this process when it is used up.
pub(super) fn quota(machine: &Machine<'_>) -> Finding {
    const WHY: &str = "a process that has used its quota is stopped until the next period starts, tens of \
                       milliseconds later";
    let cores = machine.own_cores().map_or(1, |c| c.len().max(1)) as f64;
    let mut read = None;
    let version_2 = machine.groups("").into_iter().map(|group| {
        let file = format!("{group}/cpu.max");
        let quota = machine.text(&file).and_then(|text| {
            let (quota, period) = text.split_once(' ')?;
            let quota = if quota == "max" { -1.0 } else { quota.parse::<f64>().ok()? };
            Some((quota, period.parse::<f64>().ok()?))
        });
        (file, quota)
    });
    let version_1 = machine.groups("cpu").into_iter().map(|group| {
        let file = format!("{group}/cpu.cfs_quota_us");
        let quota = machine.number::<f64>(&file);
        let period = machine.number::<f64>(&format!("{group}/cpu.cfs_period_us"));
        (file, quota.zip(period))
    });
    for (file, quota) in version_2.chain(version_1) {
        let Some((quota_us, period_us)) = quota.filter(|(_, period)| *period > 0.0) else {
            continue;
        };
        let share = quota_us / period_us;
        if quota_us >= 0.0 && share < cores {
            return Check::new("cpu_quota", file, WHY).problem(
                format!("this process is stopped when it has used the time of {share:.2} cores in a period of \
                         {period_us} µs"),
                "docker: use --cpuset-cpus instead of --cpus; systemd unit: remove CPUQuota=, use AllowedCPUs=",
            );
        }
        read.get_or_insert(file);
    }
    match read {
        Some(file) => Check::new("cpu_quota", file, WHY).ok("no CPU quota is set"),
        None if machine.text("/proc/self/cgroup").is_some() => {
            Check::new("cpu_quota", "/proc/self/cgroup", WHY).ok("no CPU quota is set")
        }
        None => Check::new("cpu_quota", "/proc/self/cgroup", WHY)
            .unknown("the control groups of this process cannot be read"),
    }
}

/// The cores that are isolated from the scheduler, since boot or by a cpuset partition.
fn isolated_cores(machine: &Machine<'_>) -> Option<Vec<u32>> {
    let since_boot = machine.cores(&format!("{CPU}/isolated"));
    let by_partition = machine.cores(PARTITIONS);
    if since_boot.is_none() && by_partition.is_none() {
        return None;
    }
    let mut cores: Vec<u32> = since_boot.into_iter().chain(by_partition).flatten().collect();
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

/// Checks for cores that are isolated from the scheduler.
pub(super) fn isolated(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "isolated_cores",
        format!("{CPU}/{{isolated,nohz_full}}, {PARTITIONS}"),
        "an isolated core runs only the threads that you assign to it, so that other threads never interrupt a \
         spinning or real-time thread; nohz_full also stops the timer tick there",
    );
    let Some(isolated) = isolated_cores(machine) else {
        return check.unknown("the list of isolated cores cannot be read");
    };
    let tickless = machine.cores(&format!("{CPU}/nohz_full")).unwrap_or_default();
    let online = machine.cores(&format!("{CPU}/online")).unwrap_or_default();
    let line = |cores: &str| {
        format!(
            "add isolcpus=managed_irq,domain,{cores} nohz_full={cores} to GRUB_CMDLINE_LINUX_DEFAULT in \
             /etc/default/grub, sudo update-grub, reboot; then start nodes there: taskset -c {cores} PROGRAM"
        )
    };
    if isolated.is_empty() {
        // The last quarter, at least one: core 0 has the most interrupts.
        let first = online.len() - (online.len() / 4).max(1).min(online.len());
        let example = list_cores(&online[first..]);
        return if online.len() < ENOUGH_CORES {
            check.advice(
                "no core is isolated, and the machine has too few to isolate one",
                format!("use a machine with at least {ENOUGH_CORES} cores; then {}", line("3")),
            )
        } else {
            check.advice("no core is isolated", line(&example))
        };
    }
    let list = list_cores(&isolated);
    if isolated.iter().all(|core| tickless.contains(core)) {
        return check.ok(format!("cores {list} are isolated, without a timer tick"));
    }
    check.advice(
        format!("cores {list} are isolated, but the timer interrupts them (nohz_full: {})", match &tickless[..] {
            [] => "none".to_owned(),
            some => list_cores(some),
        }),
        format!("add nohz_full={list} to the kernel's command line, if it was built with CONFIG_NO_HZ_FULL"),
    )
}

/// Checks whether irqbalance moves interrupts between cores.
pub(super) fn irqbalance(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "irqbalance",
        "/proc/*/comm",
        "irqbalance moves interrupts to any core, including those of your nodes, unless they are isolated",
    );
    let processes = machine.numbered_entries("/proc", "");
    if processes.is_empty() {
        return check.unknown("the processes cannot be listed");
    }
    let runs = processes.iter().any(|pid| {
        machine.text(&format!("/proc/{pid}/comm")).is_some_and(|name| name == "irqbalance")
    });
    let isolated = isolated_cores(machine).unwrap_or_default();
    match (runs, isolated.is_empty()) {
        // Mounted with hidepid, /proc shows only the processes of this user.
        (false, _) if machine.text("/proc/1/comm").is_none() => {
            check.unknown("processes of other users are not visible; check with `sudo pgrep irqbalance`")
        }
        (false, _) if machine.is_container() => {
            check.ok("irqbalance does not run in this container; it may run on the host")
        }
        (false, _) => check.ok("irqbalance does not run"),
        (true, false) => check.ok("irqbalance runs and skips isolated cores"),
        (true, true) => check.advice(
            "irqbalance runs, and no core is isolated",
            "set IRQBALANCE_BANNED_CPULIST=2-3 (the cores of your nodes) in /etc/default/irqbalance and run \
             sudo systemctl restart irqbalance; or isolate these cores",
        ),
    }
}

/// Checks whether the frequency of a core drops under low load.
pub(super) fn governor(machine: &Machine<'_>) -> Finding {
    const DIR: &str = "/sys/devices/system/cpu/cpufreq";
    let check = Check::new(
        "governor",
        format!("{DIR}/policy*/scaling_governor"),
        "a core that was clocked down while waiting handles the next message slower, several times slower at \
         its lowest clock",
    );
    let mut governors: Vec<String> = machine
        .numbered_entries(DIR, "policy")
        .iter()
        .filter_map(|policy| machine.text(&format!("{DIR}/{policy}/scaling_governor")))
        .filter(|governor| !governor.is_empty())
        .collect();
    governors.sort_unstable();
    governors.dedup();
    if governors.is_empty() {
        return check.unknown(
            "the kernel does not control the clock frequency: the firmware or the hypervisor does",
        );
    }
    if governors == ["performance"] {
        return check.ok("all cores use the performance governor");
    }
    check.advice(
        format!("the cores use the governor {}", governors.join(", ")),
        "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor (until the next \
         boot; to make it permanent, use a systemd unit with Type=oneshot)",
    )
}

/// Checks how long a core takes to leave its idle states.
pub(super) fn idle_states(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "idle_states",
        format!("{CPU}/cpu*/cpuidle/state*/{{name,latency,disable}}"),
        "a message that finds its receiver asleep first waits until the core has left its idle state",
    );
    let mut deepest: Option<(u64, String, String)> = None;
    for core in machine.numbered_entries(CPU, "cpu") {
        let dir = format!("{CPU}/{core}/cpuidle");
        for state in machine.numbered_entries(&dir, "state") {
            let read = |file: &str| machine.text(&format!("{dir}/{state}/{file}"));
            let latency = read("latency").and_then(|text| text.parse::<u64>().ok());
            let (Some(latency), Some("0")) = (latency, read("disable").as_deref()) else {
                continue;
            };
            if deepest.as_ref().is_none_or(|(most, ..)| latency > *most) {
                deepest = Some((latency, read("name").unwrap_or_default(), state));
            }
        }
    }
    match deepest {
        None => check.unknown("the kernel does not control idle states: the firmware or the hypervisor does"),
        Some((latency, name, _)) if latency <= IDLE_EXIT_US => {
            check.ok(format!("leaving the deepest idle state, {name}, takes {latency} µs"))
        }
        Some((latency, name, state)) => check.advice(
            format!("leaving the deepest idle state, {name}, takes {latency} µs"),
            format!(
                "run a program that writes 0 to /dev/cpu_dma_latency and keeps it open \
                 (docs/guide/real-time.md); or run echo 1 | sudo tee {CPU}/cpu*/cpuidle/{state}/disable, and \
                 the same for each state above {IDLE_EXIT_US} µs"
            ),
        ),
    }
}

/// Checks whether a program may prevent deep idle states.
pub(super) fn dma_latency(machine: &Machine<'_>) -> Finding {
    let file = "/dev/cpu_dma_latency";
    let check = Check::new(
        "dma_latency",
        file,
        "a program with write access can keep the cores out of deep idle states while it runs, without being root",
    );
    let path = machine.path(file);
    if !path.exists() {
        return check.unknown(if machine.is_container() {
            "the device is not in this container; to add it: docker run --device /dev/cpu_dma_latency"
        } else {
            "the kernel does not have this device"
        });
    }
    match rustix::fs::access(&path, rustix::fs::Access::WRITE_OK) {
        Ok(()) => check.ok("this user has write access"),
        Err(_) => check.advice(
            "this user does not have write access",
            "echo 'KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", MODE=\"0660\"' | sudo tee \
             /etc/udev/rules.d/90-realtime.rules; sudo udevadm control --reload; sudo udevadm trigger \
             /dev/cpu_dma_latency; and add the user to the group realtime",
        ),
    }
}

/// Checks whether this is a virtual machine.
pub(super) fn virtual_machine(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "virtual_machine",
        "flags in /proc/cpuinfo, /sys/hypervisor/type, /proc/device-tree/hypervisor",
        "waking a core of a virtual machine goes through the hypervisor: it takes tens of microseconds instead \
         of a few, and the guest cannot bound it",
    );
    let info = machine.text("/proc/cpuinfo");
    let flagged = info.as_deref().is_some_and(|info| {
        let mut flags = info.lines().filter(|line| line.starts_with("flags"));
        flags.next().is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
    });
    let kind = machine.text("/sys/hypervisor/type").filter(|kind| !kind.is_empty());
    if flagged || kind.is_some() || machine.path("/proc/device-tree/hypervisor").exists() {
        let what = kind.map_or(String::new(), |kind| format!(" ({kind})"));
        return check.advice(
            format!("this is a virtual machine{what}"),
            "for latency bounds below a millisecond, run on bare metal; otherwise pin each virtual core to its \
             own host core (libvirt: virsh vcpupin GUEST 0 2), and let latency-critical subscribers spin",
        );
    }
    match info {
        Some(_) => check.ok("no hypervisor detected"),
        None => check.unknown("the processors cannot be read"),
    }
}

/// Checks whether a hypervisor steals CPU time.
pub(super) fn steal(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "steal",
        "/proc/stat",
        "while a hypervisor runs something else on a core, the threads there are paused unnoticed, for milliseconds",
    );
    let times: Option<Vec<u64>> = machine.text("/proc/stat").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user nice system idle iowait irq softirq steal; user and nice include the time of guests.
        line.split_whitespace().take(8).map(|n| n.parse().ok()).collect()
    });
    let Some([user, nice, system, idle, iowait, irq, softirq, steal]) = times.as_deref() else {
        return check.unknown("the times of the cores cannot be read");
    };
    let busy = [user, nice, system, irq, softirq, steal]
        .iter()
        .fold(0u64, |sum, n| sum.saturating_add(**n));
    let all = busy.saturating_add(*idle).saturating_add(*iowait).max(1);
    let percent = *steal as f64 * 100.0 / all as f64;
    let what = format!("{percent:.2} % of the time since boot was stolen by a hypervisor");
    if percent >= STEAL_PERCENT {
        // This is a mean since boot; the cause may no longer exist.
        check.advice(
            what,
            "if `st` in top is still above 0, the host is overcommitted: pin the virtual cores (virsh \
             vcpupin), run fewer guests, or use a machine with dedicated cores",
        )
    } else if *steal > 0 {
        check.ok(what)
    } else {
        check.ok("no time was stolen by a hypervisor")
    }
}
