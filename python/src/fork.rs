//! `os.fork`, and so `multiprocessing` where it forks.
//!
//! A child has all objects of its parent and none of its threads. It must neither use nor end what
//! is its parent's: a node that the child closed would be gone for the parent, a sample that it
//! let go of would be written over while the parent reads it. So in a child what was made before
//! is closed, and left alone when it is dropped.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

/// How often this process and its ancestors have forked since the package was imported; global
/// because a fork is an event of the whole process.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// In which process something was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth(u32);

impl Birth {
    pub(crate) fn here() -> Birth {
        Birth(GENERATION.load(Ordering::Relaxed))
    }

    /// What an error calls a thing that was made then.
    pub(crate) fn name(self, thing: String) -> String {
        if self.is_parents() {
            format!("{thing}, made before this process was forked from its parent,")
        } else {
            thing
        }
    }

    /// Whether it was made before a fork, in the parent.
    pub(crate) fn is_parents(self) -> bool {
        self.0 != GENERATION.load(Ordering::Relaxed)
    }
}

/// A thing of rnet that only the process which made it may drop.
#[derive(Debug)]
pub(crate) struct Own<T> {
    thing: ManuallyDrop<T>,
    birth: Birth,
}

impl<T> Own<T> {
    pub(crate) fn new(thing: T) -> Own<T> {
        Own { thing: ManuallyDrop::new(thing), birth: Birth::here() }
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if !self.birth.is_parents() {
            // SAFETY: nothing uses the thing after the drop of its owner.
            unsafe { ManuallyDrop::drop(&mut self.thing) }
        }
    }
}

impl<T> Deref for Own<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.thing
    }
}

impl<T> DerefMut for Own<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.thing
    }
}

#[pyfunction]
fn note_fork() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Has Python tell of forks.
pub(crate) fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let settings = pyo3::types::PyDict::new(py);
    settings.set_item("after_in_child", wrap_pyfunction!(note_fork, module)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&settings))?;
    Ok(())
}
