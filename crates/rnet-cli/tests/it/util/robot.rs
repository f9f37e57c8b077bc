//! A robot to launch: a file in a private directory, and the output of its nodes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{CommandOutput, RunningCommand, TestEnv};

/// A longer operation is considered hung.
const HANG_LIMIT: Duration = Duration::from_secs(300);

/// A directory with a file to launch; drop stops all processes that still run.
pub struct Robot {
    pub env: TestEnv,
    /// Additional content of its file.
    more: &'static str,
}

impl Robot {
    /// A robot without a black box, which most tests do not need.
    pub fn new(text: &str) -> Robot {
        Robot::of(text, "\n[blackbox]\nenabled = false\n")
    }

    /// A robot with the default black box.
    pub fn with_box(text: &str) -> Robot {
        Robot::of(text, "")
    }

    fn of(text: &str, more: &'static str) -> Robot {
        let robot = Robot { env: TestEnv::new(), more };
        robot.write(text);
        robot
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.env.dir.join(name)
    }

    pub fn write(&self, text: &str) {
        // Atomically, because the launcher may read it.
        std::fs::write(self.path("draft"), format!("{text}{}", self.more)).unwrap();
        std::fs::rename(self.path("draft"), self.path("robot.toml")).unwrap();
    }

    pub fn launch(&self, options: &[&str]) -> RunningCommand {
        let mut command = self.env.command();
        command.arg("launch").arg(self.path("robot.toml")).args(options);
        RunningCommand::start(command)
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        self.env.run(args)
    }

    /// A file of the launch's folder, which the launcher created.
    pub fn launch_file(&self, name: &str) -> PathBuf {
        let launches = self.path("durable/launch");
        let folder = || std::fs::read_dir(&launches).ok()?.flatten().next();
        until(&folder, &|| "no folder".to_owned()).path().join(name)
    }

    /// Everything that can explain why a node does not run: its processes and what each waits for, the locks,
    /// and the records and logs of the launch.
    pub fn state(&self) -> String {
        let mut text = String::new();
        let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\0', " ");
        let read = |path: &Path| std::fs::read(path).map(lossy).unwrap_or_else(|e| e.to_string());
        for pid in processes(&self.env.dir) {
            let proc = PathBuf::from(format!("/proc/{pid}"));
            let _ = writeln!(text, "process {pid}: {}", read(&proc.join("cmdline")));
            for name in ["stat", "wchan", "syscall", "stack"] {
                let _ = writeln!(text, "  {name}: {}", read(&proc.join(name)).trim_end());
            }
            for fd in std::fs::read_dir(proc.join("fd")).into_iter().flatten().flatten() {
                let target = std::fs::read_link(fd.path()).unwrap_or_default();
                let _ = writeln!(text, "  fd {:?}: {}", fd.file_name(), target.display());
            }
        }
        let locks = read(Path::new("/proc/locks"));
        for lock in locks.lines().filter(|line| line.contains("FLOCK")) {
            let _ = writeln!(text, "lock {lock}");
        }
        let launches = std::fs::read_dir(self.path("durable/launch")).into_iter().flatten();
        let folders = launches.flatten().map(|entry| entry.path()).chain([self.path("")]);
        for file in folders.flat_map(std::fs::read_dir).flatten().flatten() {
            let inode = std::os::unix::fs::DirEntryExt::ino(&file);
            if file.file_type().is_ok_and(|kind| kind.is_file()) {
                let _ = writeln!(
                    text,
                    "{} (inode {inode}): {}",
                    file.path().display(),
                    read(&file.path())
                );
            }
        }
        text
    }

    /// Waits until a file contains the expected text, and returns it.
    #[track_caller]
    pub fn until(&self, name: &str, holds: impl Fn(&str) -> bool) -> String {
        let read = || std::fs::read_to_string(self.path(name)).unwrap_or_default();
        until(&|| Some(read()).filter(|text| holds(text)), &|| read())
    }

    /// The process ids that a node has written to a file, one line per start.
    pub fn pids(&self, name: &str, starts: usize) -> Vec<String> {
        let text = self.until(name, |text| text.lines().count() >= starts && text.ends_with('\n'));
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        // A launch of an empty file stops the nodes of an earlier one.
        self.write("");
        let _ = self.launch(&[]).wait();
    }
}

pub fn kill(signal: &str, pid: &str) {
    let sent = Command::new("kill").args(["-s", signal, pid]).status().unwrap();
    assert!(sent.success(), "{signal} {pid}");
}

/// The fields of `/proc/PID/stat` after the program name; the first one is field 3.
pub fn stat(pid: &str) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

pub fn parent_of(pid: &str) -> Option<String> {
    stat(pid).map(|fields| fields[1].clone())
}

/// All live processes that have this directory as `RNET_DIR`: launchers, keepers, nodes and their children.
pub fn processes(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let variable = format!("RNET_DIR={}", dir.display());
    let is_here = |pid: &String| {
        let all = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        all.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    pids.filter(|pid| pid.parse::<u32>().is_ok() && is_here(pid) && is_alive(pid)).collect()
}

#[track_caller]
pub fn until<T>(poll: &dyn Fn() -> Option<T>, said: &dyn Fn() -> String) -> T {
    let end = Instant::now() + HANG_LIMIT;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(Instant::now() < end, "it does not come; so far: {}", said());
        std::thread::sleep(Duration::from_millis(10)); // sleep: polling interval
    }
}

pub fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[track_caller]
pub fn wait_until_gone(pid: &str) {
    until(&|| (!is_alive(pid)).then_some(()), &|| format!("{pid} lives"));
}

/// A shell node that writes its process id into a file and sleeps.
pub fn sleeper(name: &str, more: &str) -> String {
    format!(
        "[node.{name}]\ncommand = [\"sh\", \"-c\", \"echo $$$$ >> {name}.pid; exec sleep 600\"]\n{more}\n"
    )
}
