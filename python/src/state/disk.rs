//! Writes that may wait for the disk: other threads run meanwhile, and Ctrl-C ends the wait.
//!
//! Whether a write waits is unknown at its start: the key may be durable, or a durable write by another
//! process may be pending for it. So a short write keeps the GIL, and releases it where it begins to wait.

use std::cell::RefCell;

use pyo3::prelude::*;
use rnet::binding::{BlockingHooks, with_blocking_hooks};

use crate::errors::OrRaise;

thread_local! {
    /// The exception that a signal handler raised during a wait of this thread.
    static SIGNAL_EXCEPTION: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs Python's signal handlers; `false` if one raised.
pub(crate) fn run_signal_handlers() -> bool {
    if SIGNAL_EXCEPTION.with_borrow(Option::is_some) {
        return false;
    }
    let raised = Python::attach(|py| py.check_signals()).err();
    SIGNAL_EXCEPTION.with_borrow_mut(|slot| *slot = raised);
    SIGNAL_EXCEPTION.with_borrow(Option::is_none)
}

/// Waits of a thread that has the GIL.
struct AttachedWait;

impl BlockingHooks for AttachedWait {
    fn run_blocking(&self, wait: &mut (dyn FnMut() + Send)) {
        Python::attach(|py| py.detach(wait));
    }
    fn should_continue(&self) -> bool {
        run_signal_handlers()
    }
}

/// Waits of a thread that has released the GIL.
struct DetachedWait;

impl BlockingHooks for DetachedWait {
    fn run_blocking(&self, wait: &mut (dyn FnMut() + Send)) {
        wait();
    }
    fn should_continue(&self) -> bool {
        run_signal_handlers()
    }
}

fn finish<R>(py: Python<'_>, done: rnet::Result<R>) -> PyResult<R> {
    match (done, SIGNAL_EXCEPTION.take()) {
        // Whatever the result of the write, the exception of a signal handler must not be lost.
        (_, Some(raised)) => Err(raised),
        (done, None) => done.or_raise(py),
    }
}

/// Runs a write that keeps the GIL unless it has to wait. The caller must not hold a lock that other threads
/// take with the GIL held.
pub(crate) fn write<R>(py: Python<'_>, act: impl FnOnce() -> rnet::Result<R>) -> PyResult<R> {
    let done = with_blocking_hooks(&AttachedWait, act);
    finish(py, done)
}

/// Runs a write that takes long in any case, without the GIL.
pub(crate) fn write_detached<R: Send>(
    py: Python<'_>,
    act: impl FnOnce() -> rnet::Result<R> + Send,
) -> PyResult<R> {
    let done = py.detach(|| with_blocking_hooks(&DetachedWait, act));
    finish(py, done)
}
