use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::machine::{bracketed_choice, list_cores, parse_cores};
use super::*;

fn is_well(findings: &[Finding]) -> bool {
    findings.iter().all(|f| f.level != Level::Problem)
}

/// A simulated machine: a directory of files, removed on drop.
struct Fake {
    root: PathBuf,
}

impl Fake {
    fn new() -> Fake {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("rnet-machine-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        // The kernel reports canonical paths.
        Fake { root: root.canonicalize().unwrap() }
    }

    fn with(self, path: &str, text: impl AsRef<[u8]>) -> Fake {
        let path = self.root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn without(self, path: &str) -> Fake {
        let path = self.root.join(path.trim_start_matches('/'));
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
        self
    }

    fn examine(&self) -> Vec<Finding> {
        examine_at(&self.root, &self.root)
    }

    fn find(&self, check: &str) -> Finding {
        let findings = self.examine();
        findings
            .into_iter()
            .find(|f| f.check == check)
            .unwrap_or_else(|| panic!("no check {check}"))
    }

    #[track_caller]
    fn assert_finding(&self, check: &str, level: Level, words: &[&str]) {
        let found = self.find(check);
        assert_eq!(found.level, level, "{found:#?}");
        let all = format!("{} -> {:?} {}", found.what, found.advice, found.read_from);
        for word in words {
            assert!(all.contains(word), "{word:?} is not in {all:?}");
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn limits(rtprio: &str, memlock: &str, rttime: &str) -> String {
    let line = |name: &str, value: &str, unit: &str| {
        format!("{name:<25} {value:<20} {value:<20} {unit}\n")
    };
    line("Limit", "Soft Limit", "Units")
        + &line("Max locked memory", memlock, "bytes")
        + &line("Max realtime priority", rtprio, "")
        + &line("Max realtime timeout", rttime, "us")
}

const ME: &str = "Name:\trnet\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-7\n";
const CPU: &str = "/sys/devices/system/cpu";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// A machine configured for real time.
fn good() -> Fake {
    let mut fake = Fake::new();
    let mounts = format!("1 0 0:1 / {} rw - tmpfs tmpfs rw,size=8g\n", fake.root.display());
    for core in 0..8 {
        let state = format!("{CPU}/cpu{core}/cpuidle/state");
        fake = fake
            .with(&format!("{state}0/name"), "POLL\n")
            .with(&format!("{state}0/latency"), "0\n")
            .with(&format!("{state}0/disable"), "0\n")
            .with(&format!("{state}1/name"), "C1\n")
            .with(&format!("{state}1/latency"), "2\n")
            .with(&format!("{state}1/disable"), "0\n")
            .with(&format!("{state}2/name"), "C6\n")
            .with(&format!("{state}2/latency"), "133\n")
            .with(&format!("{state}2/disable"), "1\n")
            .with(&format!("{CPU}/cpufreq/policy{core}/scaling_governor"), "performance\n");
    }
    fake.with("/sys/kernel/realtime", "1\n")
        .with("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT x\n")
        .with("/proc/sys/kernel/osrelease", "6.12.43+deb13-rt-amd64\n")
        .with("/proc/sys/kernel/sched_rt_runtime_us", "950000\n")
        .with("/proc/sys/kernel/sched_rt_period_us", "1000000\n")
        .with("/proc/sys/kernel/sched_autogroup_enabled", "0\n")
        .with("/proc/self/limits", limits("90", "unlimited", "unlimited"))
        .with("/proc/self/status", ME)
        .with("/proc/self/cgroup", "0::/user.slice/me\n")
        .with("/proc/self/timerslack_ns", "1\n")
        .with("/proc/self/mountinfo", mounts)
        .with("/sys/fs/cgroup/cgroup.controllers", "cpu\n")
        .with("/sys/fs/cgroup/user.slice/me/cpu.max", "max 100000\n")
        .with("/proc/stat", "cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 2\n")
        .with("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc\n")
        .with("/proc/1/comm", "systemd\n")
        .with("/proc/swaps", "Filename Type Size Used Priority\n")
        .with("/proc/sys/vm/swappiness", "60\n")
        .with(&format!("{CPU}/online"), "0-7\n")
        .with(&format!("{CPU}/isolated"), "6-7\n")
        .with(&format!("{CPU}/nohz_full"), "6-7\n")
        .with(&format!("{CLOCK}/current_clocksource"), "tsc\n")
        .with(&format!("{CLOCK}/available_clocksource"), "tsc hpet acpi_pm \n")
        .with(&format!("{THP}/enabled"), "always [madvise] never\n")
        .with(&format!("{THP}/shmem_enabled"), "always within_size advise [never] deny force\n")
        .with("/dev/cpu_dma_latency", "")
}

#[test]
fn a_configured_machine_has_no_problems() {
    let examination = good().examine();
    assert!(is_well(&examination));
    let not_ok = examination.iter().filter(|f| f.level != Level::Ok);
    assert_eq!(not_ok.map(|f| f.check).collect::<Vec<_>>(), [""; 0]);
    assert!(examination.iter().all(|f| !f.why.is_empty() && !f.read_from.is_empty()));
    let mut names: Vec<&str> = examination.iter().map(|f| f.check).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), examination.len(), "each check has a name of its own");
}

#[test]
fn unreadable_files_give_unknown_findings() {
    let fake = Fake::new();
    for finding in fake.examine() {
        // A missing file means that the kernel has no autogroup.
        let expected = finding.check == "autogroup" || finding.level == Level::Unknown;
        assert!(expected, "{finding:#?}");
    }
    assert!(is_well(&fake.examine()));
}

#[test]
fn invalid_files_do_not_panic() {
    let files = good();
    let mut stack = vec![files.root.clone()];
    let mut paths = Vec::new();
    while let Some(dir) = stack.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { stack.push(path) } else { paths.push(path) }
        }
    }
    let garbage: [&[u8]; 8] = [
        b"",
        b"\n\n\n",
        b"\xff\xfe\x00\x80",
        b"-",
        b"99999999999999999999999999",
        b"4294967295-1,7-,x",
        b": : : - -\n[\n]()",
        b"Max realtime priority\nMax locked memory -1\nCapEff:\nCpus_allowed_list: 9-1\ncpu  1 x\n0:::\n",
    ];
    for bytes in garbage {
        paths.iter().for_each(|path| std::fs::write(path, bytes).unwrap());
        let examination = files.examine();
        assert_eq!(examination.len(), 21);
        for finding in examination {
            let needs = matches!(finding.level, Level::Problem | Level::Advice);
            assert_eq!(needs, finding.advice.is_some(), "{finding:#?}");
        }
    }
    // A directory where a file is expected, and the reverse.
    for path in &paths {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    }
    assert!(is_well(&files.examine()));
    let files =
        files.without("/sys").with("/sys", "no directory").without("/proc").with("/proc", "");
    assert!(is_well(&files.examine()));
}

#[test]
fn permission_for_real_time_priorities() {
    let with = |limits: &str, status: &str| {
        good().with("/proc/self/limits", limits).with("/proc/self/status", status)
    };
    let none = limits("0", "unlimited", "200000");
    let fake = with(&none, ME);
    fake.assert_finding(
        "rt_priority",
        Level::Problem,
        &["RLIMIT_RTPRIO is 0", "tee -a /etc/security/limits.d", "LimitRTPRIO"],
    );
    fake.assert_finding("rt_time", Level::Advice, &["200000 µs", "LimitRTTIME"]);
    assert!(!is_well(&fake.examine()));
    let fake = fake.with("/.dockerenv", "");
    fake.assert_finding("rt_priority", Level::Problem, &["--ulimit rtprio", "SYS_NICE"]);
    // Bit 23.
    with(&none, "CapEff:\t0000000000800000\n").assert_finding(
        "rt_priority",
        Level::Ok,
        &["CAP_SYS_NICE"],
    );
    with(&none, "CapEff:\t0000000000400000\n").assert_finding("rt_priority", Level::Problem, &[]);
    let fake = good()
        .with("/proc/self/cgroup", "3:cpu,cpuacct:/robot\n")
        .with("/sys/fs/cgroup/cpu/robot/cpu.rt_runtime_us", "0\n");
    fake.assert_finding(
        "rt_priority",
        Level::Problem,
        &["control group", "/cpu/robot/cpu.rt_runtime_us"],
    );
}

#[test]
fn preemption_models() {
    let without = || good().without("/sys/kernel/realtime");
    without().assert_finding("preemption", Level::Ok, &["PREEMPT_RT", "kernel/version"]);
    let dynamic = || without().with("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian");
    dynamic().assert_finding(
        "preemption",
        Level::Advice,
        &["cannot be read without root", "preempt=full"],
    );
    for (model, level) in [
        ("full", Level::Ok),
        ("lazy", Level::Ok),
        ("voluntary", Level::Advice),
        ("none", Level::Problem),
        ("sometimes", Level::Unknown),
    ] {
        let line = format!("quiet preempt=none preempt={model}");
        dynamic().with("/proc/cmdline", &line).assert_finding(
            "preemption",
            level,
            &[model, "cmdline"],
        );
        let debug = format!("never ({model}) ever");
        let fake = dynamic().with("/sys/kernel/debug/sched/preempt", debug);
        fake.assert_finding("preemption", level, &[model, "debug/sched"]);
    }
    let config =
        "# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_VOLUNTARY=y\n";
    let fake = dynamic().with("/boot/config-6.12.43+deb13-rt-amd64", config);
    fake.assert_finding("preemption", Level::Advice, &["voluntary", "/boot/config-6.12"]);
    let version = |text: &str| without().with("/proc/sys/kernel/version", text);
    version("#1 SMP PREEMPT x").assert_finding("preemption", Level::Ok, &[]);
    version("#1 SMP x").assert_finding("preemption", Level::Problem, &["without preemption"]);
}

#[test]
fn throttling_slices_and_clocks() {
    let runtime = |us: &str, release: &str| {
        good()
            .with("/proc/sys/kernel/sched_rt_runtime_us", us)
            .with("/proc/sys/kernel/osrelease", release)
    };
    runtime("-1", "6.1.0").assert_finding("rt_throttling", Level::Ok, &["never"]);
    runtime("950000", "6.1.0").assert_finding(
        "rt_throttling",
        Level::Advice,
        &["50000 µs in each 1000000 µs"],
    );
    runtime("950000", "6.12.0").assert_finding("rt_throttling", Level::Ok, &["starve"]);
    runtime("950000", "6.12.0")
        .with("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000")
        .assert_finding("rt_throttling", Level::Advice, &[]);
    runtime("1000000", "6.1.0").assert_finding("rt_throttling", Level::Ok, &["whole period"]);
    runtime("0", "6.12.0").assert_finding("rt_throttling", Level::Problem, &["=950000"]);
    runtime("1", "5.15.0-91-generic").assert_finding(
        "slices",
        Level::Advice,
        &["kernel 5.15", "6.12"],
    );
    runtime("1", "7.0-rc1").assert_finding("slices", Level::Ok, &["kernel 7.0"]);
    let slack = |ns: &str| good().with("/proc/self/timerslack_ns", ns);
    slack("0").assert_finding("timer_slack", Level::Ok, &[]);
    slack("50000").assert_finding("timer_slack", Level::Advice, &["50 µs", "PR_SET_TIMERSLACK"]);
    let clock = |name: &str| good().with(&format!("{CLOCK}/current_clocksource"), name);
    clock("hpet").assert_finding("clock_source", Level::Problem, &["echo tsc"]);
    clock("hpet").with(&format!("{CLOCK}/available_clocksource"), "hpet acpi_pm").assert_finding(
        "clock_source",
        Level::Problem,
        &["tsc=reliable"],
    );
    clock("arch_sys_counter").assert_finding("clock_source", Level::Ok, &[]);
    clock("sundial").assert_finding("clock_source", Level::Unknown, &["sundial"]);
    let grouped = good().with("/proc/sys/kernel/sched_autogroup_enabled", "1");
    grouped.assert_finding(
        "autogroup",
        Level::Advice,
        &["sysctl kernel.sched_autogroup_enabled=0"],
    );
}

#[test]
fn core_count_and_cpu_quota() {
    let mine =
        |list: &str| good().with("/proc/self/status", format!("Cpus_allowed_list:\t{list}\n"));
    mine("3").assert_finding("cores", Level::Problem, &["3 of 8 cores", "Wait::Block"]);
    mine("1-3").assert_finding("cores", Level::Advice, &["1-3 of 8 cores", "at most 2 thread"]);
    mine("garbage").assert_finding("cores", Level::Ok, &["all 8 cores"]);
    mine("0").with(&format!("{CPU}/online"), "0").assert_finding(
        "cores",
        Level::Problem,
        &["one core"],
    );
    let quota = |text: &str| good().with("/sys/fs/cgroup/user.slice/cpu.max", text);
    quota("150000 100000").assert_finding(
        "cpu_quota",
        Level::Problem,
        &["1.50 cores", "user.slice/cpu.max"],
    );
    quota("800000 100000").assert_finding("cpu_quota", Level::Ok, &[]);
    quota("0 0").assert_finding("cpu_quota", Level::Ok, &[]);
    let old = good()
        .with("/proc/self/cgroup", "4:cpu,cpuacct:/../../docker/abc\n0::/\n")
        .with("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n")
        .with("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    old.assert_finding(
        "cpu_quota",
        Level::Problem,
        &["0.50 cores", "/cpu/cpu.cfs_quota_us", "--cpuset-cpus"],
    );
    old.with("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n").assert_finding(
        "cpu_quota",
        Level::Ok,
        &[],
    );
}

#[test]
fn isolated_cores_and_irqbalance() {
    let isolated = |list: &str| good().with(&format!("{CPU}/isolated"), list);
    isolated("\n").assert_finding(
        "isolated_cores",
        Level::Advice,
        &["isolcpus=managed_irq,domain,6-7", "taskset -c 6-7"],
    );
    isolated("\n").with(&format!("{CPU}/online"), "0-1").assert_finding(
        "isolated_cores",
        Level::Advice,
        &["too few", "4 cores"],
    );
    isolated("\n").without(&format!("{CPU}/online")).assert_finding(
        "isolated_cores",
        Level::Advice,
        &["too few"],
    );
    isolated("4-7").assert_finding(
        "isolated_cores",
        Level::Advice,
        &["nohz_full: 6-7", "nohz_full=4-7"],
    );
    isolated("6").assert_finding("isolated_cores", Level::Ok, &["cores 6 are isolated"]);
    good().with(&format!("{CPU}/nohz_full"), "  (null)\n").assert_finding(
        "isolated_cores",
        Level::Advice,
        &["nohz_full: none"],
    );
    isolated("").with("/sys/fs/cgroup/cpuset.cpus.isolated", "7\n").assert_finding(
        "isolated_cores",
        Level::Ok,
        &["cores 7 are"],
    );
    let balanced = good().with("/proc/77/comm", "irqbalance\n");
    balanced.assert_finding("irqbalance", Level::Ok, &["skips isolated cores"]);
    let balanced = balanced.with(&format!("{CPU}/isolated"), "");
    balanced.assert_finding("irqbalance", Level::Advice, &["IRQBALANCE_BANNED_CPULIST"]);
    good().assert_finding("irqbalance", Level::Ok, &["does not run"]);
    good().with("/.dockerenv", "").assert_finding(
        "irqbalance",
        Level::Ok,
        &["it may run on the host"],
    );
    let hidden = good().without("/proc/1/comm").with("/proc/77/comm", "rnet\n");
    hidden.assert_finding("irqbalance", Level::Unknown, &["not visible"]);
    hidden.with("/proc/78/comm", "irqbalance\n").assert_finding("irqbalance", Level::Ok, &["runs"]);
}

#[test]
fn governors_and_idle_states() {
    let fake = good().with(&format!("{CPU}/cpufreq/policy7/scaling_governor"), "schedutil\n");
    fake.assert_finding("governor", Level::Advice, &["performance, schedutil", "echo performance"]);
    let fake = good().with(&format!("{CPU}/cpu5/cpuidle/state2/disable"), "0\n");
    fake.assert_finding(
        "idle_states",
        Level::Advice,
        &["C6, takes 133 µs", "state2/disable", "cpu_dma_latency"],
    );
    good().without("/dev/cpu_dma_latency").with("/run/.containerenv", "").assert_finding(
        "dma_latency",
        Level::Unknown,
        &["--device"],
    );
}

#[test]
fn virtual_machines() {
    let guest = good().with("/proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor tsc\n");
    guest.assert_finding("virtual_machine", Level::Advice, &["virtual machine", "vcpupin"]);
    good().with("/sys/hypervisor/type", "xen\n").assert_finding(
        "virtual_machine",
        Level::Advice,
        &["(xen)"],
    );
    let times = |text: &str| good().with("/proc/stat", text);
    times("cpu  10 0 10 78 0 0 0 2 0 0").assert_finding(
        "steal",
        Level::Advice,
        &["2.00 %", "vcpupin"],
    );
    times("cpu  10 0 10 9999 0 0 0 1 0 0").assert_finding("steal", Level::Ok, &["0.01 %"]);
    let most = u64::MAX;
    times(&format!("cpu {most} {most} 0 0 0 0 0 {most}")).assert_finding(
        "steal",
        Level::Advice,
        &[],
    );
    times("cpu  0 0 0 0 0 0 0 0").assert_finding("steal", Level::Ok, &["no time was stolen"]);
    times("cpu  1 2 3").assert_finding("steal", Level::Unknown, &[]);
}

#[test]
fn memory_locks_and_swap() {
    let swaps = "Filename Type Size Used Priority\n/dev/sda2 partition 8388604 204800 -2\n/swap file 100 x -3\n";
    let small = || good().with("/proc/self/limits", limits("90", "8388608", "unlimited"));
    small().assert_finding("memory_lock", Level::Advice, &["8192 KiB", "memlock unlimited"]);
    small().with("/.dockerenv", "").assert_finding(
        "memory_lock",
        Level::Advice,
        &["--ulimit memlock=-1"],
    );
    let swapping = small().with("/proc/swaps", swaps);
    swapping.assert_finding("memory_lock", Level::Problem, &["and this machine swaps"]);
    swapping.assert_finding(
        "swap",
        Level::Advice,
        &["200 MiB of it used, swappiness 60", "swapoff"],
    );
    // Bit 14.
    small().with("/proc/self/status", "CapEff:\t0000000000004000\n").assert_finding(
        "memory_lock",
        Level::Ok,
        &["CAP_IPC_LOCK"],
    );
}

#[test]
fn limits_of_locked_memory() {
    let gib = |n: f64| ((n * f64::from(1 << 30)) as u64).to_string();
    let limit = |n: f64| good().with("/proc/self/limits", limits("90", &gib(n), "unlimited"));
    let swaps = "Filename Type Size Used Priority\n/dev/sda2 partition 8388604 204800 -2\n";
    for (limit_gib, level, word) in [
        (0.0625, Level::Problem, "65536 KiB of memory may be locked: mlockall will fail"),
        (2.0, Level::Advice, "mlockall may fail"),
        (7.9, Level::Advice, "mlockall may fail"),
        (8.0, Level::Ok, "8192 MiB"),
    ] {
        let fake = limit(limit_gib).with("/proc/swaps", swaps);
        let fake = fake.with("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB\n");
        fake.assert_finding("memory_lock", level, &[word]);
    }
    limit(2.0).assert_finding("memory_lock", Level::Advice, &["may fail"]);
    limit(4.0).assert_finding("memory_lock", Level::Ok, &["4096 MiB"]);
    limit(4.0).with("/proc/meminfo", "MemTotal: much").assert_finding(
        "memory_lock",
        Level::Ok,
        &[],
    );
}

#[test]
fn huge_pages() {
    let heap = good().with(&format!("{THP}/enabled"), "[always] madvise never\n");
    heap.assert_finding("huge_heap_pages", Level::Advice, &["echo madvise"]);
    let forced = good().with(&format!("{THP}/shmem_enabled"), "always never deny [force]\n");
    forced.assert_finding("huge_shared_pages", Level::Advice, &["forced"]);
    let fake = good();
    let at = fake.root.display().to_string();
    let mounts = format!(
        "1 0 0:1 / / rw - ext4 /dev/x rw,huge=always\n2 1 0:2 / {at} rw - tmpfs tmpfs rw\n\
         3 2 0:3 / {at} rw shared:1 - tmpfs tmpfs rw,size=1g,huge=within_size\ngarbage\n"
    );
    let fake = fake.with("/proc/self/mountinfo", mounts);
    fake.assert_finding(
        "huge_shared_pages",
        Level::Advice,
        &["huge=within_size", "remount,huge=never"],
    );
}

#[test]
fn mount_of_the_domain_directory() {
    // By its mount point with a space in it, and by a symbolic link.
    let fake = good();
    let (dir, link) = (fake.root.join("a b"), fake.root.join("link"));
    std::fs::create_dir(&dir).unwrap();
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let point = dir.display().to_string().replace(' ', "\\040");
    let mounts =
        format!("1 0 0:1 / / rw - tmpfs x rw\n2 1 0:2 / {point} rw - tmpfs x rw,huge=always\n");
    let fake = fake.with("/proc/self/mountinfo", mounts);
    for dir in [&dir, &link] {
        let found = examine_at(&fake.root, dir);
        let pages = found.iter().find(|f| f.check == "huge_shared_pages").unwrap();
        assert_eq!(pages.level, Level::Advice, "{pages:?}");
    }
}

#[test]
fn core_lists_are_parsed_and_written() {
    assert_eq!(parse_cores("0-2,8\n"), Some(vec![0, 1, 2, 8]));
    assert_eq!(parse_cores("8,0-2,1"), Some(vec![0, 1, 2, 8]));
    assert_eq!(parse_cores(""), Some(vec![]));
    assert_eq!(parse_cores("(null)"), Some(vec![]));
    for bad in ["-", "x", "3-1", "1,,2", "0-99999999", "-1", "1-2-3"] {
        assert_eq!(parse_cores(bad), None, "{bad}");
    }
    assert_eq!(list_cores(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
    assert_eq!(list_cores(&[]), "");
}

#[test]
fn bracketed_choices_are_found() {
    assert_eq!(bracketed_choice("always [madvise] never"), Some("madvise"));
    assert_eq!(bracketed_choice("none voluntary (full) lazy"), Some("full"));
    assert_eq!(bracketed_choice("always never"), None);
    assert_eq!(bracketed_choice("[ ( ] )"), None);
}

#[test]
fn the_real_machine_can_be_examined() {
    let examination = examine_at(Path::new("/"), Path::new("/dev/shm"));
    assert_eq!(examination.len(), 21);
    assert!(examination.iter().any(|f| f.level == Level::Ok));
}
