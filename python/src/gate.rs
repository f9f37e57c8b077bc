//! The way from robot-net's threads into Python, which closes before the interpreter does.
//!
//! A dispatch thread that is inside Python when the interpreter ends is taken down by it in the
//! middle of its Rust frames, and that aborts the process. So the threads count themselves in and
//! out, and the last thing that `atexit` runs is to let no further one in and to wait for those
//! that are inside. Nodes that are still open close before that; this is for those that the
//! program has let go of, whose threads may still be on their way.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

/// How long the end of a program waits for callbacks that are running.
const WAIT_LIMIT: Duration = Duration::from_secs(2);
/// Between two looks at whether they are done.
const PAUSE: Duration = Duration::from_millis(1);

// Facts of the process, as the interpreter is one.
static CLOSED: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicUsize = AtomicUsize::new(0);

struct Inside;

impl Inside {
    fn enter() -> Inside {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `f` in Python, on a thread that Python does not know. `None` if the program is ending.
pub(crate) fn enter<R>(f: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    // Counted first and asked then; `close` does the reverse, so one of both sees the other.
    let _inside = Inside::enter();
    if CLOSED.load(Ordering::SeqCst) { None } else { Python::try_attach(f) }
}

/// Has the end of the program close the way. Called once, as the module is imported: what is
/// registered first runs last.
pub(crate) fn close_at_exit(py: Python<'_>) -> PyResult<()> {
    let close = |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        CLOSED.store(true, Ordering::SeqCst);
        args.py().detach(|| {
            let until = Instant::now() + WAIT_LIMIT;
            while INSIDE.load(Ordering::SeqCst) > 0 && Instant::now() < until {
                std::thread::sleep(PAUSE);
            }
        });
    };
    let close = PyCFunction::new_closure(py, None, None, close)?;
    py.import("atexit")?.call_method1("register", (close,))?;
    Ok(())
}
