//! Memory of a node that outlives its owner for a short time, because peers still read it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::node::ring_control;

/// How often the progress of the readers is checked: they wake nobody.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Memory that is freed when it is dropped.
pub(crate) trait LingeringMemory: std::fmt::Debug + Send {
    /// Whether nobody reads it any more, or its time is over.
    fn is_over(&mut self) -> bool;
}

/// What lingers in a node.
#[derive(Debug)]
pub struct Lingering {
    /// The node whose control thread is woken when something is added.
    folder: PathBuf,
    incarnation: u64,
    memory: Mutex<Vec<Box<dyn LingeringMemory>>>,
}

impl Lingering {
    pub(crate) fn new(folder: &Path, incarnation: u64) -> Lingering {
        Lingering { folder: folder.to_owned(), incarnation, memory: Mutex::default() }
    }

    pub(crate) fn add(&self, memory: Box<dyn LingeringMemory>) {
        self.lock().push(memory);
        ring_control(&self.folder, self.incarnation);
    }

    /// Frees what nobody reads any more. Returns when to call this again, if something remains.
    pub fn check(&self) -> Option<Duration> {
        let mut memory = self.lock();
        memory.retain_mut(|one| !one.is_over());
        (!memory.is_empty()).then_some(CHECK_INTERVAL)
    }

    /// Waits until everything is freed.
    pub fn finish(&self) {
        while let Some(interval) = self.check() {
            std::thread::sleep(interval);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Box<dyn LingeringMemory>>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
