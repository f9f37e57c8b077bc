//! The requests and replies of a process, in a file that the kernel keeps when the process is killed
//! between two instructions.
//!
//! A call is recorded before it is made and its reply afterwards, each with one write of one line. The
//! times are of `CLOCK_MONOTONIC`, which all processes of a host share. The times of an answered call are
//! taken right before it and right after it, so that the recording does not blur them.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::history::{Call, Key, Operation, Reply};

/// Now, in ns, for all processes of this host.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[derive(Debug, Serialize, Deserialize)]
enum Line {
    /// A call follows, not before this time.
    Call(u64, Call),
    /// The call was made at the first time and answered at the second.
    Reply(u64, u64, Reply),
    /// The call was abandoned, without effect.
    Nothing,
    /// The next write leaves a will: the key, the value, and its replacement.
    Will(Key, i64, Option<i64>),
    /// A violation.
    Wrong(String),
}

/// The log of one process.
#[derive(Debug)]
pub struct Log(File);

impl Log {
    /// An empty log.
    pub fn create(path: &Path) -> io::Result<Log> {
        Ok(Log(File::options().append(true).create_new(true).open(path)?))
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        // One write, so that a line is complete or absent.
        self.0.write_all(&text)
    }

    /// Makes a call. `Ok(None)`: it was abandoned without effect.
    ///
    /// # Errors
    /// The errors of writing, and those of the call.
    pub fn record<T>(
        &mut self,
        call: Call,
        make: impl FnOnce() -> Result<Option<(Reply, T)>, Box<dyn std::error::Error>>,
    ) -> Result<Option<T>, Box<dyn std::error::Error>> {
        self.line(&Line::Call(now_ns(), call))?;
        let called = now_ns();
        let made = make();
        let returned = now_ns();
        match made {
            Ok(Some((reply, out))) => {
                self.line(&Line::Reply(called, returned, reply))?;
                Ok(Some(out))
            }
            Ok(None) => {
                self.line(&Line::Nothing)?;
                Ok(None)
            }
            Err(error) => {
                self.line(&Line::Wrong(error.to_string()))?;
                Err(error)
            }
        }
    }

    /// Records that the next write leaves a will.
    pub fn will(&mut self, key: Key, of: i64, becomes: Option<i64>) -> io::Result<()> {
        self.line(&Line::Will(key, of, becomes))
    }
}

/// The content of a log.
#[derive(Debug, Default)]
pub struct ProcessLog {
    /// The operations; wills are operations of the process that carries them out.
    pub operations: Vec<Operation>,
    /// The violations.
    pub wrong: Vec<String>,
}

/// Reads the log of a process that has exited.
///
/// # Errors
/// The errors of reading, and of an invalid line.
pub fn read(path: &Path, process: u32) -> io::Result<ProcessLog> {
    let bytes = std::fs::read(path)?;
    let mut content = ProcessLog::default();
    let mut open: Option<(u64, Call)> = None;
    let mut wills = Vec::new();
    let mut last = 0;
    let operation =
        |call, called_ns, reply| Operation { process, call, called_ns, reply, part: false };
    // A line without its end was being written when the process died: either the call was not made yet, or
    // its reply is unknown.
    for text in bytes.split_inclusive(|b| *b == b'\n').filter(|text| text.ends_with(b"\n")) {
        match serde_json::from_slice(text)? {
            Line::Call(at, call) => {
                last = at;
                open = Some((at, call));
            }
            Line::Reply(called, returned, reply) => {
                let (_, call) = open.take().ok_or(io::ErrorKind::InvalidData)?;
                content.operations.push(operation(call, called, Some((reply, returned))));
                last = returned;
            }
            Line::Nothing => open = None,
            Line::Will(key, of, becomes) => wills.push(Call::Will { key, of, becomes }),
            Line::Wrong(what) => {
                let call = open.take();
                content.wrong.push(format!("process {process}: {what} (at {call:?})"));
            }
        }
    }
    if let Some((at, call)) = open {
        content.operations.push(operation(call, at, None));
    }
    // They are carried out after the last operation of the process.
    content.operations.extend(wills.into_iter().map(|will| operation(will, last, None)));
    Ok(content)
}
