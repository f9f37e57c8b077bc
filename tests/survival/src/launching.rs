//! A launcher and its keepers, for the judge to kill: `rnet launch` with the library and without the
//! command line. Its events are lines of its output.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rnet::NodeName;
use rnet::inspect::Domain;
use rnet_launch::{
    Keeper, KeeperRequest, LaunchOptions, Launcher, LauncherContext, NodeStatus, RunFolder,
    StopSignals,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The launch file.
pub const FILE: &str = "robot.toml";
/// The folder of records and logs.
pub const RUNS: &str = "runs";

/// The interval of checks for a signal.
const LOOK: Duration = Duration::from_millis(20);

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

fn begin() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only touches an atomic.
        unsafe {
            libc::signal(signal, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t);
        }
    }
    #[cfg(debug_assertions)]
    rnet_shm::os::failpoint::install();
}

/// Whether a stop was requested.
struct BySignal;

impl StopSignals for BySignal {
    fn stop_requested(&self) -> bool {
        STOP.load(Ordering::Relaxed)
    }

    fn wait(&self, fd: BorrowedFd<'_>, limit: Option<Duration>, _: bool) -> std::io::Result<()> {
        let limit = limit.map_or(LOOK, |limit| limit.min(LOOK)).as_millis() as libc::c_int;
        let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure of this function, for the time of the call. A signal ends it early.
        unsafe { libc::poll(&raw mut polled, 1, limit) };
        Ok(())
    }
}

/// The context of the launcher, in the domain of a directory.
struct TestSurroundings<'a> {
    dir: &'a Path,
    shown: Vec<&'static str>,
}

impl TestSurroundings<'_> {
    fn line(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // The reader may be gone.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}

impl StopSignals for TestSurroundings<'_> {
    fn stop_requested(&self) -> bool {
        BySignal.stop_requested()
    }

    fn wait(
        &self,
        fd: BorrowedFd<'_>,
        limit: Option<Duration>,
        knows: bool,
    ) -> std::io::Result<()> {
        BySignal.wait(fd, limit, knows)
    }
}

impl LauncherContext for TestSurroundings<'_> {
    fn keeper(&self, _: &NodeName) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg("keep");
        command
    }

    fn domain(&self) -> rnet::Result<Domain> {
        Domain::open(Some("s"), Some(self.dir.to_owned()), None)
    }

    fn node(&self) -> rnet::Result<rnet::Node> {
        crate::roles::node(self.dir, "launcher")
    }

    fn event(&mut self, node: &NodeName, what: &str, detail: &str) {
        self.line(&format!("{node} {what} {detail}"));
    }

    fn say(&mut self, text: &str) {
        self.line(text);
    }

    fn status(&mut self, rows: &[NodeStatus]) {
        let now: Vec<&'static str> = rows.iter().map(|row| row.state).collect();
        if now != self.shown {
            self.line(&format!("now {}", now.join(" ")));
            self.shown = now;
        }
    }
}

/// Launches the file of a directory until it is stopped.
///
/// # Errors
/// The error of the launch.
pub fn launch(dir: &Path) -> Outcome {
    begin();
    let folder = RunFolder::at(dir.join(RUNS));
    let choices = LaunchOptions { host: None, set: Vec::new(), blackbox: folder.blackbox() };
    let mut surroundings = TestSurroundings { dir, shown: Vec::new() };
    let ended = Launcher::new(dir.join(FILE), choices, folder, false, &mut surroundings)?.run()?;
    match ended.failed.is_empty() {
        true => Ok(()),
        false => Err(format!("{:?}", ended.failed).into()),
    }
}

/// Keeps the node that the request on the standard input names.
///
/// # Errors
/// Why it does not.
pub fn keep() -> Outcome {
    begin();
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    let request: KeeperRequest = serde_json::from_slice(&text)?;
    let answer = |word: &str| {
        let mut out = std::io::stdout().lock();
        // The launcher may be dead. A live one reads to the end.
        let _ = writeln!(out, "{word}").and_then(|()| out.flush());
        if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
            // SAFETY: both descriptors are open, and nothing is borrowed of the one that is closed.
            unsafe { libc::dup2(null.as_raw_fd(), libc::STDOUT_FILENO) };
        }
    };
    Keeper::run(request, answer, &BySignal).map_err(Into::into)
}
