//! The kernel: its scheduling and its clocks.

use super::machine::{Machine, bracketed_choice};
use super::{Check, Finding};

/// The first kernel on which SCHED_OTHER threads may choose their slice, and on which real-time threads are only
/// throttled if other threads need the core.
const TIME_SLICES_SINCE: (u32, u32) = (6, 12);

/// Longer timer slack, in nanoseconds, is reported.
const MAX_TIMER_SLACK_NS: u64 = 10_000;

/// How to get a kernel with full preemption.
const FULL_PREEMPTION_ADVICE: &str = "boot with preempt=full: add it to GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, sudo \
                    update-grub, reboot; or until then: echo full | sudo tee /sys/kernel/debug/sched/preempt. \
                    Better: a PREEMPT_RT kernel (Debian: linux-image-rt-amd64, Ubuntu: `sudo pro enable \
                    realtime-kernel`)";

/// Checks the preemption model: when the kernel gives the core to a thread with a higher priority.
pub(super) fn preemption(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "preemption",
        "/sys/kernel/realtime",
        "a thread woken by a message must wait until the kernel can be preempted on that core",
    );
    if machine.number::<u32>("/sys/kernel/realtime") == Some(1) {
        return check.ok("the kernel is PREEMPT_RT");
    }
    let now = "/sys/kernel/debug/sched/preempt";
    if let Some(model) = machine.text(now).as_deref().and_then(bracketed_choice) {
        return by_model(Check { read_from: now.into(), ..check }, model);
    }
    let Some(version) = machine.text("/proc/sys/kernel/version") else {
        return check.unknown("the kernel version cannot be read");
    };
    let line = "/proc/cmdline";
    let asked = machine.text(line).and_then(|text| {
        // The last one wins, as in the kernel.
        let named = text.split_whitespace().rev().find_map(|word| word.strip_prefix("preempt="));
        named.map(str::to_owned)
    });
    let has = |flag: &str| version.split_whitespace().any(|word| word == flag);
    if has("PREEMPT_RT") {
        let check = Check { read_from: "/proc/sys/kernel/version".into(), ..check };
        return check.ok("the kernel is PREEMPT_RT");
    }
    if has("PREEMPT_DYNAMIC") {
        if let Some(model) = asked {
            return by_model(Check { read_from: line.into(), ..check }, &model);
        }
        // The default model, if the command line has none.
        let file = machine
            .text("/proc/sys/kernel/osrelease")
            .map(|release| format!("/boot/config-{release}"))
            .unwrap_or_default();
        let built = machine.text(&file).and_then(|config| {
            let set = |option: &str| config.lines().any(|l| l == format!("CONFIG_{option}=y"));
            let models = [
                ("PREEMPT_NONE", "none"),
                ("PREEMPT_VOLUNTARY", "voluntary"),
                ("PREEMPT_LAZY", "lazy"),
                ("PREEMPT", "full"),
            ];
            models.into_iter().find(|(option, _)| set(option)).map(|(_, model)| model)
        });
        if let Some(model) = built {
            return by_model(Check { read_from: file, ..check }, model);
        }
        return Check { read_from: "/proc/sys/kernel/version".into(), ..check }.advice(
            "the preemption model was set when the kernel was built (PREEMPT_DYNAMIC) and cannot be read \
             without root; check with `sudo cat /sys/kernel/debug/sched/preempt` or `zgrep CONFIG_PREEMPT \
             /proc/config.gz`",
            FULL_PREEMPTION_ADVICE,
        );
    }
    let check = Check { read_from: "/proc/sys/kernel/version".into(), ..check };
    if has("PREEMPT") {
        return check.ok("the kernel is fully preemptible (PREEMPT)");
    }
    check.problem(
        "the kernel was built without preemption, or with voluntary preemption only",
        FULL_PREEMPTION_ADVICE,
    )
}

fn by_model(check: Check, model: &str) -> Finding {
    match model {
        "full" => check.ok("the kernel is fully preemptible (preempt=full)"),
        "lazy" => check.ok(
            "the kernel is preempted immediately by real-time threads, and at the next tick by others (preempt=lazy)",
        ),
        "voluntary" => check.advice("the kernel is preemptible only at certain points (preempt=voluntary)", FULL_PREEMPTION_ADVICE),
        "none" => {
            check.problem("the kernel is not preemptible in system calls (preempt=none)", FULL_PREEMPTION_ADVICE)
        }
        other => check.unknown(format!("the kernel reports an unknown preemption model {other:?}")),
    }
}

/// Checks which share of a core real-time threads may use.
pub(super) fn rt_throttling(machine: &Machine<'_>) -> Finding {
    let runtime_file = "/proc/sys/kernel/sched_rt_runtime_us";
    let check = Check::new(
        "rt_throttling",
        runtime_file,
        "a spinning real-time thread (Wait::Spin) uses up its share, and its messages then wait for the next period",
    );
    let period = machine.number::<i64>("/proc/sys/kernel/sched_rt_period_us");
    // This file exists with CONFIG_RT_GROUP_SCHED, which keeps the old behaviour.
    let grouped = machine.text("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").is_some();
    let lenient = !grouped && machine.kernel().is_some_and(|k| k >= TIME_SLICES_SINCE);
    let free_it =
        "sudo sysctl kernel.sched_rt_runtime_us=-1 (a runaway thread can then hang its core)";
    match (machine.number::<i64>(runtime_file), period) {
        (Some(i64::MIN..=-1), _) => check.ok("real-time threads are never throttled (-1)"),
        (Some(0), _) => check.problem(
            "real-time threads get no CPU time (0)",
            "sudo sysctl kernel.sched_rt_runtime_us=950000",
        ),
        (Some(runtime), Some(period)) if runtime >= period => {
            check.ok(format!("real-time threads get the whole period of {period} µs"))
        }
        (Some(runtime), Some(period)) if lenient => check.ok(format!(
            "real-time threads get {runtime} of {period} µs; since kernel 6.12, they lose the rest only to \
             threads that would otherwise starve"
        )),
        (Some(runtime), Some(period)) => check.advice(
            format!(
                "real-time threads that keep a core busy are throttled for {} µs in each {period} µs",
                period - runtime
            ),
            format!("do not spin at a real-time priority (use Wait::Adaptive, which sleeps), or {free_it}"),
        ),
        _ => check.unknown("the CPU share of real-time threads cannot be read"),
    }
}

/// Checks whether a thread without real-time permission can request a short slice.
pub(super) fn time_slices(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "slices",
        "/proc/sys/kernel/osrelease",
        "a thread that requests a short slice (0.1 ms or more) is preferred when it wakes; unlike SCHED_FIFO, \
         this needs no privileges",
    );
    match machine.kernel() {
        Some(version @ (major, minor)) if version >= TIME_SLICES_SINCE => check.ok(format!(
            "kernel {major}.{minor} lets threads set their slice (EEVDF, since 6.12): sched_setattr(2), or \
             `chrt -o -T 100000 0 PROGRAM` if chrt supports it (util-linux 2.38 does not)"
        )),
        Some((major, minor)) => check.advice(
            format!("kernel {major}.{minor} gives all SCHED_OTHER threads the same slice"),
            "use kernel 6.12 or later (Debian 13, Ubuntu 25.04), or SCHED_FIFO",
        ),
        None => check.unknown("the kernel release cannot be read"),
    }
}

/// Checks whether autogroups make nice values ineffective.
pub(super) fn autogroup(machine: &Machine<'_>) -> Finding {
    let file = "/proc/sys/kernel/sched_autogroup_enabled";
    let check = Check::new(
        "autogroup",
        file,
        "with autogroup, nice values apply only within a terminal session, so they cannot prioritize a node \
         over programs of other sessions; SCHED_FIFO is not affected",
    );
    match machine.number::<u32>(file) {
        Some(0) => check.ok("sessions are not grouped: nice values apply everywhere"),
        Some(_) => check.advice(
            "the scheduler treats each terminal session as a separate group",
            "sudo sysctl kernel.sched_autogroup_enabled=0 (to make it permanent: add it to \
             /etc/sysctl.d/90-realtime.conf)",
        ),
        None => check.ok("the kernel has no autogroup"),
    }
}

/// Checks how late a timed wait may end.
pub(super) fn timer_slack(machine: &Machine<'_>) -> Finding {
    let file = "/proc/self/timerslack_ns";
    let check = Check::new(
        "timer_slack",
        file,
        "a sleep between periodic messages, and a receive with a timeout, may end late by up to the timer \
         slack; threads with a real-time policy have no slack",
    );
    match machine.number::<u64>(file) {
        Some(slack_ns) if slack_ns <= MAX_TIMER_SLACK_NS => check.ok(format!("timers are at most {slack_ns} ns late")),
        Some(slack_ns) => check.advice(
            format!("timers of programs started from here may be up to {} µs late", slack_ns / 1000),
            "call prctl(PR_SET_TIMERSLACK, 1) in the program; systemd unit: TimerSlackNSec=1; or use \
             SCHED_FIFO: chrt -f 50 PROGRAM",
        ),
        None => check.unknown("the timer slack of this process cannot be read"),
    }
}

/// Checks the cost of reading the clock.
pub(super) fn clock_source(machine: &Machine<'_>) -> Finding {
    const DIR: &str = "/sys/devices/system/clocksource/clocksource0";
    let file = format!("{DIR}/current_clocksource");
    let check = Check::new(
        "clock_source",
        file.as_str(),
        "every message is timestamped: this takes 20 to 50 ns if the program can read the clock directly, a \
         microsecond or more if it needs a system call",
    );
    let Some(source) = machine.text(&file).filter(|s| !s.is_empty()) else {
        return check.unknown("the clock source cannot be read");
    };
    let available = machine.text(&format!("{DIR}/available_clocksource")).unwrap_or_default();
    let offers = |name: &str| available.split_whitespace().any(|word| word == name);
    match source.as_str() {
        "tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page" => {
            check.ok(format!("the clock source is {source}, which programs read directly"))
        }
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" => check.problem(
            format!("the clock source is {source}, which needs a system call and slow hardware"),
            if offers("tsc") {
                format!("echo tsc | sudo tee {file}")
            } else {
                "the kernel considers this machine's time stamp counter unreliable: see `sudo dmesg | grep -i \
                 tsc`; newer firmware often helps, and so does tsc=reliable on the kernel command line if the \
                 counter is known to be reliable"
                    .to_owned()
            },
        ),
        _ => check.unknown(format!("the clock source is {source}, which this check does not know")),
    }
}
