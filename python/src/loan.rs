//! `rnet.Loan`: memory that a publisher lends to be filled.
//!
//! Python sees the lent memory as a separate object with the buffer protocol, so that each view of it is
//! counted. A loan with a remaining view cannot be sent in place, because the view could write to memory that
//! subscribers read. Such a loan is sent as a copy, and the lent memory is returned when the last view is
//! released.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyType};
use rnet::OwnedLoan;

use crate::errors;
use crate::export::{BufferExporter, Getter, Memory, body_of, make_type, new_object};
use crate::lock::lock;
use crate::publisher::{PublisherCore, WaitProgress};

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    Ok(CLASS.get_or_try_init(py, || make_type::<LoanedMemory>(py))?.bind(py))
}

/// The memory of a loan.
struct LoanedMemory {
    core: Arc<PublisherCore>,
    /// `None` once it was sent in place.
    loan: Mutex<Option<OwnedLoan>>,
    at: *mut u8,
    len: usize,
    views: AtomicUsize,
}

// SAFETY: `at` is memory of `loan`, and only a thread with the GIL uses the object.
unsafe impl Send for LoanedMemory {}
// SAFETY: as above.
unsafe impl Sync for LoanedMemory {}

impl BufferExporter for LoanedMemory {
    const NAME: &'static std::ffi::CStr = c"rnet.LoanedMemory";
    const DOC: &'static std::ffi::CStr = c"Memory of a loan, exposed by its memoryview.";

    fn getters() -> Vec<Getter<Self>> {
        vec![]
    }

    fn export(&self) -> Result<Memory, &'static str> {
        if lock(&self.loan).is_none() {
            return Err("the loan has ended: its memory now belongs to the subscribers");
        }
        self.views.fetch_add(1, Ordering::Relaxed);
        Ok(Memory { at: self.at, len: self.len, writable: true })
    }

    fn view_released(&self) {
        self.views.fetch_sub(1, Ordering::Relaxed);
    }

    fn len(&self) -> usize {
        self.len
    }

    fn describe(&self) -> String {
        format!("<rnet.LoanedMemory: {} bytes>", self.len)
    }
}

impl Drop for LoanedMemory {
    fn drop(&mut self) {
        let loan = lock(&self.loan).take();
        if let Some(loan) = loan {
            self.core.return_loan(loan);
        }
    }
}

/// The Python objects of a loan while it is open.
struct OpenLoan {
    memory: Py<PyAny>,
    view: Py<PyMemoryView>,
}

/// Memory lent by `Publisher.loan`, to be filled and sent.
///
/// As a context manager it returns a writable memoryview, and sends when the block ends, or discards the loan
/// if the block raises. The initial bytes are those of an earlier message.
///
/// >>> images = node.publisher("/image")
/// >>> with images.loan(640 * 480) as memory:
/// ...     memory[:4] = bytes([1, 2, 3, 4])
#[pyclass(frozen, module = "rnet")]
pub(crate) struct Loan {
    core: Arc<PublisherCore>,
    len: usize,
    open: Mutex<Option<OpenLoan>>,
}

impl Loan {
    pub(crate) fn open(py: Python<'_>, core: Arc<PublisherCore>, len: usize) -> PyResult<Loan> {
        let (loan, at) = core.lend(py, len)?;
        let lent = LoanedMemory {
            core: core.clone(),
            loan: Mutex::new(Some(loan)),
            at: at as *mut u8,
            len,
            views: AtomicUsize::new(0),
        };
        let memory = new_object(class(py)?, lent)?;
        let view = PyMemoryView::from(&memory)?.unbind();
        let open = OpenLoan { memory: memory.unbind(), view };
        Ok(Loan { core, len, open: Mutex::new(Some(open)) })
    }

    fn ended_error(&self, py: Python<'_>) -> PyErr {
        errors::closed(py, format!("this loan of {}", self.core.topic()))
    }

    /// Sends in place if no view remains, else sends a copy. Returns whether it is the publisher's first copy.
    fn send_open(&self, py: Python<'_>, open: &OpenLoan) -> PyResult<bool> {
        // Our own view. A view that was made from it, such as by numpy, stays and is counted.
        let _ = open.view.call_method0(py, "release");
        let memory = open.memory.bind(py);
        let lent =
            body_of::<LoanedMemory>(memory, class(py)?).ok_or_else(|| self.ended_error(py))?;
        // numpy.ndarray(buffer=view) releases the buffer and keeps the object that has the memory.
        // SAFETY: the object is alive and we hold the GIL; one reference is that of `open`.
        let is_kept = unsafe { ffi::Py_REFCNT(memory.as_ptr()) } > 1;
        if is_kept || lent.views.load(Ordering::Relaxed) > 0 {
            let at = lent.at as usize;
            self.core.with_detached(py, |inner| {
                // SAFETY: `memory` keeps the loan, and so its bytes, until this returns; other
                // threads may write to them as to any buffer in Python.
                let bytes = unsafe { std::slice::from_raw_parts(at as *const u8, self.len) };
                inner.send(bytes)
            })?;
            return Ok(self.core.copied_loan_count.fetch_add(1, Ordering::Relaxed) == 0);
        }
        let mut waited = WaitProgress::default();
        loop {
            // Taken with the GIL held: no view can be created from here on.
            let Some(loan) = lock(&lent.loan).take() else { return Err(self.ended_error(py)) };
            let mut kept = Some(loan);
            let sent = py.detach(|| {
                self.core.with(&mut waited, |inner| match kept.take() {
                    None => Ok(()),
                    Some(loan) => inner.send_loan(loan).map_err(|(loan, error)| {
                        kept = Some(loan);
                        error
                    }),
                })
            });
            match sent {
                Ok(()) => {
                    self.core.loan_ended();
                    return Ok(false);
                }
                Err(error) => {
                    *lock(&lent.loan) = kept;
                    if error != rnet::Error::Interrupted {
                        return Err(errors::raise(py, &error));
                    }
                    py.check_signals()?;
                }
            }
        }
    }
}

#[pymethods]
impl Loan {
    /// The lent memory, as a writable memoryview.
    #[getter]
    fn data(&self, py: Python<'_>) -> PyResult<Py<PyMemoryView>> {
        match &*lock(&self.open) {
            Some(open) => Ok(open.view.clone_ref(py)),
            None => Err(self.ended_error(py)),
        }
    }

    /// Sends the content and ends the loan. If it raises, the loan stays open, and `data` must be read again.
    ///
    /// If views of the memory (such as a numpy array) still exist, a copy is sent, so that later writes do
    /// not change the message; `Publisher.copied_loan_count` counts these copies, and the first one of a
    /// publisher causes a RuntimeWarning.
    fn send(&self, py: Python<'_>) -> PyResult<()> {
        let Some(open) = lock(&self.open).take() else { return Err(self.ended_error(py)) };
        let result = self.send_open(py, &open);
        if result.is_err() {
            let view = PyMemoryView::from(open.memory.bind(py));
            if let Ok(view) = view.map(Bound::unbind) {
                *lock(&self.open) = Some(OpenLoan { memory: open.memory, view });
            }
        }
        if result? {
            // The loan is over: an exception, if warnings are errors, does not open it again.
            let topic = self.core.topic();
            py.import("rnet.hints")?.call_method1("warn_of_copied_loan", (topic,))?;
        }
        Ok(())
    }

    /// Ends the loan without sending. Does nothing if it has ended.
    fn discard(&self, py: Python<'_>) {
        let open = lock(&self.open).take();
        if let Some(open) = open {
            let _ = open.view.call_method0(py, "release");
        }
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyMemoryView>> {
        self.data(py)
    }

    #[pyo3(signature = (exception_type, _exception, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: Option<&Bound<'_, PyAny>>,
        _exception: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if exception_type.is_some() {
            self.discard(py);
            return Ok(());
        }
        if lock(&self.open).is_none() {
            // Sent or discarded inside of the block.
            return Ok(());
        }
        self.send(py).inspect_err(|_| self.discard(py))
    }

    fn __len__(&self) -> usize {
        self.len
    }

    fn __repr__(&self) -> String {
        let state = if lock(&self.open).is_some() { "open" } else { "over" };
        format!("<rnet.Loan of {}: {} bytes, {state}>", self.core.topic(), self.len)
    }
}
