//! Whether this user may use real-time priorities.

use super::machine::{Capability, Limit, Machine};
use super::{Check, Finding};

/// How to get the permission: in a container, or on the host.
fn limits_advice(machine: &Machine<'_>) -> &'static str {
    if machine.is_container() {
        "docker run --ulimit rtprio=90 … (root in the container: --cap-add SYS_NICE)"
    } else {
        "echo '@realtime - rtprio 90' | sudo tee -a /etc/security/limits.d/90-realtime.conf; sudo groupadd \
         -f realtime; sudo usermod -aG realtime $USER; log in again. systemd unit: LimitRTPRIO=90"
    }
}

/// Checks whether this user may use SCHED_FIFO.
pub(super) fn rt_priority(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "rt_priority",
        "/proc/self/limits, CapEff in /proc/self/status",
        "without SCHED_FIFO, a thread woken by a message may wait several milliseconds until the scheduler \
         prefers it to the running thread",
    );
    // With CONFIG_RT_GROUP_SCHED and control groups of version 1, each group needs its own share.
    let share = machine.groups("cpu").first().and_then(|group| {
        let file = format!("{group}/cpu.rt_runtime_us");
        Some((machine.number::<i64>(&file)?, file))
    });
    if let Some((0, file)) = share {
        return Check { read_from: file.clone(), ..check }.problem(
            "the control group of this process has no CPU time for real-time threads: SCHED_FIFO is refused",
            format!("echo 950000 | sudo tee {file} (its parents first), or boot with rt_group_sched=0"),
        );
    }
    let capable = machine.is_capable(Capability::SysNice);
    let limit = machine.limit("Max realtime priority");
    match (capable, limit) {
        (Some(true), _) => check.ok("CAP_SYS_NICE is set: any real-time priority is allowed"),
        (_, Some(Limit::Unlimited)) => check.ok("any real-time priority is allowed"),
        (_, Some(Limit::Of(0))) => check.problem(
            "no real-time priority is allowed: RLIMIT_RTPRIO is 0 and CAP_SYS_NICE is not set",
            limits_advice(machine),
        ),
        (_, Some(Limit::Of(most))) => {
            check.ok(format!("real-time priorities are allowed up to {most}"))
        }
        (_, None) => {
            check.unknown("the limits of this process cannot be read; check with `chrt -f 1 true`")
        }
    }
}

/// Checks whether a real-time thread is killed if it does not sleep.
pub(super) fn rt_time(machine: &Machine<'_>) -> Finding {
    let check = Check::new(
        "rt_time",
        "/proc/self/limits",
        "a real-time thread that spins longer than RLIMIT_RTTIME without a blocking system call gets SIGXCPU, \
         which terminates the process",
    );
    match machine.limit("Max realtime timeout") {
        Some(Limit::Unlimited) => check.ok("real-time threads may run without limit"),
        Some(Limit::Of(us)) => check.advice(
            format!("a real-time thread that runs for {us} µs without blocking is terminated"),
            "do not use Wait::Spin at a real-time priority, or run `ulimit -R unlimited`; systemd unit: \
             LimitRTTIME=infinity",
        ),
        None => check.unknown("the limits of this process cannot be read"),
    }
}
