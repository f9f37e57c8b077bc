//! Python types whose objects export their memory: [`crate::sample`] and the memory of [`crate::loan`].
//!
//! PyO3 cannot give a class the buffer protocol below Python 3.11, so these few types are built from slots by
//! hand. An object consists of a Python head and a Rust body; only this file knows that.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::buffer::{PyBuffer_FillInfo, RawBuffer, SLOT_GET_BUFFER, SLOT_RELEASE_BUFFER};

/// The memory of an object, and whether Python may write to it.
pub(crate) struct Memory {
    pub(crate) at: *const u8,
    pub(crate) len: usize,
    pub(crate) writable: bool,
}

/// A computed attribute.
pub(crate) struct Getter<T> {
    name: &'static CStr,
    doc: &'static CStr,
    get: fn(&Bound<'_, PyAny>, &T) -> PyResult<Py<PyAny>>,
}

pub(crate) fn getter<T>(
    name: &'static CStr,
    doc: &'static CStr,
    get: fn(&Bound<'_, PyAny>, &T) -> PyResult<Py<PyAny>>,
) -> Getter<T> {
    Getter { name, doc, get }
}

/// The Rust body of an object that exports memory.
pub(crate) trait BufferExporter: Send + Sync + 'static {
    /// Name of the Python type, with its module.
    const NAME: &'static CStr;
    const DOC: &'static CStr;
    /// Its attributes.
    fn getters() -> Vec<Getter<Self>>
    where
        Self: Sized;
    /// The memory. It stays valid as long as the object lives, or until [`BufferExporter::view_released`] was
    /// called as often as this. The error says why no memory is available.
    fn export(&self) -> Result<Memory, &'static str>;
    /// Called when a view of the memory is released.
    fn view_released(&self) {}
    fn len(&self) -> usize;
    fn describe(&self) -> String;
}

#[repr(C)]
struct Object<T> {
    head: ffi::PyObject,
    body: T,
}

/// Creates the Python type of `T`.
pub(crate) fn make_type<T: BufferExporter>(py: Python<'_>) -> PyResult<Py<PyType>> {
    // The type keeps the addresses of these, and is never freed.
    let mut attributes: Vec<ffi::PyGetSetDef> = Vec::new();
    for getter in T::getters() {
        let getter: &'static Getter<T> = Box::leak(Box::new(getter));
        attributes.push(ffi::PyGetSetDef {
            name: getter.name.as_ptr(),
            get: Some(get::<T>),
            set: None,
            doc: getter.doc.as_ptr(),
            closure: (&raw const *getter).cast_mut().cast(),
        });
    }
    attributes.push(ffi::PyGetSetDef::default());
    let attributes = Vec::leak(attributes);
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_doc, T::DOC.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_dealloc, dealloc::<T> as *mut c_void),
        slot(ffi::Py_tp_repr, repr::<T> as *mut c_void),
        slot(ffi::Py_tp_getset, attributes.as_mut_ptr().cast()),
        slot(ffi::Py_sq_length, length::<T> as *mut c_void),
        slot(SLOT_GET_BUFFER, get_buffer::<T> as *mut c_void),
        slot(SLOT_RELEASE_BUFFER, release_buffer::<T> as *mut c_void),
        ffi::PyType_Slot::default(),
    ];
    let mut spec = ffi::PyType_Spec {
        name: T::NAME.as_ptr(),
        basicsize: size_of::<Object<T>>() as c_int,
        itemsize: 0,
        // An object without a body must never be made, so Python code cannot make any.
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION) as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec and its slots have the form that this function requires; it copies everything that is
    // not leaked above.
    let made = unsafe { ffi::PyType_FromSpec(&raw mut spec) };
    // SAFETY: the function returns a new reference or null with an exception set.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, made) }?;
    Ok(made.cast_into::<PyType>()?.unbind())
}

/// Creates an object of the type that [`make_type`] made for `T`.
pub(crate) fn new_object<'py, T: BufferExporter>(
    class: &Bound<'py, PyType>,
    body: T,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a heap type without items; we hold the GIL, as `class` shows.
    let made = unsafe { ffi::PyType_GenericAlloc(class.as_type_ptr(), 0) };
    if made.is_null() {
        return Err(PyErr::fetch(class.py()));
    }
    // SAFETY: the memory has `basicsize` bytes, and the object is not shared yet; a Python allocation is
    // aligned to 16 bytes.
    let place = unsafe { &raw mut (*made.cast::<Object<T>>()).body };
    // SAFETY: as above; the overwritten bytes are zero.
    unsafe { place.write(body) };
    // SAFETY: a new reference, which we own.
    Ok(unsafe { Bound::from_owned_ptr(class.py(), made) })
}

/// The body of an object, if its type was made for `T`.
pub(crate) fn body_of<'a, T: BufferExporter>(
    object: &'a Bound<'_, PyAny>,
    class: &Bound<'_, PyType>,
) -> Option<&'a T> {
    // SAFETY: the exact type determines the layout (the types cannot be subclassed).
    object.get_type().is(class).then(|| unsafe { body::<T>(object.as_ptr()) })
}

/// # Safety
/// `object` was made by [`new_object`] for `T`, and lives as long as `'a`.
unsafe fn body<'a, T: BufferExporter>(object: *mut ffi::PyObject) -> &'a T {
    // SAFETY: the caller's promise; bodies are only shared, never borrowed mutably.
    unsafe { &(*object.cast::<Object<T>>()).body }
}

/// Runs a function that Python calls; a panic becomes an exception.
fn catch_panics<R>(failed: R, run: impl FnOnce(Python<'_>) -> PyResult<R>) -> R {
    // SAFETY: Python calls slots with the GIL held.
    let py = unsafe { Python::assume_attached() };
    let result = catch_unwind(AssertUnwindSafe(|| run(py)))
        .unwrap_or_else(|_| Err(PyRuntimeError::new_err("rnet panicked; this is a bug in rnet")));
    result.unwrap_or_else(|error| {
        error.restore(py);
        failed
    })
}

unsafe extern "C" fn dealloc<T: BufferExporter>(object: *mut ffi::PyObject) {
    // SAFETY: Python passes a slot an object of its type, and the reference count is zero.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: as above: the body is initialized, and is not used again.
    let place = unsafe { &raw mut (*object.cast::<Object<T>>()).body };
    let dropped = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as above.
        unsafe { place.drop_in_place() }
    }));
    debug_assert!(dropped.is_ok());
    // SAFETY: the object was allocated by PyType_GenericAlloc, without garbage collection.
    unsafe { ffi::PyObject_Free(object.cast()) };
    // SAFETY: an object of a heap type owns a reference to it.
    unsafe { ffi::Py_DECREF(class.cast()) };
}

unsafe extern "C" fn get<T: BufferExporter>(
    object: *mut ffi::PyObject,
    getter: *mut c_void,
) -> *mut ffi::PyObject {
    catch_panics(std::ptr::null_mut(), |py| {
        // SAFETY: the closure of our attributes is a leaked `Getter<T>`.
        let getter = unsafe { &*getter.cast::<Getter<T>>() };
        // SAFETY: Python passes a live object to the attributes of its type.
        let bound = unsafe { Bound::from_borrowed_ptr(py, object) };
        // SAFETY: as above.
        let body = unsafe { body::<T>(object) };
        Ok((getter.get)(&bound, body)?.into_ptr())
    })
}

unsafe extern "C" fn repr<T: BufferExporter>(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    catch_panics(std::ptr::null_mut(), |py| {
        // SAFETY: Python passes a slot a live object of its type.
        let body = unsafe { body::<T>(object) };
        Ok(body.describe().into_pyobject(py)?.into_ptr())
    })
}

unsafe extern "C" fn length<T: BufferExporter>(object: *mut ffi::PyObject) -> ffi::Py_ssize_t {
    // SAFETY: Python passes a slot a live object of its type.
    catch_panics(-1, |_| Ok(unsafe { body::<T>(object) }.len() as ffi::Py_ssize_t))
}

unsafe extern "C" fn get_buffer<T: BufferExporter>(
    object: *mut ffi::PyObject,
    view: *mut RawBuffer,
    flags: c_int,
) -> c_int {
    catch_panics(-1, |py| {
        // SAFETY: Python passes a slot a live object of its type.
        let body = unsafe { body::<T>(object) };
        let refused = |why: &str| {
            // SAFETY: a getbuffer that fails leaves no object in the view.
            unsafe { (*view).obj = std::ptr::null_mut() };
            PyBufferError::new_err(why.to_owned())
        };
        let memory = body.export().map_err(refused)?;
        let (at, len) = (memory.at.cast_mut().cast(), memory.len as ffi::Py_ssize_t);
        let readonly = c_int::from(!memory.writable);
        // SAFETY: Python passes a view to be filled; the view takes a reference to the object, which keeps
        // the memory valid.
        let code = unsafe { PyBuffer_FillInfo(view, object, at, len, readonly, flags) };
        if code != 0 {
            body.view_released();
            return Err(PyErr::fetch(py));
        }
        Ok(0)
    })
}

unsafe extern "C" fn release_buffer<T: BufferExporter>(
    object: *mut ffi::PyObject,
    _view: *mut RawBuffer,
) {
    catch_panics((), |_| {
        // SAFETY: the view still holds its reference on the object.
        unsafe { body::<T>(object) }.view_released();
        Ok(())
    });
}
