//! Access to the memory of Python objects, by the buffer protocol.
//!
//! The protocol is part of the stable ABI since Python 3.11. Its functions and the layout of `Py_buffer` have
//! been the same since 3.10, which we support, so they are declared here. (Python 3.10 will not change any
//! more.)

use std::ffi::{CStr, c_char, c_int, c_void};

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi::{Py_ssize_t, PyObject};
use pyo3::prelude::*;

pub(crate) const SLOT_GET_BUFFER: c_int = 1;
pub(crate) const SLOT_RELEASE_BUFFER: c_int = 2;
const PYBUF_SIMPLE: c_int = 0;
const PYBUF_WRITABLE: c_int = 1;
/// Requests the element format and the shape; a memoryview provides the format only together with the shape.
const PYBUF_FORMAT: c_int = 4 | 8;

/// `Py_buffer` of CPython 3.10 and later.
#[repr(C)]
pub(crate) struct RawBuffer {
    pub(crate) buf: *mut c_void,
    pub(crate) obj: *mut PyObject,
    pub(crate) len: Py_ssize_t,
    pub(crate) itemsize: Py_ssize_t,
    pub(crate) readonly: c_int,
    pub(crate) ndim: c_int,
    pub(crate) format: *mut c_char,
    pub(crate) shape: *mut Py_ssize_t,
    pub(crate) strides: *mut Py_ssize_t,
    pub(crate) suboffsets: *mut Py_ssize_t,
    pub(crate) internal: *mut c_void,
}

// Four pointers, two sizes, two ints, and the last three pointers, including `buf` and `obj`: as in CPython.
const _: () =
    assert!(size_of::<RawBuffer>() == 80 && std::mem::offset_of!(RawBuffer, format) == 40);

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
    pub(crate) fn PyBuffer_FillInfo(
        view: *mut RawBuffer,
        object: *mut PyObject,
        buf: *mut c_void,
        len: Py_ssize_t,
        readonly: c_int,
        flags: c_int,
    ) -> c_int;
}

/// The reason why an object cannot be sent.
fn refusal(object: &Bound<'_, PyAny>, error: &PyErr) -> PyResult<PyErr> {
    let py = object.py();
    let name = object.get_type().fully_qualified_name()?;
    Ok(if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(format!(
            "cannot send a {name}: send bytes, or an object with the buffer protocol \
             (bytearray, memoryview, numpy array, ctypes structure)"
        ))
    } else {
        let why = error.value(py).to_string();
        PyBufferError::new_err(format!(
            "cannot send this {name}: {why}; make it contiguous first \
             (numpy.ascontiguousarray, bytes)"
        ))
    })
}

/// A description of the addresses of this process that a format contains.
fn address_in(format: &[u8]) -> Option<&'static str> {
    // Field names are enclosed in colons.
    format.split(|byte| *byte == b':').step_by(2).find_map(|codes| {
        codes.iter().enumerate().find_map(|(at, code)| match (code, codes.get(at + 1)) {
            (b'O', _) => Some("Python objects"),
            // A complex number.
            (b'Z', Some(b'f' | b'd' | b'g')) => None,
            (b'P' | b'&' | b'z' | b'Z' | b'X', _) => Some("pointers"),
            _ => None,
        })
    })
}

/// Whether it is a numpy object with Python objects as elements; numpy exposes those without a format.
fn has_objects(object: &Bound<'_, PyAny>) -> bool {
    let has = || object.getattr("dtype")?.getattr("hasobject")?.extract::<bool>();
    has().unwrap_or(false)
}

/// The bytes of a Python object, which do not move while this lives.
pub(crate) struct Bytes<'py> {
    // On the heap: some exporters keep the address of the view.
    view: Box<RawBuffer>,
    _py: Python<'py>,
}

impl<'py> Bytes<'py> {
    fn ask(object: &Bound<'py, PyAny>, flags: c_int) -> PyResult<Bytes<'py>> {
        let py = object.py();
        // SAFETY: all-zero bytes are a valid value of this struct of integers and pointers.
        let mut view: Box<RawBuffer> = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: the object is alive, we own the view to be filled, and we hold the GIL.
        let code = unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) };
        if code == 0 { Ok(Bytes { view, _py: py }) } else { Err(PyErr::fetch(py)) }
    }

    /// Requests the bytes in order to send them.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Bytes<'py>> {
        // Some objects have bytes and no format: numpy's times.
        let (bytes, addresses) = match Bytes::ask(object, PYBUF_FORMAT) {
            Ok(bytes) => {
                let addresses = bytes.format().and_then(address_in);
                (Ok(bytes), addresses)
            }
            Err(error) if has_objects(object) => (Err(error), Some("Python objects")),
            Err(_) => (Bytes::ask(object, PYBUF_SIMPLE), None),
        };
        if let Some(what) = addresses {
            return Err(PyTypeError::new_err(format!(
                "cannot send this {}: its elements are {what}, which are meaningless in another process; \
                 send numbers (convert with numpy astype, or use another dtype)",
                object.get_type().fully_qualified_name()?
            )));
        }
        bytes.map_err(|error| refusal(object, &error).unwrap_or_else(|while_asking| while_asking))
    }

    /// The layout of its elements, in the notation of Python's `struct` and of PEP 3118.
    fn format(&self) -> Option<&[u8]> {
        // SAFETY: a format is a C string, and the exporter keeps it until the view is released on drop.
        let format =
            (!self.view.format.is_null()).then(|| unsafe { CStr::from_ptr(self.view.format) });
        format.map(CStr::to_bytes)
    }

    /// Requests the bytes in order to write to them.
    pub(crate) fn writable(object: &Bound<'py, PyAny>) -> PyResult<Bytes<'py>> {
        Bytes::ask(object, PYBUF_WRITABLE)
    }

    /// Like [`Bytes::as_slice`], for memory requested with [`Bytes::writable`]. Other threads may write to it
    /// meanwhile, as with every buffer in Python.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        if self.view.readonly != 0 || self.len() == 0 {
            return &mut [];
        }
        // SAFETY: the exporter keeps `len` writable bytes at `buf` until the view is released on drop.
        unsafe { std::slice::from_raw_parts_mut(self.view.buf.cast::<u8>(), self.len()) }
    }

    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.view.len).unwrap_or(0)
    }

    /// The bytes. Another thread may write to them meanwhile if the object is writable; the message then
    /// mixes old and new bytes, as with every buffer in Python.
    pub(crate) fn as_slice(&self) -> &[u8] {
        if self.len() == 0 {
            return &[];
        }
        // SAFETY: the exporter keeps `len` bytes at `buf` until the view is released on drop.
        unsafe { std::slice::from_raw_parts(self.view.buf.cast::<u8>(), self.len()) }
    }
}

impl Drop for Bytes<'_> {
    fn drop(&mut self) {
        // SAFETY: the view was filled by PyObject_GetBuffer, and `_py` shows that we hold the GIL.
        unsafe { PyBuffer_Release(&raw mut *self.view) }
    }
}
