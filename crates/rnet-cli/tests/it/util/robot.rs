//! A robot to launch: a file in a place of its own, and what its nodes write.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Place, Ran, Running};

/// What takes longer hangs.
const HANG: Duration = Duration::from_secs(300);

/// A place with a file to launch; what still runs at its end is stopped.
pub struct Robot {
    pub place: Place,
    /// What its file says besides.
    more: &'static str,
}

impl Robot {
    /// One without a black box, which is no matter of most tests.
    pub fn new(text: &str) -> Robot {
        Robot::of(text, "\n[blackbox]\nenabled = false\n")
    }

    /// One with the black box that a robot has.
    pub fn with_box(text: &str) -> Robot {
        Robot::of(text, "")
    }

    fn of(text: &str, more: &'static str) -> Robot {
        let robot = Robot { place: Place::new(), more };
        robot.write(text);
        robot
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.dir.join(name)
    }

    pub fn write(&self, text: &str) {
        // At once: the launcher may be looking.
        std::fs::write(self.path("draft"), format!("{text}{}", self.more)).unwrap();
        std::fs::rename(self.path("draft"), self.path("robot.toml")).unwrap();
    }

    pub fn launch(&self, options: &[&str]) -> Running {
        let mut command = self.place.command();
        command.arg("launch").arg(self.path("robot.toml")).args(options);
        Running::start(command)
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.place.run(args)
    }

    /// Waits until a file holds what is looked for, and returns it.
    #[track_caller]
    pub fn until(&self, name: &str, holds: impl Fn(&str) -> bool) -> String {
        let read = || std::fs::read_to_string(self.path(name)).unwrap_or_default();
        until(&|| Some(read()).filter(|text| holds(text)), &|| read())
    }

    /// The process ids that a node has written to a file, a line for each start.
    pub fn pids(&self, name: &str, starts: usize) -> Vec<String> {
        let text = self.until(name, |text| text.lines().count() >= starts && text.ends_with('\n'));
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        // A launch of nothing stops what an earlier one has started.
        self.write("");
        let _ = self.launch(&[]).wait();
    }
}

#[track_caller]
pub fn until<T>(look: &dyn Fn() -> Option<T>, said: &dyn Fn() -> String) -> T {
    let end = Instant::now() + HANG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it does not come; so far: {}", said());
        std::thread::sleep(Duration::from_millis(10)); // sleep: between looks at a file or at /proc
    }
}

pub fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[track_caller]
pub fn until_gone(pid: &str) {
    until(&|| (!is_alive(pid)).then_some(()), &|| format!("{pid} lives"));
}

/// A node of a shell that writes its process id into a file and sleeps.
pub fn sleeper(name: &str, more: &str) -> String {
    format!(
        "[node.{name}]\ncommand = [\"sh\", \"-c\", \"echo $$$$ >> {name}.pid; exec sleep 600\"]\n{more}\n"
    )
}
