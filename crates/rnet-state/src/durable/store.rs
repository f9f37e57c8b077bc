//! The store of a domain for its persister: loading and committing. Also reads a store without becoming the
//! persister, if that is impossible.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use rnet_core::Error;
use rnet_shm::domain::lease::Lease;
use rnet_shm::ring::fail_point;
use rnet_shm::state::Clock;

use super::engine::{Engine, Fault};
use super::file::read_at;
use super::folder::{StateFolder, storage};
use super::record::{Change, Saved};

/// Attempts to read a consistent store while another process writes it.
const MAX_READS: u32 = 3;
const COPY_CHUNK_LEN_BYTES: usize = 1 << 20;

/// Result of a commit without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// The changes are on disk.
    Done,
    /// Another process is now the persister and determines the result; nothing must be reported.
    Lost,
}

/// Why a commit failed, as a number for other processes ([`Failure::explain`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The system's error number; `EBADMSG` for a damaged file, `EPROTO` for one of another version.
    pub errno: i32,
}

impl Failure {
    /// The error for a failure of the store in `folder`.
    pub fn explain(self, folder: &StateFolder) -> Error {
        let path = folder.path();
        match self.errno {
            libc::EBADMSG => explain(path, Fault::Damaged("found during a write".to_owned())),
            libc::EPROTO => explain(path, Fault::Version("it has another version".to_owned())),
            errno => storage(path, &std::io::Error::from_raw_os_error(errno)),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        let errno = match fault {
            Fault::Io(error) => error.raw_os_error().unwrap_or(libc::EIO),
            Fault::Damaged(_) => libc::EBADMSG,
            Fault::Version(_) => libc::EPROTO,
        };
        Failure { errno }
    }
}

/// The store, open and locked. Only the persister has one.
#[derive(Debug)]
pub(crate) struct Store {
    engine: Engine,
    lease: Arc<Lease>,
    failed: bool,
}

impl Store {
    pub(super) fn new(
        mut engine: Engine,
        lease: Arc<Lease>,
        clock: &Clock,
    ) -> Result<Store, Fault> {
        engine.set_clock(clock)?;
        Ok(Store { engine, lease, failed: false })
    }

    /// Visits all keys; returns the newest revision ever written.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn load(&self, each: &mut dyn FnMut(Saved<'_>)) -> Result<u64, Failure> {
        Ok(self.engine.load(each)?)
    }

    /// Writes all changes or none, and returns when they are on disk. `revision` is the newest known one.
    ///
    /// # Errors
    /// Those of the disk. The store is then unusable: drop it and [take](super::PersisterCandidate::take) it
    /// again. The commit was written completely or not at all; which one is known only after that.
    pub fn commit(&mut self, changes: &[Change<'_>], revision: u64) -> Result<Commit, Failure> {
        if self.failed {
            return Err(Failure { errno: libc::EIO });
        }
        let done = self.engine.commit(changes, revision);
        self.failed = done.is_err();
        fail_point!("durable.committed");
        // Checked after the sync and before the results are reported. A successor takes the lease before it
        // copies, so a process that still has the lease here knows that the synced data are in the copy.
        if !self.lease.holds() {
            self.failed = true;
            return Ok(Commit::Lost);
        }
        fail_point!("durable.acknowledged");
        done?;
        Ok(Commit::Done)
    }

    /// The persister's lease, to send heartbeats while there is work.
    pub fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }
}

/// Reads the store of a read-only folder: without a lock, in memory. `None` if it does not exist.
///
/// # Errors
/// `Storage`: it cannot be read, or not consistently.
pub(crate) fn read_only(
    folder: &StateFolder,
    clock: &Clock,
    each: &mut dyn FnMut(Saved<'_>),
) -> Result<Option<u64>, Error> {
    let mut tries = 0;
    let load = |memory| {
        let mut engine = Engine::open(memory)?;
        engine.set_clock(clock)?;
        Ok(engine)
    };
    loop {
        let Some(number) = folder.list()?.highest else { return Ok(None) };
        let path = folder.store(number);
        tries += 1;
        match read_copy(&path).and_then(load).and_then(|engine| engine.load(each)) {
            Ok(revision) => return Ok(Some(revision)),
            // Its persister has replaced it, or wrote while it was read.
            Err(Fault::Io(e)) if e.kind() == std::io::ErrorKind::NotFound && tries < MAX_READS => {}
            Err(Fault::Damaged(_)) if tries < MAX_READS => {}
            Err(fault) => return Err(explain(&path, fault)),
        }
    }
}

fn read_copy(path: &Path) -> Result<InMemoryBackend, Fault> {
    let file = File::open(path).map_err(Fault::Io)?;
    let memory = InMemoryBackend::new();
    each_chunk(&file, &mut |offset, chunk| {
        memory.set_len(offset + chunk.len() as u64)?;
        memory.write(offset, chunk)
    })
    .map_err(Fault::Io)?;
    Ok(memory)
}

/// Passes a file to `act`, chunk by chunk.
pub(super) fn each_chunk(
    file: impl AsFd,
    act: &mut dyn FnMut(u64, &[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut chunk = vec![0; COPY_CHUNK_LEN_BYTES];
    let mut offset = 0;
    loop {
        let len = read_at(&file, offset, &mut chunk)?;
        if len == 0 {
            return Ok(());
        }
        act(offset, &chunk[..len])?;
        offset += len as u64;
    }
}

/// The error for a fault of the store at `path`.
pub(super) fn explain(path: &Path, fault: Fault) -> Error {
    let why = match fault {
        Fault::Io(error) => return storage(path, &error),
        Fault::Damaged(why) => format!(
            "the file is damaged ({why}); the next durable write moves it aside and creates a new one"
        ),
        Fault::Version(why) => {
            format!("{why}; use that version, or move the file away to create a new one")
        }
    };
    Error::Storage { path: path.to_owned(), why }
}
