//! Starting, asking and ending processes: workers and servers.

use bench_harness::child::dies_with_its_parent;
use bench_harness::spec::{Event, Order, Spec};
use bench_harness::{Broker, Error, Result, clock};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a process may take to end when told to.
const FAREWELL: Duration = Duration::from_secs(3);
/// How much of what a process said is shown when it fails.
const SAID_LEN: usize = 600;

/// A process that is killed when dropped, and whose standard error is kept.
struct Kept {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Kept {
    fn start(mut command: Command, name: &str) -> Result<Self> {
        command.stderr(Stdio::piped());
        // A comparison that is killed leaves nothing running.
        dies_with_its_parent(&mut command);
        let mut child = command.spawn().map_err(|e| {
            Error::new(format!("{name}: {} does not start: {e}", command.get_program().display()))
        })?;
        let said = Arc::new(Mutex::new(String::new()));
        if let Some(mut stderr) = child.stderr.take() {
            let said = said.clone();
            std::thread::Builder::new().name("stderr".into()).spawn(move || {
                let mut part = [0; 4096];
                while let Ok(len @ 1..) = stderr.read(&mut part) {
                    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                    said.push_str(&String::from_utf8_lossy(&part[..len]));
                    let cut = said.len().saturating_sub(8 * SAID_LEN);
                    let cut = (cut..said.len()).find(|i| said.is_char_boundary(*i)).unwrap_or(0);
                    said.drain(..cut);
                }
            })?;
        }
        Ok(Self { child, said })
    }

    /// The end of what it said, for an error message.
    fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let text = said.trim();
        let from = text.len().saturating_sub(SAID_LEN);
        let from = (from..text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
        if text.is_empty() { String::new() } else { format!("; it said: {}", &text[from..]) }
    }

    fn measure(&self) -> Result<Usage> {
        let pid = self.child.id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kib = |key: &str| {
            let line = status.lines().find(|l| l.starts_with(key))?;
            line.split_ascii_whitespace().nth(1)?.parse().ok()
        };
        Ok(Usage {
            cpu_ns: clock::cpu_ns(pid)?,
            rss_kib: kib("VmRSS:").unwrap_or(0),
            rss_peak_kib: kib("VmHWM:").unwrap_or(0),
        })
    }

    fn ended_within(&mut self, time: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < time {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2)); // sleep: std has no wait with a time-out
        }
        false
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process has used.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    /// CPU time.
    pub cpu_ns: u64,
    /// Resident memory.
    pub rss_kib: u64,
    /// The most so far.
    pub rss_peak_kib: u64,
}

/// A worker: see [`bench_harness::spec`].
pub struct Worker {
    /// Its name in the run.
    pub name: String,
    kept: Kept,
    orders: ChildStdin,
}

/// What all workers of a run say: who, and the line, or `None` at the end of its output.
pub type Said = (usize, Option<String>);

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
        said: Sender<Said>,
    ) -> Result<Self> {
        let mut command = match python {
            Some((interpreter, program)) => {
                let mut command = Command::new(interpreter);
                command.arg(program);
                command
            }
            None => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("worker");
                command
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(disk) = &spec.net.disk {
            command.env("XDG_STATE_HOME", disk);
        }
        let mut kept = Kept::start(command, name)?;
        let piped = || Error::new("standard input and output are piped");
        let orders = kept.child.stdin.take().ok_or_else(piped)?;
        let stdout = kept.child.stdout.take().ok_or_else(piped)?;
        std::thread::Builder::new().name("events".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(|l| l.ok()) {
                if said.send((number, Some(line))).is_err() {
                    return;
                }
            }
            // Nobody listens when the run is over.
            let _ = said.send((number, None));
        })?;
        let mut worker = Self { name: name.into(), kept, orders };
        worker.write(&serde_json::to_string(spec)?)?;
        Ok(worker)
    }

    fn write(&mut self, line: &str) -> Result<()> {
        writeln!(self.orders, "{line}")
            .and_then(|()| self.orders.flush())
            .map_err(|e| Error::new(format!("{}: {e}{}", self.name, self.kept.said())))
    }

    /// Orders something.
    ///
    /// # Errors
    /// When the worker has ended.
    pub fn order(&mut self, order: &Order) -> Result<()> {
        self.write(&serde_json::to_string(order)?)
    }

    /// The event in a line that it said; `None` is the end of its output.
    ///
    /// # Errors
    /// When it failed, ended, or said something else.
    pub fn event(&mut self, line: Option<&str>, awaited: &str) -> Result<Event> {
        let why = match line.map(|line| (line, serde_json::from_str(line))) {
            Some((_, Ok(Event::Failed { why }))) => why,
            Some((_, Ok(event))) => return Ok(event),
            Some((line, Err(error))) => format!("said {line:?}: {error}"),
            None => {
                self.kept.ended_within(Duration::from_millis(200));
                match self.kept.child.try_wait() {
                    Ok(Some(status)) => format!("ended with {status} before it was {awaited}"),
                    _ => format!("closed its output before it was {awaited}"),
                }
            }
        };
        Err(Error::new(format!("{}: {why}{}", self.name, self.kept.said())))
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// When it has ended.
    pub fn usage(&self) -> Result<Usage> {
        self.kept
            .measure()
            .map_err(|e| Error::new(format!("{}: {e}{}", self.name, self.kept.said())))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.kept.child.id()
    }

    /// Tells it to close and end, without waiting.
    pub fn stop(&mut self) {
        // It may have ended already.
        let _ = self.order(&Order::Stop { stop: true });
    }

    /// Waits until it has ended; kills it when that takes too long.
    pub fn join(mut self) {
        self.kept.ended_within(FAREWELL);
    }
}

/// A server.
pub struct Server {
    kept: Kept,
    /// Where it listens on 127.0.0.1.
    pub port: u16,
}

impl Server {
    /// Starts a server on a free port and waits until it listens.
    ///
    /// # Errors
    /// When it is not installed or does not come up.
    pub fn start(broker: &dyn Fn(u16) -> Option<Broker>, bench: &Path) -> Result<Option<Self>> {
        let mut tries = 3;
        loop {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let Some(broker) = broker(port) else { return Ok(None) };
            tries -= 1;
            match Self::start_at(port, broker, bench) {
                Ok(server) => return Ok(Some(server)),
                // Somebody may have taken the port in the meantime.
                Err(_) if tries > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn start_at(port: u16, broker: Broker, bench: &Path) -> Result<Self> {
        let Broker { program, args, files } = broker;
        for (path, content) in files {
            std::fs::write(path, content)?;
        }
        let mut command = Command::new(find_program(&program, bench)?);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null());
        let mut server = Self { kept: Kept::start(command, &program)?, port };
        let start = Instant::now();
        loop {
            let connected = TcpStream::connect(("127.0.0.1", port)).is_ok();
            let runs = matches!(server.kept.child.try_wait(), Ok(None));
            if connected && runs {
                return Ok(server);
            }
            if !runs || start.elapsed() > Duration::from_secs(10) {
                let said = server.kept.said();
                return Err(Error::new(format!("{program} does not listen on port {port}{said}")));
            }
            std::thread::sleep(Duration::from_millis(2)); // sleep: nothing tells when a port opens
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.kept.child.id()
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// When it has ended.
    pub fn usage(&self) -> Result<Usage> {
        self.kept
            .measure()
            .map_err(|e| Error::new(format!("the server has ended: {e}{}", self.kept.said())))
    }
}

/// Looks for a program in `bench/.tools/bin`, then in `PATH`.
///
/// # Errors
/// When it is in neither.
pub fn find_program(program: &str, bench: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(bench.join(".tools/bin"))
        .chain(std::env::split_paths(&path))
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| Error::new(format!("{program} is not installed: run bench/setup.sh")))
}
