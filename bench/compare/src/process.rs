//! Starting, asking and ending processes: workers and servers.

use bench_harness::child::dies_with_its_parent;
use bench_harness::spec::{Event, Order, Spec};
use bench_harness::{Broker, Error, Host, Net, Result, clock};
use rnet_bench::worker::{Process, WorkerLine};
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for a process to exit after a request.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// Length of the output shown when a process fails.
const MAX_STDERR_LEN: usize = 600;

/// The standard error of a process; its end is kept for error texts.
#[derive(Clone, Default)]
struct CapturedStderr(Arc<Mutex<String>>);

impl CapturedStderr {
    fn listen(child: &mut Child) -> Result<Self> {
        let kept = Self::default();
        let said = kept.0.clone();
        let Some(mut stderr) = child.stderr.take() else { return Ok(kept) };
        std::thread::Builder::new().name("stderr".into()).spawn(move || {
            let mut part = [0; 4096];
            while let Ok(len @ 1..) = stderr.read(&mut part) {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.push_str(&String::from_utf8_lossy(&part[..len]));
                let cut = said.len().saturating_sub(8 * MAX_STDERR_LEN);
                let cut = (cut..said.len()).find(|i| said.is_char_boundary(*i)).unwrap_or(0);
                said.drain(..cut);
            }
        })?;
        Ok(kept)
    }
}

impl std::fmt::Display for CapturedStderr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = said.trim();
        let from = text.len().saturating_sub(MAX_STDERR_LEN);
        let from = (from..text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
        if text.is_empty() { Ok(()) } else { write!(f, "; it said: {}", &text[from..]) }
    }
}

/// Resources used by a process.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    /// CPU time.
    pub cpu_ns: u64,
    /// Resident memory.
    pub rss_kib: u64,
    /// The most so far.
    pub rss_peak_kib: u64,
}

impl Usage {
    fn of(pid: u32) -> Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kib = |key: &str| {
            let line = status.lines().find(|l| l.starts_with(key))?;
            line.split_ascii_whitespace().nth(1)?.parse().ok()
        };
        Ok(Self {
            cpu_ns: clock::cpu_ns(pid)?,
            rss_kib: kib("VmRSS:").unwrap_or(0),
            rss_peak_kib: kib("VmHWM:").unwrap_or(0),
        })
    }
}

/// A worker: see [`rnet_bench::worker`].
pub struct Worker {
    /// Its name in the run.
    pub name: String,
    worker: rnet_bench::worker::Worker,
    said: CapturedStderr,
}

impl Worker {
    /// Starts worker `number` of a run, which opens its endpoints. `python` is the interpreter and
    /// the program of a worker in Python.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        (number, name): (usize, &str),
        spec: &Spec,
        python: Option<(&Path, &Path)>,
        lines: Sender<WorkerLine>,
    ) -> Result<Self> {
        let mut command = match python {
            Some((interpreter, program)) => {
                let mut command = on_host(spec.net.host.as_ref(), interpreter);
                command.arg(program);
                command
            }
            None => {
                let mut command = on_host(spec.net.host.as_ref(), &std::env::current_exe()?);
                command.arg("worker");
                command
            }
        };
        if let Some(disk) = &spec.net.disk {
            command.env("XDG_STATE_HOME", disk);
        }
        prepare(&mut command);
        let program = command.get_program().display().to_string();
        let mut worker = rnet_bench::worker::Worker::start(number, command, spec, lines)
            .map_err(|e| Error::new(format!("{name}: {program} does not start: {e}")))?;
        let said = CapturedStderr::listen(worker.process().child())?;
        Ok(Self { name: name.into(), worker, said })
    }

    fn failed(&self, why: impl std::fmt::Display) -> Error {
        Error::new(format!("{}: {why}{}", self.name, self.said))
    }

    /// Sends an order.
    ///
    /// # Errors
    /// When the worker has ended.
    pub fn order(&mut self, order: &Order) -> Result<()> {
        self.worker.order(order).map_err(|e| self.failed(e))
    }

    /// The event in an output line; `None` is the end of its output.
    ///
    /// # Errors
    /// If it failed, exited, or printed something else.
    pub fn event(&mut self, line: Option<&str>, awaited: &str) -> Result<Event> {
        let why = match line.map(|line| (line, serde_json::from_str(line))) {
            Some((_, Ok(Event::Failed { why, .. }))) => why,
            Some((_, Ok(event))) => return Ok(event),
            Some((line, Err(error))) => format!("said {line:?}: {error}"),
            None => match self.worker.process().wait_timeout(Duration::from_millis(200)) {
                Ok(Some(status)) => format!("ended with {status} before it was {awaited}"),
                _ => format!("closed its output before it was {awaited}"),
            },
        };
        Err(self.failed(why))
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// When it has ended.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.id()).map_err(|e| self.failed(e))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.worker.id()
    }

    /// Requests it to close and exit, without waiting.
    pub fn stop(&mut self) {
        // It may have ended already.
        let _ = self.order(&Order::stop());
    }

    /// Waits until it has ended; kills it when that takes too long.
    pub fn join(mut self) {
        // A process that cannot be waited for is killed, too.
        let _ = self.worker.process().wait_timeout(EXIT_TIMEOUT);
    }
}

/// A server, or the link of a host.
pub struct Server {
    /// Its name in the run.
    pub name: String,
    process: Process,
    said: CapturedStderr,
}

impl Server {
    /// Starts a server on a free port, in `net`'s broker address, which it enters there, and waits until it
    /// listens.
    ///
    /// # Errors
    /// When it is not installed or does not come up.
    pub fn start(
        broker: &dyn Fn(&Net, u16) -> Option<Broker>,
        net: &mut Net,
        bench: &Path,
    ) -> Result<Option<Self>> {
        let mut tries = 3;
        loop {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let Some(broker) = broker(net, port) else { return Ok(None) };
            tries -= 1;
            let server = Self::run("server".into(), broker, net.host.as_ref(), bench)
                .and_then(|server| server.listening(port));
            match server {
                Ok(server) => {
                    net.broker_port = Some(port);
                    return Ok(Some(server));
                }
                // Another process may have taken the port.
                Err(_) if tries > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// When it is not installed or does not start.
    pub fn run(name: String, what: Broker, host: Option<&Host>, bench: &Path) -> Result<Self> {
        let Broker { program, args, files } = what;
        for (path, content) in files {
            std::fs::write(path, content)?;
        }
        let mut command = on_host(host, &find_program(&program, bench)?);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null());
        prepare(&mut command);
        let mut process = Process::start(&mut command)
            .map_err(|e| Error::new(format!("{program} does not start: {e}")))?;
        let said = CapturedStderr::listen(process.child())?;
        Ok(Self { name, process, said })
    }

    fn listening(mut self, port: u16) -> Result<Self> {
        let start = Instant::now();
        loop {
            let runs = matches!(self.process.child().try_wait(), Ok(None));
            if runs && listens(self.id(), port) {
                return Ok(self);
            }
            if !runs || start.elapsed() > Duration::from_secs(10) {
                let said = &self.said;
                return Err(Error::new(format!("the server does not listen on port {port}{said}")));
            }
            std::thread::sleep(Duration::from_millis(2)); // sleep: nothing tells when a port opens
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// When it has ended.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.id())
            .map_err(|e| Error::new(format!("the server has ended: {e}{}", self.said)))
    }
}

/// Whether a TCP port of a process's host is listening: it may be another host than ours, whose ports cannot
/// be connected to from here.
fn listens(pid: u32, port: u16) -> bool {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    table.lines().any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let local = words.next().is_some_and(|at| at.ends_with(&format!(":{port:04X}")));
        // 0A is LISTEN.
        local && words.nth(1) == Some("0A")
    })
}

/// A program on a host: `ip netns exec` becomes it, and so keeps its process id.
fn on_host(host: Option<&Host>, program: &Path) -> Command {
    let Some(host) = host else { return Command::new(program) };
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &host.namespace]).arg(program);
    command
}

/// Keeps its standard error, and makes it exit with the comparison in any case.
fn prepare(command: &mut Command) {
    command.stderr(Stdio::piped());
    dies_with_its_parent(command);
}

/// Looks for a program in `bench/.tools/bin`, then among robot-net's own release builds, then in `PATH`.
///
/// # Errors
/// When it is in none of them.
pub fn find_program(program: &str, bench: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    [bench.join(".tools/bin"), bench.join("../target/release")]
        .into_iter()
        .chain(std::env::split_paths(&path))
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            let how = if program == "rnet-link" { "make build-link" } else { "bench/setup.sh" };
            Error::new(format!("{program} is not installed: run {how}"))
        })
}
