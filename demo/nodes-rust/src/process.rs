//! Communication between a node's process and `run.py` through pipes, because the system under test must not
//! carry its own verdict.
//!
//! `run.py` writes one command per line to stdin; the node writes one JSON report per line to stdout. When
//! stdin is closed, the node exits, so that no node is left behind when `run.py` dies.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time after which a node that was told to exit is terminated by its own process.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// A command to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Stop sending, but continue to receive.
    Quiet,
    /// A command that only this node understands.
    Other(String),
    /// Exit.
    Stop,
}

/// The node's end of the pipes.
#[derive(Debug)]
pub struct Process {
    begin: Instant,
    commands: OnceLock<Mutex<Receiver<Command>>>,
    quiet: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Process {
    /// Reports that the process is ready, and waits for permission to join; `None` if it is to exit instead.
    pub fn start() -> Option<Process> {
        report(json!({"event": "ready"}));
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line).ok()?;
        (read > 0).then(|| Process {
            begin: Instant::now(),
            commands: OnceLock::new(),
            quiet: Arc::default(),
            stop: Arc::default(),
        })
    }

    /// Reports the time from the command to join until the first peer was found, and starts listening. Not
    /// earlier, because a node should join like a program without other threads.
    pub fn joined(&self) {
        let join_ms = self.begin.elapsed().as_secs_f64() * 1e3;
        report(json!({"event": "joined", "join_ms": join_ms}));
        let (sender, commands) = mpsc::channel();
        if self.commands.set(Mutex::new(commands)).is_err() {
            return;
        }
        let flags = (self.quiet.clone(), self.stop.clone());
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                let command = match line.trim() {
                    "quiet" => Command::Quiet,
                    other => Command::Other(other.to_owned()),
                };
                if command == Command::Quiet {
                    flags.0.store(true, Ordering::Release);
                }
                let _ = sender.send(command);
            }
            flags.1.store(true, Ordering::Release);
            let _ = sender.send(Command::Stop);
            std::thread::sleep(STOP_TIMEOUT);
            std::process::exit(3);
        });
    }

    /// The next command, or `None` after the timeout.
    pub fn next(&self, timeout: Duration) -> Option<Command> {
        let commands = self.commands.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        match commands.recv_timeout(timeout) {
            Ok(command) => Some(command),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Command::Stop),
        }
    }

    /// Waits for [`Command::Stop`].
    pub fn wait_for_stop(&self) {
        while self.next(Duration::MAX) != Some(Command::Stop) {}
    }

    /// Whether the node must not send.
    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Acquire)
    }

    /// Whether the node is to exit.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// Writes a report. If `run.py` is gone, nothing reads it, and stdin is closed too.
pub fn report(value: Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{value}");
    let _ = out.flush();
}

/// Reports how many messages the node itself has counted as sent, by topic.
pub fn report_quiet(sent: &[(&str, u64)]) {
    let sent: BTreeMap<_, _> = sent.iter().copied().collect();
    report(json!({"event": "quiet", "sent": sent}));
}

/// Runs a node, and prints its error as a line for people.
pub fn run(node: impl FnOnce(&Process) -> rnet::Result<()>) -> std::process::ExitCode {
    let Some(process) = Process::start() else {
        return std::process::ExitCode::SUCCESS;
    };
    match node(&process) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
