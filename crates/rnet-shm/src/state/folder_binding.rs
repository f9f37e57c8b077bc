//! The folder that a region is bound to: the one from which its durable state was loaded, or to which it was
//! first written. It is stored in the region as an internal key; the first writer decides it.

use rnet_core::Error;
use rnet_ring::state::{self as ring, CommitError, LeafContent, LeafMeta};

use super::{PersisterHandle, Record};

/// The key. User keys never start like this.
const KEY: &str = "!disk-folder";

impl PersisterHandle {
    /// What the region is bound to; `None` if it is not bound yet.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn bound_folder(&self) -> Result<Option<String>, Error> {
        let inner = &*self.inner;
        let (ring, key) = (inner.checked_ring()?, inner.key(KEY)?);
        let mut record = Record::default();
        let now = || inner.clock.boot_ns();
        let found = ring.get(inner.process_slot, &key, &now, &mut record.raw);
        let found = found.map_err(|_| inner.unread_error(&ring, "a read does not finish"));
        Ok(found?.then(|| String::from_utf8_lossy(record.value()).into_owned()))
    }

    /// Binds the region to `place` unless it is bound. Returns what it is bound to.
    ///
    /// # Errors
    /// `OutOfMemory`, `Corrupt`.
    pub fn bind_folder(&self, place: &str) -> Result<String, Error> {
        let inner = &*self.inner;
        let key = inner.key(KEY)?;
        let now = inner.clock.boot_ns();
        let meta =
            LeafMeta { version: 1, written_unix_ns: inner.clock.unix_ns(), ..LeafMeta::default() };
        let writer = inner.own.name().as_str().as_bytes();
        let content = LeafContent { writer, value: place.as_bytes(), will: None, meta };
        let write = ring::Write { key: &key, content, expect: Some(0), durable: Some(false) };
        loop {
            match inner.attempt_one(&write, now, &mut |_, _| Ok(())) {
                Ok(_) | Err(CommitError::Conflict { .. }) => {
                    return Ok(self.bound_folder()?.unwrap_or_else(|| place.to_owned()));
                }
                Err(CommitError::Retry | CommitError::Wait(_)) => std::thread::yield_now(),
                Err(CommitError::Check(error)) => return Err(error),
                Err(CommitError::OutOfMemory(_)) => return Err(inner.full_error(place.len())),
                Err(CommitError::RetriesExhausted) => {
                    return Err(inner.corrupt("a write does not finish"));
                }
            }
        }
    }
}
