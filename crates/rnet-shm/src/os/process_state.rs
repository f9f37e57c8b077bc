//! Processes that are ending or stopped, as the kernel says. A name that an ending one holds is about to be free.
//!
//! A process that is killed lets go of its locks only when its memory has been taken down, which
//! takes tens of milliseconds for a large one, or when the kernel has written its core. A
//! supervisor that restarts it at once must not be told that the name is taken.

/// Whether the process is on its way out: it is exiting, is dead, or SIGKILL waits for it.
///
/// `pid` is what the holder of a name wrote down: where it is a number of another pid namespace the
/// answer is about a stranger, which costs its asker a bounded wait and nothing else.
pub(crate) fn is_exiting(pid: u32) -> bool {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    let Ok(stat) = read("stat") else {
        // Its locks went before its number. Or it is in another pid namespace.
        return false;
    };
    is_ending(&stat) || read("status").is_ok_and(|status| is_to_be_killed(&status))
}

/// Whether a signal or a debugger has stopped the process.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    matches!(fields_of(&stat).first(), Some(&("T" | "t")))
}

/// Of `/proc/pid/stat`: the state and what follows it, behind the name, which may hold anything.
fn fields_of(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect())
}

/// From `/proc/pid/stat`: the state and the flags.
fn is_ending(stat: &str) -> bool {
    const PF_EXITING: u64 = 0x4;
    const FLAGS: usize = 6;
    let fields = fields_of(stat);
    let flags = fields.get(FLAGS).and_then(|flags| flags.parse::<u64>().ok()).unwrap_or(0);
    matches!(fields.first(), Some(&("Z" | "X" | "x"))) || flags & PF_EXITING != 0
}

/// From `/proc/pid/status`: SIGKILL among the signals that are pending.
fn is_to_be_killed(status: &str) -> bool {
    const KILL: u64 = 1 << (libc::SIGKILL - 1);
    let pending = |line: &str| {
        let set = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(set.trim(), 16).ok()
    };
    status.lines().filter_map(pending).any(|set| set & KILL != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_found_behind_any_name() {
        let rest = "1 2 3 4 5 4194304 7 8";
        assert!(!is_ending(&format!("17 (a) Z (b) S {rest}")));
        assert!(is_ending(&format!("17 (a) S (b) Z {rest}")));
        assert!(is_ending("17 (node) R 1 2 3 4 5 4194308 7 8"));
        assert!(!is_ending("") && !is_ending("17 (node) T"));
    }

    #[test]
    fn only_sigkill_counts() {
        assert!(is_to_be_killed("Name:\tx\nSigPnd:\t0000000000000100\n"));
        assert!(is_to_be_killed("SigPnd:\t0\nShdPnd:\t0000000000004100\n"));
        assert!(!is_to_be_killed("SigPnd:\t0000000000004000\nSigBlk:\t0000000000000100\n"));
    }

    #[test]
    fn this_process_is_not_dying() {
        assert!(!is_exiting(std::process::id()) && !is_stopped(std::process::id()));
    }
}
