//! The sending end of pub/sub.

use bench_harness::{Error, Publisher, Result};
use redis::{Cmd, Connection, Value};
use std::collections::VecDeque;

/// Bytes of a pipeline before it is written.
pub const BATCH: usize = 32 * 1024;
/// Written pipelines whose replies may be due while the next is collected: 2 and 4 are no faster.
const PIPELINES: usize = 1;
/// Replies that may be due where each message is a pipeline of its own.
const REPLIES: usize = 64;

/// Writes PUBLISH commands without waiting for each reply.
pub struct Pipelined {
    connection: Connection,
    channel: String,
    batch: usize,
    command: Cmd,
    packed: Vec<u8>,
    /// Commands in `packed`.
    collected: usize,
    /// Replies due from each written pipeline.
    due: VecDeque<usize>,
    most_due: usize,
}

impl Pipelined {
    /// Collects commands up to `batch` bytes; with 1, each is written at once.
    pub fn new(connection: Connection, channel: String, batch: usize) -> Self {
        let most_due = if batch > 1 { PIPELINES } else { REPLIES };
        let command = Cmd::new();
        let (packed, due) = (Vec::with_capacity(2 * batch), VecDeque::new());
        Self { connection, channel, batch, command, packed, collected: 0, due, most_due }
    }

    fn write(&mut self) -> Result<()> {
        self.connection.send_packed_command(&self.packed)?;
        self.packed.clear();
        self.due.push_back(std::mem::take(&mut self.collected));
        // Reading no replies at all would let the server stop reading in the end.
        while self.due.len() > self.most_due {
            self.read()?;
        }
        Ok(())
    }

    /// Reads the replies to the oldest pipeline.
    fn read(&mut self) -> Result<()> {
        for _ in 0..self.due.pop_front().unwrap_or(0) {
            match self.connection.recv_response()? {
                Value::Int(_) => {}
                other => return Err(Error::new(format!("PUBLISH was answered {other:?}"))),
            }
        }
        Ok(())
    }
}

impl Publisher for Pipelined {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.command.clear();
        self.command.arg("PUBLISH").arg(&self.channel).arg(message);
        self.command.write_packed_command(&mut self.packed);
        self.collected += 1;
        if self.packed.len() >= self.batch { self.write() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.collected > 0 { self.write() } else { Ok(()) }
    }
}
