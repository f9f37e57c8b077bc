//! Letting go of things of rnet.
//!
//! To drop the last handle of a node waits for its threads, and a dispatch thread may be waiting
//! for the GIL: so nothing of rnet is dropped with the GIL held.

use pyo3::prelude::*;

use crate::interpreter;

/// Drops `thing` without the GIL, whether this thread holds it or not.
pub(crate) fn drop_without_gil<T: Send>(thing: T) {
    if interpreter::may_hang() {
        // A callback does not end, and dropping may wait for it. The process is about to end.
        std::mem::forget(thing);
        return;
    }
    // Without an interpreter (it has been taken down) the closure is dropped, and `thing` in it.
    let _ = Python::try_attach(move |py| py.detach(move || drop(thing)));
}
