//! The way of robot-net's threads into Python, and the end of callbacks.
//!
//! To close a thing that has a callback waits for the callback, which is the user's and may take for ever. So the main
//! thread closes on a thread of its own ([`close`]): Ctrl-C ends the wait, and the end of the program waits for all at
//! once, for two seconds. A callback that still runs when the interpreter ends is left where it is
//! ([`crate::callback::call`]).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCFunction, PyDict, PyTuple};

use crate::drop_without_gil::drop_without_gil;
use crate::lock::lock;

/// How long the end of a program waits for all callbacks that are running.
const EXIT_LIMIT: Duration = Duration::from_secs(2);
/// Between two looks at whether the last callbacks are done.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// How long a close goes on without a look for signals, which do not end its sleep.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

// Facts of the process, as the interpreter is one.
static INTERPRETER_CLOSED: AtomicBool = AtomicBool::new(false);
/// Threads in Python that the end of the program waits for, with a generation in the upper half: those of an earlier one
/// are not waited for.
static THREADS_IN_PYTHON: AtomicU64 = AtomicU64::new(0);
/// Whether a close has waited in vain: to drop what a callback uses may wait for ever.
static HAS_HUNG: AtomicBool = AtomicBool::new(false);
/// When the end of the program waits no longer; set when all that it closes is being closed.
static EXIT_DEADLINE: OnceLock<Instant> = OnceLock::new();
/// What the end of the program has begun to close, and is not closed yet.
static CLOSING_AT_EXIT: Mutex<Vec<BackgroundClose>> = Mutex::new(Vec::new());

/// Threads that wait for a close, by their numbers in Python.
static CLOSING: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Notes that a thread waits for a close, until it is dropped.
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

/// Whether a thread waits for a close: an event loop on it runs nothing meanwhile.
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

/// The end of the program does not wait for the threads that are in Python now.
fn forget_threads_in_python() {
    let next = |inside| Some((generation(inside) + 1) << 32);
    let _ = THREADS_IN_PYTHON.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
}

/// Runs `f` in Python, on a thread that Python does not know. `None` if the program is ending.
pub(crate) fn attach<R>(f: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    // Counted first and asked then; `close_at_exit` does the reverse, so one of both sees the other.
    let _inside = ThreadInPython::enter();
    if is_closed() { None } else { Python::try_attach(f) }
}

/// Whether the interpreter is about to end, or has ended.
pub(crate) fn is_closed() -> bool {
    INTERPRETER_CLOSED.load(Ordering::SeqCst)
}

/// Whether dropping something might wait for a callback for ever, at the end of the program.
pub(crate) fn may_hang() -> bool {
    is_closed() && (HAS_HUNG.load(Ordering::SeqCst) || exit_time_left().is_zero())
}

fn exit_time_left() -> Duration {
    let deadline = EXIT_DEADLINE.get_or_init(|| Instant::now() + EXIT_LIMIT);
    deadline.saturating_duration_since(Instant::now())
}

/// Has the end of the program close the way. Called once, as the module is imported: what is registered first runs
/// last.
pub(crate) fn close_at_exit(py: Python<'_>) -> PyResult<()> {
    // The threads of a parent are not there.
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

/// Has the end of the program run `close`. It is waited for when all are being closed; only the first that takes long
/// holds up what was registered before it.
pub(crate) fn at_exit(
    py: Python<'_>,
    close: impl Fn() + Clone + Send + Sync + 'static,
) -> PyResult<()> {
    register(py, move || {
        let closing = BackgroundClose::start(close.clone());
        let mut all = lock(&CLOSING_AT_EXIT);
        let limit = if all.is_empty() { SIGNAL_CHECK_INTERVAL } else { Duration::ZERO };
        if !closing.wait(limit) {
            all.push(closing);
        }
    })
}

/// Registers something with `atexit` that runs without the GIL.
fn register(py: Python<'_>, run: impl Fn() + Send + Sync + 'static) -> PyResult<()> {
    let run = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        args.py().detach(&run);
    };
    let run = PyCFunction::new_closure(py, None, None, run)?;
    py.import("atexit")?.call_method1("register", (run,))?;
    Ok(())
}

thread_local! {
    /// Whether this thread is about to close something in [`close_in_time`].
    static CLOSES_IN_TIME: Cell<bool> = const { Cell::new(false) };
}

/// Runs a `close` or `cancel` that waits no longer than the end of a program does: at the end of a `with` block that
/// ends the program.
#[pyfunction]
pub(crate) fn close_in_time(close: &Bound<'_, PyAny>) -> PyResult<()> {
    CLOSES_IN_TIME.set(true);
    let closed = close.call0();
    CLOSES_IN_TIME.set(false);
    closed.map(drop)
}

/// As [`drop_without_gil`], for a thing that may have a callback that runs. The end of a Python object cannot raise, so the main
/// thread waits no longer than the end of a program does.
pub(crate) fn drop_in_time<T: Send + 'static>(thing: T) {
    let (is_main, _closing) = Python::try_attach(|py| {
        // The object may end while an exception is raised.
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

/// Runs `close`, which may wait for callbacks. On the main thread a signal handler that raises (Ctrl-C) ends the wait,
/// and the rest is done meanwhile.
pub(crate) fn close(py: Python<'_>, close: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let limit = CLOSES_IN_TIME.take().then_some(EXIT_LIMIT);
    let _closing = ClosingThread::new(py)?;
    // Signals are for the main thread. And a callback that closes what it is called by must do so on its own thread,
    // which is not waited for.
    if !is_main_thread(py)? {
        py.detach(close);
        return Ok(());
    }
    let until = limit.map(|limit| Instant::now() + limit);
    let closing = BackgroundClose::start(close);
    loop {
        let left = until
            .map_or(SIGNAL_CHECK_INTERVAL, |until| until.saturating_duration_since(Instant::now()));
        if py.detach(|| closing.wait(left.min(SIGNAL_CHECK_INTERVAL))) {
            return Ok(());
        }
        if left.is_zero() {
            give_up_waiting();
            return Ok(());
        }
        py.check_signals()?;
    }
}

/// A wait has taken as long as the end of the program waits, which does not wait again for what runs now.
fn give_up_waiting() {
    HAS_HUNG.store(true, Ordering::SeqCst);
    forget_threads_in_python();
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}

/// Something that is being closed on a thread of its own.
struct BackgroundClose(Mutex<Receiver<()>>);

impl BackgroundClose {
    fn start(close: impl FnOnce() + Send + 'static) -> BackgroundClose {
        let (done, closed) = mpsc::channel::<()>();
        let close = Arc::new(Mutex::new(Some(move || {
            close();
            drop(done);
        })));
        let theirs = close.clone();
        if rnet::spawn_thread("rnet-close", move || run_once(&theirs)).is_err() {
            // No thread can be started: without Ctrl-C then. The callback may wait for the GIL.
            let _ = Python::try_attach(|py| py.detach(|| run_once(&close)));
            run_once(&close);
        }
        BackgroundClose(Mutex::new(closed))
    }

    /// Whether it is done, at the latest after `limit`.
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
