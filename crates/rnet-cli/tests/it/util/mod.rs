//! A private directory for each test, the real binary run in it, and nodes to inspect.

// Each test module uses a part of this.
#![allow(dead_code)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rnet::{Message, Node, Publisher};

pub mod processes;
pub mod recording;
pub mod robot;
pub mod terminal;

/// Longer than any operation takes: a guard against hangs, not a measurement.
const HANG_LIMIT: Duration = Duration::from_secs(300);
pub const TEST_TIMEOUT: Duration = HANG_LIMIT;

/// Default domain of the tests.
pub const DOMAIN: &str = "clitest";

/// Runs `rnet` with these arguments and waits for its exit: `rnet!(env, "topic", "list")`.
#[macro_export]
macro_rules! rnet {
    ($env:expr $(, $arg:expr)* $(,)?) => { $env.run(&[$($arg.as_ref()),*]) };
}

/// A private base directory; removed on drop.
pub struct TestEnv {
    pub dir: PathBuf,
}

impl TestEnv {
    pub fn new() -> TestEnv {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rnet-cli-test-{}-{n}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        TestEnv { dir }
    }

    pub fn node(&self, name: &str) -> Node {
        self.node_in(name, DOMAIN)
    }

    pub fn node_in(&self, name: &str, domain: &str) -> Node {
        Node::builder(name).dir(&self.dir).domain(domain).open().unwrap()
    }

    /// The domain directory of the tests.
    pub fn domain_dir(&self) -> PathBuf {
        let domain = rnet::inspect::Domain::open(Some(DOMAIN), Some(self.dir.clone()), None);
        domain.unwrap().path().to_owned()
    }

    /// `rnet` with the environment of the test's domain.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rnet"));
        command.env("RNET_DIR", &self.dir).env("RNET_DOMAIN", DOMAIN).env_remove("RNET_GROUP");
        for name in [
            "RNET_NETWORK",
            "RNET_CONFIG",
            "RNET_LISTEN",
            "RNET_CONNECT",
            "RNET_INTERFACES",
            "RNET_LOST_AFTER_MS",
            "RNET_HOST",
            "RNET_KEYS",
        ] {
            command.env_remove(name);
        }
        // Not the keys of the user who runs the tests.
        command.env("XDG_CONFIG_HOME", self.dir.join("config"));
        // Not the one that may be installed beside `rnet`.
        command.env("RNET_LINK", self.dir.join("rnet-link"));
        // Durable state is removed with the test.
        command.env("RNET_STATE_DIR", self.dir.join("durable"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Sets the same environment for another program, which runs `rnet`.
    pub fn set_environment(&self, other: &mut Command) {
        for (name, value) in self.command().get_envs() {
            match value {
                Some(value) => other.env(name, value),
                None => other.env_remove(name),
            };
        }
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        self.spawn(args).wait()
    }

    pub fn spawn(&self, args: &[&str]) -> RunningCommand {
        let mut command = self.command();
        command.args(args);
        RunningCommand::start(command)
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Output and exit status of a run.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    /// Asserts success. Returns stdout.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.stdout
    }

    /// Asserts this exit code. Returns stderr.
    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self.stderr
    }

    /// Parses stdout as one JSON document.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }

    /// Parses stdout as one JSON document per line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let line = |l: &str| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"));
        self.stdout.lines().map(line).collect()
    }
}

/// A running command.
pub struct RunningCommand {
    child: Child,
    stdout: mpsc::Receiver<String>,
    stderr: mpsc::Receiver<String>,
    out: String,
    err: String,
}

fn lines(stream: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (tx, rx) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            if tx.send(line + "\n").is_err() {
                break;
            }
        }
    });
    rx
}

impl RunningCommand {
    pub fn start(mut command: Command) -> RunningCommand {
        let mut child = command.spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        RunningCommand { child, stdout, stderr, out: String::new(), err: String::new() }
    }

    /// Waits for a line of stdout that contains `text`.
    #[track_caller]
    pub fn wait_for_stdout(&mut self, text: &str) {
        until(&self.stdout, &mut self.out, text);
    }

    /// Waits for a line of stderr that contains `text`.
    #[track_caller]
    pub fn wait_for_stderr(&mut self, text: &str) {
        until(&self.stderr, &mut self.err, text);
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Takes the unread output, so later calls cannot wait for it: for messages of failing tests.
    pub fn output_so_far(&self) -> String {
        let rest = |stream: &mpsc::Receiver<String>| stream.try_iter().collect::<String>();
        let (out, err) = (rest(&self.stdout), rest(&self.stderr));
        format!("stdout: {}{out}\nstderr: {}{err}", self.out, self.err)
    }

    /// Presses Ctrl-C, or sends another signal.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the exit of a killed process. Returns its output.
    pub fn wait_for_exit(&mut self) {
        self.child.wait().unwrap();
    }

    /// Waits for the exit.
    pub fn wait(mut self) -> CommandOutput {
        // Both streams end when the program exits.
        for (stream, text) in [(&self.stdout, &mut self.out), (&self.stderr, &mut self.err)] {
            loop {
                match stream.recv_timeout(HANG_LIMIT) {
                    Ok(line) => text.push_str(&line),
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        self.child.kill().unwrap();
                        panic!("it hangs; so far it said {text:?}");
                    }
                }
            }
        }
        let code = self.child.wait().unwrap().code();
        let (stdout, stderr) = (std::mem::take(&mut self.out), std::mem::take(&mut self.err));
        CommandOutput { code, stdout, stderr }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // A test that fails halfway leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn until(stream: &mpsc::Receiver<String>, seen: &mut String, text: &str) {
    loop {
        match stream.recv_timeout(HANG_LIMIT) {
            Ok(line) => {
                seen.push_str(&line);
                if line.contains(text) {
                    return;
                }
            }
            Err(e) => panic!("{e} while waiting for {text:?}; so far: {seen}"),
        }
    }
}

/// Sends one message every millisecond until it is dropped.
pub struct BackgroundPublisher {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundPublisher {
    pub fn start<T: Message + ?Sized>(
        mut publisher: Publisher<T>,
        message: Box<T>,
    ) -> BackgroundPublisher {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                publisher.send(&message).unwrap();
                std::thread::sleep(Duration::from_millis(1)); // sleep: the period of the stream
            }
        });
        BackgroundPublisher { stop, thread: Some(thread) }
    }
}

impl Drop for BackgroundPublisher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// A position message of the tests' robots.
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
pub struct Pose {
    pub x: f64,
    pub q: [f32; 4],
    pub legs: [Leg; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
pub struct Leg {
    pub force: f32,
    pub contact: u32,
}

pub const POSE: Pose = Pose {
    x: 1.5,
    q: [0.0, 0.0, 0.1, 1.0],
    legs: [Leg { force: 10.0, contact: 1 }, Leg { force: 20.0, contact: 0 }],
};

/// Whether this user can be denied access to a path: root cannot.
pub fn is_root(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(dir).unwrap().uid() == 0
}
