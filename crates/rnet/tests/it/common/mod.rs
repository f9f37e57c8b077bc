//! Shared helpers of the integration tests: a private domain, a watchdog, and child processes that run the
//! test binary.

#![allow(dead_code, reason = "each test executable uses its part")]

pub mod allocator;

use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use rnet::{Error, Node, NodeBuilder, Subscriber};

/// Long enough for every event that a test expects.
pub const LONG: Duration = Duration::from_secs(120);
/// A test that runs longer is considered hung.
const WATCHDOG: Duration = Duration::from_secs(600);
/// Marks a child's lines among those of the test harness.
const MARK: &str = "@@";
const ROLE: &str = "RNET_TEST_ROLE";
const DIR: &str = "RNET_TEST_DIR";

/// Aborts the process with a message if it is not dropped in time.
pub struct Watchdog(#[allow(dead_code, reason = "its drop ends the wait")] mpsc::Sender<()>);

impl Watchdog {
    /// Watches the test `name`.
    pub fn start(name: &str) -> Watchdog {
        Watchdog::with_limit(name, WATCHDOG, None)
    }

    /// Watches with another limit than the default, and removes a directory before it aborts.
    fn with_limit(name: &str, limit: Duration, dir: Option<PathBuf>) -> Watchdog {
        let (alive, told) = mpsc::channel::<()>();
        let name = name.to_owned();
        std::thread::spawn(move || {
            if told.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                say_aloud(&format!("watchdog: test {name} still runs after {limit:?}; it hangs"));
                if let Some(dir) = dir {
                    let _ = std::fs::remove_dir_all(dir);
                }
                std::process::abort();
            }
        });
        Watchdog(alive)
    }
}

/// A private domain of one test, removed at its end, and the test's watchdog.
pub struct Net {
    dir: PathBuf,
    owned: bool,
    _watchdog: Option<Watchdog>,
}

impl Net {
    /// An empty domain for the test `name`.
    pub fn new(name: &str) -> Net {
        Net::for_long(name, WATCHDOG)
    }

    /// An empty domain for a test that runs longer than the default limit.
    pub fn for_long(name: &str, limit: Duration) -> Net {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("/dev/shm/rnet-test-{}-{count}", std::process::id()));
        std::fs::create_dir(&dir).expect("the test's directory can be made");
        let watchdog = Watchdog::with_limit(name, limit, Some(dir.clone()));
        Net { dir, owned: true, _watchdog: Some(watchdog) }
    }

    /// The domain that the parent of this child created.
    pub fn of_parent() -> Net {
        let dir = std::env::var_os(DIR).expect("started by `Child::spawn`").into();
        Net { dir, owned: false, _watchdog: None }
    }

    /// Another handle on a domain. It does not remove the domain.
    pub fn same(&self) -> Net {
        Net { dir: self.dir.clone(), owned: false, _watchdog: None }
    }

    /// The base directory in which the domain's directory is created.
    pub fn base(&self) -> &Path {
        &self.dir
    }

    /// Path of the domain's directory.
    pub fn inspect_path(&self) -> PathBuf {
        self.dir.join(format!("rnet-{}-t", rustix::process::geteuid().as_raw()))
    }

    /// Directory of durable state.
    pub fn keep(&self) -> PathBuf {
        self.dir.join("keep")
    }

    /// Settings for a node of the domain.
    pub fn builder(&self, name: &str) -> NodeBuilder {
        Node::builder(name).domain("t").dir(&self.dir).state_dir(self.keep())
    }

    /// A node of the domain.
    pub fn node(&self, name: &str) -> Node {
        self.builder(name).open().expect("the node opens")
    }

    /// Takes a snapshot of the domain from outside.
    pub fn inspect(&self) -> rnet::inspect::Snapshot {
        self.domain().snapshot().expect("the domain can be looked at")
    }

    /// The domain as inspection tools see it.
    pub fn domain(&self) -> rnet::inspect::Domain {
        rnet::inspect::Domain::open(Some("t"), Some(self.dir.clone()), None)
            .expect("the domain can be looked at")
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if self.owned {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Prints a line even if the test harness captures the test's output.
fn say_aloud(line: &str) {
    // A single write, so that no other thread's line interleaves.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Reports that this thread's test, or a part of it, cannot run here. `scripts/step.sh` shows the line. CI
/// fails unless `.ci/not-run.txt` waives the test.
pub fn not_run(why: &str) {
    let thread = std::thread::current();
    say_aloud(&format!("NOT RUN: {}: {why}", thread.name().unwrap_or("a thread without a name")));
}

/// Polls until `done` returns true. The polling interval is not synchronization: it affects the speed of the
/// test, never its result.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < until, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
    }
}

/// Receives until an error other than `Timeout` occurs. Returns the messages before it, and the error.
pub fn until_error(subscriber: &mut Subscriber<[u8]>) -> (Vec<Vec<u8>>, Error) {
    let mut got = Vec::new();
    loop {
        match subscriber.recv_timeout(LONG) {
            Ok(sample) => got.push(sample.to_vec()),
            Err(error) => return (got, error),
        }
    }
}

/// A child process: this test binary with a role.
pub struct Child {
    process: std::process::Child,
    lines: mpsc::Receiver<String>,
}

impl Child {
    /// Starts a child that runs `child_entry` of the calling test file, with `role`, in the domain.
    #[track_caller]
    pub fn spawn(net: &Net, role: &str) -> Child {
        let program = std::env::current_exe().expect("this binary has a path");
        Child::start(Child::order(Command::new(program), net, role))
    }

    /// Starts a program of another language as a child with this role.
    #[track_caller]
    pub fn program(net: &Net, role: &str, command: &[&str]) -> Child {
        let mut child = Command::new(command[0]);
        child.args(&command[1..]).env(ROLE, role).env(DIR, net.base());
        Child::start(child)
    }

    /// Turns a command that runs this executable, or ends in its path, into a child with this role.
    #[track_caller]
    pub fn order(mut command: Command, net: &Net, role: &str) -> Command {
        command
            .args(["--exact", &entry(), "--ignored", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(DIR, net.base());
        command
    }

    /// Starts a command made by [`Child::order`].
    pub fn start(mut command: Command) -> Child {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the child starts");
        let stdout = BufReader::new(process.stdout.take().expect("piped"));
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The harness writes the test's name in front of the first line.
                if let Some((_, said)) = line.split_once(MARK)
                    && tell.send(said.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Child { process, lines }
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Writes a line to the child.
    pub fn say(&mut self, line: &str) {
        let stdin = self.process.stdin.as_mut().expect("piped");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the child listens");
    }

    /// Returns the child's next line.
    pub fn hear(&mut self) -> String {
        self.lines.recv_timeout(Duration::from_secs(200)).expect("the child says something")
    }

    /// Returns the next line of a child that works for a long time.
    pub fn hear_for(&mut self, limit_s: u64) -> String {
        let limit = Duration::from_secs(limit_s);
        self.lines.recv_timeout(limit).expect("the child says something")
    }

    /// Returns the child's next line, if one is available. A child that has exited sends no more lines.
    pub fn heard(&mut self) -> Option<String> {
        match self.lines.try_recv() {
            Ok(line) => Some(line),
            Err(mpsc::TryRecvError::Empty) => None,
            Err(mpsc::TryRecvError::Disconnected) => panic!("the child has ended"),
        }
    }

    /// Returns a line that a child sent before it was killed; `None` after the last.
    pub fn heard_before_its_end(&mut self) -> Option<String> {
        self.lines.recv_timeout(Duration::from_secs(200)).ok()
    }

    /// Waits for exactly this line.
    pub fn expect(&mut self, line: &str) {
        assert_eq!(self.hear(), line);
    }

    /// Kills the child with SIGKILL and waits until it is dead.
    pub fn kill(&mut self) {
        self.process.kill().expect("the child can be killed");
        self.process.wait().expect("the child can be waited for");
    }

    /// Stops the child with SIGSTOP.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
        // Waits until the kernel reports the stopped state; the signal alone is asynchronous.
        let stat = format!("/proc/{}/stat", self.pid());
        eventually("the child stops", || {
            std::fs::read_to_string(&stat).is_ok_and(|s| s.contains(") T "))
        });
    }

    /// Resumes a stopped child.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    pub fn signal(&self, signal: libc::c_int) {
        let pid = self.pid() as libc::pid_t;
        // SAFETY: the signal goes to a child that was not waited for yet.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Waits for the exit of a child that was asked to exit.
    pub fn ended(&mut self) -> std::process::ExitStatus {
        self.process.wait().expect("the child can be waited for")
    }

    /// Asks the child to exit and waits for it.
    pub fn finish(mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Name of `child_entry` in the calling test file, or in the test folder of that file.
#[track_caller]
fn entry() -> String {
    let caller = std::panic::Location::caller().file();
    let (_, below) = caller.rsplit_once("tests/it/").expect("a file of this executable");
    let test = below.split('/').next().expect("a name");
    format!("{}::child_entry", test.trim_end_matches(".rs"))
}

/// Child side: the role to run; `None` if no parent started the entry.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Child side: sends the parent a line.
pub fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{MARK}{line}").and_then(|()| out.flush()).expect("the parent listens");
}

/// Child side: disables core dumps for a process that ends by a signal.
pub fn no_core() {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(rustix::process::Resource::Core, none).expect("less is allowed");
}

/// Child side: the parent's lines. If the parent exits, the child exits at once.
pub fn orders() -> mpsc::Receiver<String> {
    let (tell, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
        std::process::exit(0);
    });
    lines
}

/// Wakes the polling thread.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
