//! The program's side: processes that do not outlive their handles.

use super::Order;
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// A process that is killed when dropped.
pub struct Process(Child);

impl Process {
    /// Starts the process.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(Self)
    }

    /// The process itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until the process has exited; `None` on a timeout.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn wait_timeout(&mut self, time: Duration) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            let status = self.0.try_wait()?;
            if status.is_some() || start.elapsed() >= time {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(2)); // sleep: std has no wait with a time-out
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A line of a worker: its number, and the line, or `None` at the end of its output.
pub type WorkerLine = (usize, Option<String>);

/// A worker, as the program controls it.
pub struct Worker {
    process: Process,
    /// `None` once it gets no more orders.
    orders: Option<ChildStdin>,
}

impl Worker {
    /// Starts worker `number`, sends it its job, and sends its lines to `said`.
    ///
    /// # Errors
    /// The worker cannot be started.
    pub fn start(
        number: usize,
        mut command: Command,
        job: &impl Serialize,
        said: Sender<WorkerLine>,
    ) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let piped = || io::Error::other("standard input and output are piped");
        let orders = Some(process.0.stdin.take().ok_or_else(piped)?);
        let stdout = process.0.stdout.take().ok_or_else(piped)?;
        let read = move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if said.send((number, Some(line))).is_err() {
                    return;
                }
            }
            // The receiver is dropped when the run is over.
            let _ = said.send((number, None));
        };
        std::thread::Builder::new().name("events".into()).spawn(read)?;
        let mut worker = Self { process, orders };
        match worker.write(job) {
            // It has exited, which the end of its output reports.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(worker),
            written => written.map(|()| worker),
        }
    }

    fn write(&mut self, what: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(what)?;
        let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
        let orders = self.orders.as_mut().ok_or_else(ended)?;
        orders.write_all(format!("{line}\n").as_bytes())?;
        orders.flush()
    }

    /// Sends an order.
    ///
    /// # Errors
    /// The worker has exited.
    pub fn order(&mut self, order: &Order) -> io::Result<()> {
        self.write(order)
    }

    /// Closes the pipe of the orders, which saves a descriptor for each of many thousands of workers.
    pub fn close_orders(&mut self) {
        self.orders = None;
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}
