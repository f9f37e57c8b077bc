//! Entry of robot-net's threads into Python, and the end of callbacks.
//!
//! Closing an object with a callback waits for the callback, which is user code and may never return. So the
//! main thread closes on a separate thread ([`close`]): Ctrl-C ends the wait. The exit of the program waits
//! for all of them together, for two seconds. A callback that still runs when the interpreter ends is
//! abandoned ([`crate::callback::call`]).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCFunction, PyDict, PyTuple};

use crate::drop_without_gil::drop_without_gil;
use crate::lock::lock;
use crate::wait::UNINTERRUPTED_CHECK_INTERVAL;

/// How long the exit of a program waits for all running callbacks.
const EXIT_LIMIT: Duration = Duration::from_secs(2);
/// Interval between two checks whether the last callbacks are done.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

// Facts of the process, like the interpreter itself.
static INTERPRETER_CLOSED: AtomicBool = AtomicBool::new(false);
/// Number of threads in Python that the exit of the program waits for, with a generation in the upper half.
/// Threads of an earlier generation are not waited for.
static THREADS_IN_PYTHON: AtomicU64 = AtomicU64::new(0);
/// Whether a close has timed out: dropping data that a callback uses may then wait forever.
static HAS_HUNG: AtomicBool = AtomicBool::new(false);
/// When the exit stops waiting; set once all closes at exit have begun.
static EXIT_DEADLINE: OnceLock<Instant> = OnceLock::new();
/// Closes that the exit has begun and that are not done yet.
static CLOSING_AT_EXIT: Mutex<Vec<BackgroundClose>> = Mutex::new(Vec::new());

/// Threads that wait for a close, by their Python thread ids.
static CLOSING: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Registers a thread that waits for a close, until it is dropped.
struct ClosingThread(u64);

impl ClosingThread {
    fn new(py: Python<'_>) -> PyResult<ClosingThread> {
        let thread = py.import("threading")?.call_method0("get_ident")?.extract()?;
        lock(&CLOSING).push(thread);
        Ok(ClosingThread(thread))
    }
}

impl Drop for ClosingThread {
    fn drop(&mut self) {
        let mut closing = lock(&CLOSING);
        if let Some(at) = closing.iter().position(|thread| *thread == self.0) {
            closing.swap_remove(at);
        }
    }
}

/// Whether a thread waits for a close: an event loop on it does not run meanwhile.
#[pyfunction]
pub(crate) fn is_closing(thread: u64) -> bool {
    lock(&CLOSING).contains(&thread)
}

/// A thread in Python, with its generation.
struct ThreadInPython(u64);

fn generation(inside: u64) -> u64 {
    inside >> 32
}

fn count(inside: u64) -> u64 {
    inside & u64::from(u32::MAX)
}

impl ThreadInPython {
    fn enter() -> ThreadInPython {
        ThreadInPython(generation(THREADS_IN_PYTHON.fetch_add(1, Ordering::SeqCst)))
    }
}

impl Drop for ThreadInPython {
    fn drop(&mut self) {
        let own = |inside| (generation(inside) == self.0).then(|| inside - 1);
        let _ = THREADS_IN_PYTHON.fetch_update(Ordering::SeqCst, Ordering::SeqCst, own);
    }
}

/// Makes the exit ignore the threads that are in Python now.
fn forget_threads_in_python() {
    let next = |inside| Some((generation(inside) + 1) << 32);
    let _ = THREADS_IN_PYTHON.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
}

/// Runs `f` in Python, on a thread that Python did not create. `None` if the program is exiting.
pub(crate) fn attach<R>(f: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    // Counted first, then checked; `close_at_exit` does the reverse, so at least one of them sees the other.
    let _inside = ThreadInPython::enter();
    if is_closed() { None } else { Python::try_attach(f) }
}

/// Whether the interpreter is about to end, or has ended.
pub(crate) fn is_closed() -> bool {
    INTERPRETER_CLOSED.load(Ordering::SeqCst)
}

/// Whether dropping an object at exit might wait for a callback forever.
pub(crate) fn may_hang() -> bool {
    is_closed() && (HAS_HUNG.load(Ordering::SeqCst) || exit_time_left().is_zero())
}

fn exit_time_left() -> Duration {
    let deadline = EXIT_DEADLINE.get_or_init(|| Instant::now() + EXIT_LIMIT);
    deadline.saturating_duration_since(Instant::now())
}

/// Registers the function that stops further calls into Python at exit. Called once, when the module is
/// imported: the first function registered runs last.
pub(crate) fn close_at_exit(py: Python<'_>) -> PyResult<()> {
    // The threads of the parent do not exist in a forked child.
    let forked = |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| forget_threads_in_python();
    let forked = PyCFunction::new_closure(py, None, None, forked)?;
    let forked = [("after_in_child", forked)].into_py_dict(py)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&forked))?;
    register(py, || {
        // The last fallback of a command is a callback, too.
        for closing in std::mem::take(&mut *lock(&CLOSING_AT_EXIT)) {
            closing.wait(exit_time_left());
        }
        INTERPRETER_CLOSED.store(true, Ordering::SeqCst);
        while count(THREADS_IN_PYTHON.load(Ordering::SeqCst)) > 0 && !exit_time_left().is_zero() {
            std::thread::sleep(POLL_INTERVAL);
        }
    })
}

/// Registers `close` to run at exit. The exit waits for it together with all other closes; only the first
/// close that takes long delays those that were registered before it.
pub(crate) fn at_exit(
    py: Python<'_>,
    close: impl Fn() + Clone + Send + Sync + 'static,
) -> PyResult<()> {
    register(py, move || {
        let closing = BackgroundClose::start(close.clone());
        let mut all = lock(&CLOSING_AT_EXIT);
        let limit = if all.is_empty() { UNINTERRUPTED_CHECK_INTERVAL } else { Duration::ZERO };
        if !closing.wait(limit) {
            all.push(closing);
        }
    })
}

/// Registers a function with `atexit` that runs without the GIL.
fn register(py: Python<'_>, run: impl Fn() + Send + Sync + 'static) -> PyResult<()> {
    let run = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        args.py().detach(&run);
    };
    let run = PyCFunction::new_closure(py, None, None, run)?;
    py.import("atexit")?.call_method1("register", (run,))?;
    Ok(())
}

thread_local! {
    /// Whether this thread is about to close an object in [`close_in_time`].
    static CLOSES_IN_TIME: Cell<bool> = const { Cell::new(false) };
}

/// Runs a `close` or `cancel` that waits no longer than the exit of a program does: for the end of a `with`
/// block that ends the program.
#[pyfunction]
pub(crate) fn close_in_time(close: &Bound<'_, PyAny>) -> PyResult<()> {
    CLOSES_IN_TIME.set(true);
    let closed = close.call0();
    CLOSES_IN_TIME.set(false);
    closed.map(drop)
}

/// Like [`drop_without_gil`], for an object that may have a running callback. The destructor of a Python
/// object cannot raise, so the main thread waits no longer than the exit of a program does.
pub(crate) fn drop_in_time<T: Send + 'static>(thing: T) {
    let (is_main, _closing) = Python::try_attach(|py| {
        // The object may be destroyed while an exception is raised.
        let raised = PyErr::take(py);
        let found = (is_main_thread(py).unwrap_or(false), ClosingThread::new(py).ok());
        if let Some(raised) = raised {
            raised.restore(py);
        }
        found
    })
    .unwrap_or_default();
    if is_closed() || !is_main {
        return drop_without_gil(thing);
    }
    let closing = BackgroundClose::start(move || drop(thing));
    if Python::try_attach(|py| py.detach(|| closing.wait(EXIT_LIMIT))) == Some(false) {
        give_up_waiting();
    }
}

/// Runs `close`, which may wait for callbacks. On the main thread a signal handler that raises (Ctrl-C) ends
/// the wait, and the close continues in the background.
pub(crate) fn close(py: Python<'_>, close: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let limit = CLOSES_IN_TIME.take().then_some(EXIT_LIMIT);
    let _closing = ClosingThread::new(py)?;
    // Python runs signal handlers on the main thread only. And a callback that closes its own caller must do
    // so on its own thread, which the close does not wait for.
    if !is_main_thread(py)? {
        py.detach(close);
        return Ok(());
    }
    let until = limit.map(|limit| Instant::now() + limit);
    let closing = BackgroundClose::start(close);
    loop {
        let left = until.map_or(UNINTERRUPTED_CHECK_INTERVAL, |until| {
            until.saturating_duration_since(Instant::now())
        });
        if py.detach(|| closing.wait(left.min(UNINTERRUPTED_CHECK_INTERVAL))) {
            return Ok(());
        }
        if left.is_zero() {
            give_up_waiting();
            return Ok(());
        }
        py.check_signals()?;
    }
}

/// Called when a wait has reached the time limit of the exit; the exit then does not wait again for the same
/// threads.
fn give_up_waiting() {
    HAS_HUNG.store(true, Ordering::SeqCst);
    forget_threads_in_python();
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}

/// A close that runs on a separate thread.
struct BackgroundClose(Mutex<Receiver<()>>);

impl BackgroundClose {
    fn start(close: impl FnOnce() + Send + 'static) -> BackgroundClose {
        let (done, closed) = mpsc::channel::<()>();
        let close = Arc::new(Mutex::new(Some(move || {
            close();
            drop(done);
        })));
        let theirs = close.clone();
        if rnet::binding::spawn("rnet-close", move || run_once(&theirs)).is_err() {
            // A thread cannot be started, so Ctrl-C cannot end this wait. The callback may wait for the GIL.
            let _ = Python::try_attach(|py| py.detach(|| run_once(&close)));
            run_once(&close);
        }
        BackgroundClose(Mutex::new(closed))
    }

    /// Waits up to `limit`; returns whether the close is done.
    fn wait(&self, limit: Duration) -> bool {
        let closed = lock(&self.0);
        !matches!(closed.recv_timeout(limit), Err(RecvTimeoutError::Timeout))
    }
}

fn run_once(close: &Mutex<Option<impl FnOnce()>>) {
    let close = lock(close).take();
    if let Some(close) = close {
        close();
    }
}
