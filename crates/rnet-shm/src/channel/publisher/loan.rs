//! Memory that a publisher loans to its user, who fills it and then sends it or returns it.

use std::sync::atomic::Ordering;

use rnet_core::{Error, MAX_MESSAGE_LEN_BYTES};
use rnet_ring::fail_point;

use super::Writer;
use crate::channel::pool::{LogView, NoChunk, Pool};

/// Memory on loan to the sender.
#[derive(Debug)]
pub struct WriterLoan {
    pub(super) len: usize,
    pub(super) buffer: LoanBuffer,
}

impl WriterLoan {
    /// Length of the loan in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the loan is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sends only the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

#[derive(Debug)]
pub(super) enum LoanBuffer {
    /// Small: built in a buffer and copied into the log, which costs less than a chunk.
    Scratch(Vec<u8>),
    /// Large: the chunk that readers will read.
    Chunk(u32),
}

impl Writer {
    /// Loans `len` bytes to be filled in place. Return them with [`Writer::send_loan`] or
    /// [`Writer::drop_loan`].
    pub fn loan(&mut self, len: usize) -> Result<WriterLoan, Error> {
        self.check_fork()?;
        if len > MAX_MESSAGE_LEN_BYTES {
            return Err(Error::MessageTooLarge {
                topic: self.topic.to_string(),
                len,
                limit: MAX_MESSAGE_LEN_BYTES,
            });
        }
        if len < self.inline_below {
            let mut bytes = std::mem::take(&mut self.scratch);
            bytes.resize(len, 0);
            return Ok(WriterLoan { len, buffer: LoanBuffer::Scratch(bytes) });
        }
        self.wait_for_catch_up()?;
        let mut stall = None;
        loop {
            self.check_truncated()?;
            self.refresh_readers();
            if let Some((remote, needed, half)) = self.reader_beyond_window() {
                self.wait_for_capacity(&mut stall, half - needed, Some((remote, needed)))?;
                continue;
            }
            let slowest = self.slowest();
            let got = self.with_pool(|pool, view| pool.acquire(len, view));
            let flow = &self.map.control().flow;
            fail_point!("loan.acquired");
            flow.pool_bytes.store(self.pool.bytes(), Ordering::Relaxed);
            fail_point!("loan.bytes");
            flow.pool_chunks.store(self.pool.len() as u64, Ordering::Relaxed);
            fail_point!("loan.chunks");
            match got {
                Ok(chunk) => return Ok(WriterLoan { len, buffer: LoanBuffer::Chunk(chunk) }),
                Err(NoChunk::HeldByReader) => self.wait_for_capacity(&mut stall, 1, slowest)?,
                Err(NoChunk::Exhausted(exhausted)) => {
                    return Err(self.exhausted_error(len, exhausted));
                }
            }
        }
    }

    /// Like [`Writer::loan`], with an existing chunk that is no longer needed; `None` if no such chunk
    /// exists, or `len` bytes need no chunk. It never waits, allocates no memory, and drops no readable
    /// message: for a message that may remain incomplete.
    pub fn loan_idle(&mut self, len: usize) -> Option<WriterLoan> {
        if len < self.inline_below || self.check_fork().is_err() || self.check_truncated().is_err()
        {
            return None;
        }
        self.refresh_readers();
        let chunk = self.with_pool(|pool, view| pool.acquire_idle(len, view))?;
        Some(WriterLoan { len, buffer: LoanBuffer::Chunk(chunk) })
    }

    fn with_pool<R>(&mut self, acquire: impl FnOnce(&mut Pool, &mut LogView<'_>) -> R) -> R {
        let seen_epoch = self.seen_epoch;
        let mut view = LogView {
            head: self.log.head(),
            next_seq: self.log.seq(),
            seen_epoch: &mut self.seen_epoch,
            readers: &mut self.readers,
            reader_table: &self.reader_table,
        };
        let got = acquire(&mut self.pool, &mut view);
        if self.seen_epoch != seen_epoch {
            self.note_readers();
        }
        got
    }
}
