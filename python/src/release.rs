//! Letting go of things of rnet.
//!
//! To drop the last handle of a node waits for its threads, and a dispatch thread may be waiting
//! for the GIL: so nothing of rnet is dropped with the GIL held.

use pyo3::prelude::*;

/// Drops `thing` without the GIL, whether this thread holds it or not.
pub(crate) fn release<T: Send>(thing: T) {
    // Without an interpreter (it has been taken down) the closure is dropped, and `thing` in it.
    let _ = Python::try_attach(move |py| py.detach(move || drop(thing)));
}
