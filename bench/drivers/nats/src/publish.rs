//! The sending end.

use crate::server;
use async_nats::{Client, Subject};
use bench_harness::{Net, Publisher, Result};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio::runtime::Runtime;

/// Bytes of messages to publish before they are flushed.
const BATCH: usize = 32 * 1024;

/// Publishes on a subject.
pub struct Core {
    client: Client,
    subject: Subject,
    at_once: bool,
    /// Whether messages were published since the last flush, and their bytes.
    unflushed: bool,
    collected: usize,
    runtime: Runtime,
}

impl Core {
    /// A publisher on a connection of its own; with `at_once` each message is with the socket before
    /// `send` returns.
    pub fn open(net: &Net, subject: &str, at_once: bool) -> Result<Self> {
        let runtime = server::runtime()?;
        let client = server::connect(&runtime, net)?;
        let subject = subject.into();
        Ok(Self { client, subject, at_once, unflushed: false, collected: 0, runtime })
    }

    fn publish(&mut self, message: Bytes) -> Result<()> {
        let subject = self.subject.clone();
        if self.at_once {
            return self.runtime.block_on(async {
                self.client.publish(subject, message).await?;
                Ok(self.client.flush().await?)
            });
        }
        self.unflushed = true;
        self.collected += message.len();
        // The client's queue usually has capacity, and then the first poll suffices. A publish that has to
        // wait has queued nothing when it is dropped, and so can be made again.
        match self.client.publish(subject.clone(), message.clone()).now_or_never() {
            Some(published) => published?,
            None => self.runtime.block_on(self.client.publish(subject, message))?,
        }
        if self.collected >= BATCH { self.flush() } else { Ok(()) }
    }
}

impl Publisher for Core {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.publish(Bytes::copy_from_slice(message))
    }

    fn flush(&mut self) -> Result<()> {
        if !self.unflushed {
            return Ok(());
        }
        self.runtime.block_on(self.client.flush())?;
        (self.unflushed, self.collected) = (false, 0);
        Ok(())
    }

    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        // The client takes the message over, so each has memory of its own; zeroing it would be
        // a pass over the message that no user makes.
        let mut message = Vec::<u8>::with_capacity(len);
        let memory = &raw mut message.spare_capacity_mut()[..len];
        // SAFETY: the memory is allocated and exclusively owned. `fill` writes each byte, as
        // `Publisher::send_in_place` demands, so all `len` bytes are written when it returns; the harness's
        // and the tests' read none before.
        unsafe {
            fill(&mut *(memory as *mut [u8]));
            message.set_len(len);
        }
        self.publish(message.into())
    }
}
