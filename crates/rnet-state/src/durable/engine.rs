//! One store in one file: redb, with contained panics and classified errors.
//!
//! The engine knows no paths and no locks. It gets a storage backend (a file with its fence, bytes in memory,
//! a disk that fails), so that a test can cut the power at any point.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{Database, Durability, ReadableDatabase, ReadableTable, StorageBackend, StorageError};
use redb::{TableDefinition, TableError};

use rnet_shm::state::Clock;

use super::record::{self, BadRecord, Change, Saved};
use super::time::{StoreTime, TimeNote};

/// redb's cache of its file. The values themselves are in the region.
const CACHE_LEN_BYTES: usize = 8 << 20;

const STATE_TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const FORMAT_KEY: &str = "format";
const REVISION_KEY: &str = "revision";
/// The time of the newest commit; see [`TimeNote`].
const TIME_KEYS: [&str; 3] = ["time_ns", "time_boot_ns", "time_boot"];

/// Why an operation on a store failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The file could not be read or written; its content may be valid.
    Io(io::Error),
    /// The content is not what was written.
    Damaged(String),
    /// Its version is not supported.
    Version(String),
}

impl From<redb::Error> for Fault {
    fn from(error: redb::Error) -> Fault {
        match error {
            redb::Error::Io(e) => match e.kind() {
                // A read beyond the end, and redb's error for a file that it did not create.
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
                    Fault::Damaged(e.to_string())
                }
                _ => Fault::Io(e),
            },
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => {
                Fault::Io(io::Error::other("an earlier write failed"))
            }
            redb::Error::UpgradeRequired(version) => {
                Fault::Version(format!("its file format is redb version {version}"))
            }
            other => Fault::Damaged(other.to_string()),
        }
    }
}

impl From<BadRecord> for Fault {
    fn from(bad: BadRecord) -> Fault {
        match bad {
            BadRecord::Newer(version) => Fault::Version(newer(u64::from(version))),
            BadRecord::Damaged(why) => Fault::Damaged(why.to_owned()),
        }
    }
}

fn newer(format: u64) -> String {
    format!(
        "a newer robot-net wrote it (format {format}, this one supports {})",
        record::RECORD_FORMAT
    )
}

/// redb has a separate error type for each function; all convert to one.
fn to_fault<E: Into<redb::Error>>(error: E) -> Fault {
    Fault::from(error.into())
}

/// Runs code that may panic on a damaged file. The store is not used again after a panic.
fn catch_panics<T>(act: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Fault::Damaged(format!("reading it panicked: {text}")))
    })
}

/// An open store.
#[derive(Debug)]
pub(super) struct Engine {
    /// `None` only while it is dropped.
    db: Option<Database>,
    time: Option<StoreTime>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Closing writes to the file, and may panic on a damaged one.
        let db = self.db.take();
        let _ = catch_panics(|| {
            drop(db);
            Ok(())
        });
    }
}

impl Engine {
    /// Creates an empty store in an empty file; it is on disk on return.
    pub fn create(backend: impl StorageBackend) -> Result<Engine, Fault> {
        catch_panics(|| {
            let engine = Engine::with_backend(backend, false)?;
            let mut write = engine.db()?.begin_write().map_err(to_fault)?;
            write.set_durability(Durability::Immediate).map_err(to_fault)?;
            {
                let mut meta = write.open_table(META).map_err(to_fault)?;
                meta.insert(FORMAT_KEY, u64::from(record::RECORD_FORMAT)).map_err(to_fault)?;
                write.open_table(STATE_TABLE).map_err(to_fault)?;
            }
            write.commit().map_err(to_fault)?;
            Ok(engine)
        })
    }

    /// Opens an existing store and checks all of it: redb checks each page, this code each record.
    pub fn open(backend: impl StorageBackend) -> Result<Engine, Fault> {
        catch_panics(|| {
            // redb would create a new store in an empty file, but a store is never empty.
            if backend.len().map_err(Fault::Io)? == 0 {
                return Err(Fault::Damaged("it is empty".to_owned()));
            }
            let engine = Engine::with_backend(backend, true)?;
            engine.check_format()?;
            engine.each_record(&mut |_| {})?;
            Ok(engine)
        })
    }

    fn with_backend(backend: impl StorageBackend, check: bool) -> Result<Engine, Fault> {
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_LEN_BYTES).set_check_integrity_on_open(check);
        let db = builder.create_with_backend(backend).map_err(to_fault)?;
        Ok(Engine { db: Some(db), time: None })
    }

    fn db(&self) -> Result<&Database, Fault> {
        self.db.as_ref().ok_or_else(|| Fault::Io(io::Error::other("the store is closed")))
    }

    fn check_format(&self) -> Result<(), Fault> {
        let read = self.db()?.begin_read().map_err(to_fault)?;
        let missing = |error| match error {
            TableError::TableDoesNotExist(table) => {
                Fault::Damaged(format!("it has no table {table:?}"))
            }
            error => to_fault(error),
        };
        let meta = read.open_table(META).map_err(missing)?;
        let format = meta.get(FORMAT_KEY).map_err(to_fault::<StorageError>)?;
        match format.map(|format| format.value()) {
            Some(format) if format == u64::from(record::RECORD_FORMAT) => {}
            Some(format) => return Err(Fault::Version(newer(format))),
            None => return Err(Fault::Damaged("it does not state its format".to_owned())),
        }
        read.open_table(STATE_TABLE).map_err(missing)?;
        Ok(())
    }

    /// Sets the clocks for expiry: times on disk use the store's clock. Without a call, both clocks are
    /// equal.
    pub fn set_clock(&mut self, clock: &Clock) -> Result<(), Fault> {
        let noted = catch_panics(|| {
            let read = self.db()?.begin_read().map_err(to_fault)?;
            let meta = read.open_table(META).map_err(to_fault)?;
            let word = |key| -> Result<Option<u64>, Fault> {
                Ok(meta.get(key).map_err(to_fault::<StorageError>)?.map(|w| w.value()))
            };
            let [store_ns, boot_ns, boot] = TIME_KEYS.map(word);
            let noted = (store_ns?, boot_ns?, boot?);
            let (Some(store_ns), Some(boot_ns), Some(boot)) = noted else { return Ok(None) };
            Ok(Some(TimeNote { store_ns, boot_ns, boot }))
        })?;
        self.time = Some(StoreTime::new(noted, clock));
        Ok(())
    }

    /// Visits all keys, and returns the newest revision ever written. All records were checked when the store
    /// was opened, so the load is complete or fails.
    pub fn load(&self, each: &mut dyn FnMut(Saved<'_>)) -> Result<u64, Fault> {
        catch_panics(|| self.each_record(each))
    }

    fn each_record(&self, each: &mut dyn FnMut(Saved<'_>)) -> Result<u64, Fault> {
        let read = self.db()?.begin_read().map_err(to_fault)?;
        let state = read.open_table(STATE_TABLE).map_err(to_fault)?;
        for entry in state.iter().map_err(to_fault)? {
            let (key, bytes) = entry.map_err(to_fault)?;
            let mut saved = record::decode(key.value(), bytes.value())?;
            if let Some(time) = &self.time {
                saved.expires_boot_ns = time.to_boot(saved.expires_boot_ns);
            }
            each(saved);
        }
        let meta = read.open_table(META).map_err(to_fault)?;
        let revision = meta.get(REVISION_KEY).map_err(to_fault)?;
        Ok(revision.map_or(0, |revision| revision.value()))
    }

    /// Writes all changes or none; they are on disk on return. After an error, the engine must not be used
    /// again; either all changes or none are on disk. `revision` is the newest known one.
    pub fn commit(&mut self, changes: &[Change<'_>], revision: u64) -> Result<(), Fault> {
        catch_panics(|| {
            let mut write = self.db()?.begin_write().map_err(to_fault)?;
            write.set_durability(Durability::Immediate).map_err(to_fault)?;
            {
                let mut state = write.open_table(STATE_TABLE).map_err(to_fault)?;
                let mut bytes = Vec::new();
                for change in changes {
                    match &change.saved {
                        Some(saved) => {
                            let mut saved = *saved;
                            if let Some(time) = &self.time {
                                saved.expires_boot_ns = time.to_store(saved.expires_boot_ns);
                            }
                            saved.encode(&mut bytes);
                            state.insert(change.key, &*bytes).map_err(to_fault)?;
                        }
                        None => {
                            state.remove(change.key).map_err(to_fault)?;
                        }
                    }
                }
                let mut meta = write.open_table(META).map_err(to_fault)?;
                let before = meta.get(REVISION_KEY).map_err(to_fault)?.map_or(0, |r| r.value());
                if revision > before {
                    meta.insert(REVISION_KEY, revision).map_err(to_fault)?;
                }
                if let Some(note) = self.time.as_ref().map(StoreTime::note) {
                    let words = [note.store_ns, note.boot_ns, note.boot];
                    for (key, word) in TIME_KEYS.into_iter().zip(words) {
                        meta.insert(key, word).map_err(to_fault)?;
                    }
                }
            }
            write.commit().map_err(to_fault)
        })
    }
}
