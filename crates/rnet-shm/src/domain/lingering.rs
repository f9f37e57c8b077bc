//! Memory of a node that outlives its owner for a short time, because peers still read it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::node::ring_control;

/// How often the progress of the readers is checked: they wake nobody.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Beyond this, the oldest is freed although it is still read: a program that opens and drops publishers
/// without end must not fill the memory of all.
const MAX_LINGERING_BYTES: u64 = 256 << 20;
/// The same for their number.
const MAX_COUNT: usize = 64;

/// Memory that is freed when it is dropped.
pub(crate) trait LingeringMemory: std::fmt::Debug + Send {
    /// Whether nobody reads it any more, or its time is over.
    fn is_over(&mut self) -> bool;
    /// How much it is.
    fn bytes(&self) -> u64;
}

/// What lingers in a node.
#[derive(Debug)]
pub struct Lingering {
    /// The node whose control thread is woken when something is added.
    folder: PathBuf,
    incarnation: u64,
    /// The oldest first.
    memory: Mutex<VecDeque<Box<dyn LingeringMemory>>>,
}

impl Lingering {
    pub(crate) fn new(folder: &Path, incarnation: u64) -> Lingering {
        Lingering { folder: folder.to_owned(), incarnation, memory: Mutex::default() }
    }

    pub(crate) fn add(&self, memory: Box<dyn LingeringMemory>) {
        let mut all = self.lock();
        all.push_back(memory);
        let mut freed = Vec::new();
        while all.len() > MAX_COUNT || all.len() > 1 && bytes(&all) > MAX_LINGERING_BYTES {
            freed.extend(all.pop_front());
        }
        drop(all);
        // Outside the lock, as it may be much.
        drop(freed);
        ring_control(&self.folder, self.incarnation);
    }

    /// Frees what nobody reads any more. Returns when to call this again, if something remains.
    pub fn check(&self) -> Option<Duration> {
        let mut all = self.lock();
        let (mut freed, mut kept) = (Vec::new(), VecDeque::new());
        for mut one in std::mem::take(&mut *all) {
            if one.is_over() { freed.push(one) } else { kept.push_back(one) }
        }
        let again = (!kept.is_empty()).then_some(CHECK_INTERVAL);
        *all = kept;
        drop(all);
        drop(freed);
        again
    }

    /// Waits until everything is freed.
    pub fn finish(&self) {
        while let Some(interval) = self.check() {
            std::thread::sleep(interval);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Box<dyn LingeringMemory>>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(all: &VecDeque<Box<dyn LingeringMemory>>) -> u64 {
    all.iter().map(|one| one.bytes()).sum()
}
