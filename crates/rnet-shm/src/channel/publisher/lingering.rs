//! Channels whose publisher is closed although reliable readers have not read its large messages yet.
//!
//! The memory of large messages belongs to the publisher. Its node keeps it until the readers have taken
//! them, for at most [`LINGER`]; messages in the log stay readable without this.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet_core::Error;
use rnet_ring::fail_point;

use super::Writer;
use crate::channel::pool::Pool;
use crate::channel::reader_table::{ReaderRef, ReaderTable};
use crate::domain::lingering::LingeringMemory;

/// How long the memory is kept.
const LINGER: Duration = Duration::from_secs(1);

/// What remains of a closed publisher.
#[derive(Debug)]
struct LingeringChannel {
    path: PathBuf,
    /// Dropped first: its chunks are freed, then the publisher's file.
    pool: Option<Pool>,
    /// Position of its last large message.
    last: Option<u64>,
    reader_table: Arc<ReaderTable>,
    seen_epoch: u64,
    readers: Vec<Arc<ReaderRef>>,
    until: Instant,
}

impl LingeringMemory for LingeringChannel {
    fn is_over(&mut self) -> bool {
        self.reader_table.update(&mut self.seen_epoch, &mut self.readers);
        let Some(last) = self.last else { return true };
        let unread = self.readers.iter().any(|r| r.reliable && r.needed() <= last);
        !unread || self.until <= Instant::now()
    }

    fn bytes(&self) -> u64 {
        self.pool.as_ref().map_or(0, Pool::bytes)
    }
}

impl Drop for LingeringChannel {
    fn drop(&mut self) {
        drop(self.pool.take());
        fail_point!("publisher.lingered");
        crate::os::folders::remove(&self.path);
        fail_point!("publisher.unlinked");
    }
}

impl Writer {
    /// Waits until the reliable readers have taken all large messages; returns whether they have by `until`.
    /// `None` waits without a limit. A signal does not end the wait.
    ///
    /// # Errors
    /// `Interrupted` by an [`InterruptHandle`](super::InterruptHandle).
    pub fn wait_until_read(&mut self, until: Option<Instant>) -> Result<bool, Error> {
        while let Some(last) = self.pool.newest_position() {
            self.check_interrupted()?;
            self.refresh_readers();
            let Some((slowest, needed)) = self.slowest() else { break };
            if needed > last {
                break;
            }
            let left = until
                .map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(false);
            }
            // The loop checks for an interrupt.
            let _ = self.wait_for_reader(&slowest, needed, 1, left);
        }
        Ok(true)
    }

    /// Frees unread large messages when the writer is dropped.
    pub fn free_unread(&mut self) {
        self.frees_unread = true;
    }

    /// Frees the memory, or hands it to the node as long as reliable readers need it. Never blocks.
    pub(super) fn end(&mut self) {
        self.refresh_readers();
        let empty = self.pool.emptied();
        let mut channel = LingeringChannel {
            path: self.path.clone(),
            last: self.pool.newest_position(),
            pool: Some(std::mem::replace(&mut self.pool, empty)),
            reader_table: self.reader_table.clone(),
            seen_epoch: self.seen_epoch,
            readers: std::mem::take(&mut self.readers),
            until: Instant::now() + LINGER,
        };
        if !self.frees_unread && !channel.is_over() {
            self.lingering.add(Box::new(channel));
        }
    }
}
