//! Process information from the kernel.

use std::fs;

/// The displayed fields of `proc_pid_stat(5)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process {
    /// `R`, `S`, `D`, `T`, …
    pub state: char,
    /// User and system CPU time so far, in s.
    pub cpu_s: f64,
    /// Resident memory in bytes, including shared pages.
    pub rss_bytes: u64,
}

impl Process {
    /// `None` if the process does not exist, or is not visible from here.
    pub fn read(pid: u32) -> Option<Process> {
        // The kernel truncates the program name to 15 bytes, possibly within a character.
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        Process::parse(&stat, rustix::param::clock_ticks_per_second(), rustix::param::page_size())
    }

    fn parse(stat: &str, ticks_per_s: u64, page_bytes: usize) -> Option<Process> {
        // The second field is the program name in parentheses, which may contain spaces and parentheses.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // From the third field on: the state; utime and stime are 14 and 15, the resident pages 24.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Process {
            state: fields.first()?.chars().next()?,
            cpu_s: (number(14)? + number(15)?) as f64 / ticks_per_s as f64,
            rss_bytes: number(24)?.saturating_mul(page_bytes as u64),
        })
    }

    /// Whether SIGSTOP or a debugger has stopped it.
    pub fn is_stopped(self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// The name of the state.
    pub fn state(self) -> &'static str {
        match self.state {
            _ if self.is_stopped() => "stopped",
            'Z' | 'X' => "ended",
            'D' => "waits for a device",
            _ => "runs",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::Process;

    #[test]
    fn parses_name_truncated_within_a_character() {
        let named = r"printf 'leg\303' >/proc/$$/comm; echo; read -r end";
        let mut shell = Command::new("sh");
        shell.args(["-c", named]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let comm = std::fs::read(format!("/proc/{}/comm", child.id())).unwrap();
        assert_eq!(comm, b"leg\xc3\n");
        assert!(Process::read(child.id()).is_some_and(|process| process.rss_bytes > 0));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn parses_name_with_parentheses() {
        let stat = "42 (a) b (c) T 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 3 0 99 4096 7 18446744073709551615";
        let process = Process::parse(stat, 100, 4096).unwrap();
        assert_eq!(process, Process { state: 'T', cpu_s: 2.0, rss_bytes: 7 * 4096 });
        assert_eq!(process.state(), "stopped");
        for short in ["", "42 (a", "42 (a) R 1 2"] {
            assert_eq!(Process::parse(short, 100, 4096), None);
        }
        assert!(Process::read(std::process::id()).unwrap().rss_bytes > 0);
    }
}
