//! Dropping of rnet objects.
//!
//! Dropping the last handle of a node waits for its threads, and a dispatch thread may wait for the GIL. So
//! no rnet object is dropped with the GIL held.

use pyo3::prelude::*;

use crate::interpreter;

/// Drops `thing` without the GIL, whether or not this thread holds it.
pub(crate) fn drop_without_gil<T: Send>(thing: T) {
    if interpreter::may_hang() {
        // A callback does not return, and dropping may wait for it. The process is about to exit.
        std::mem::forget(thing);
        return;
    }
    // If the interpreter has ended, the closure is dropped, and `thing` with it.
    let _ = Python::try_attach(move |py| py.detach(move || drop(thing)));
}
