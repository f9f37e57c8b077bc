//! `rnet_value`: a value of the state.

use std::ptr;

use rnet::Error;
use rnet::state::{StateMessage, Value};

use crate::border::{enter, free, given, write};
use crate::bytes::{rnet_bytes, text};
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::types::{rnet_type, type_of};

/// A value of the state, of one of the kinds rnet_value_kind. It does not change: any thread may read it.
/// Functions that store it copy it. A value that rnet_value_new_*() or a function that says so returns
/// belongs to the caller, who frees it with rnet_value_free(); one within an entry, a list or a callback
/// belongs to that.
pub struct rnet_value {
    /// Represents a `Value`: the pointers are those of values, also of values within other objects.
    _value: [u8; 0],
}

/// The kind of a value.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_value_kind {
    /// No value: a null pointer.
    RNET_VALUE_NONE = 0,
    /// A boolean.
    RNET_VALUE_BOOL = 1,
    /// A 64-bit integer.
    RNET_VALUE_INT = 2,
    /// A double.
    RNET_VALUE_FLOAT = 3,
    /// UTF-8 text.
    RNET_VALUE_STRING = 4,
    /// Bytes without a meaning for robot-net.
    RNET_VALUE_BYTES = 5,
    /// JSON text.
    RNET_VALUE_JSON = 6,
    /// Values of any kinds except messages.
    RNET_VALUE_LIST = 7,
    /// Distinct booleans, numbers, strings and bytes, sorted.
    RNET_VALUE_SET = 8,
    /// A message, with its type.
    RNET_VALUE_MESSAGE = 9,
    /// A value that a faulty program has written; its bytes are the fault as text. It cannot be stored.
    RNET_VALUE_UNREADABLE = 10,
}

use rnet_value_kind::*;

/// A value within another object, as C sees it.
pub(crate) fn view(value: &Value) -> *const rnet_value {
    ptr::from_ref(value).cast()
}

/// As [`view`]; null for none.
pub(crate) fn optional_view(value: Option<&Value>) -> *const rnet_value {
    value.map_or(ptr::null(), view)
}

/// A new value, owned by the caller.
fn owned(value: Value) -> *mut rnet_value {
    Box::into_raw(Box::new(value)).cast()
}

/// As [`owned`]; null for none.
fn optional_owned(value: Option<Value>) -> *mut rnet_value {
    value.map_or(ptr::null_mut(), owned)
}

/// The value behind a pointer.
///
/// # Errors
/// `InvalidArgument` if it is null.
///
/// # Safety
/// As [`given`].
pub(crate) unsafe fn value_of<'a>(value: *const rnet_value, what: &str) -> Outcome<&'a Value> {
    // SAFETY: every `rnet_value` is a `Value`; for the rest as promised by the caller.
    unsafe { given(value.cast::<Value>(), what) }
}

/// As [`value_of`]; `None` if it is null.
///
/// # Safety
/// As [`given`].
pub(crate) unsafe fn optional_value<'a>(value: *const rnet_value) -> Option<&'a Value> {
    // SAFETY: as in `value_of`.
    unsafe { value.cast::<Value>().as_ref() }
}

fn kind_of(value: &Value) -> rnet_value_kind {
    match value {
        Value::Bool(_) => RNET_VALUE_BOOL,
        Value::Int(_) => RNET_VALUE_INT,
        Value::Float(_) => RNET_VALUE_FLOAT,
        Value::Str(_) => RNET_VALUE_STRING,
        Value::Bytes(_) => RNET_VALUE_BYTES,
        Value::Json(_) => RNET_VALUE_JSON,
        Value::List(_) => RNET_VALUE_LIST,
        Value::Set(_) => RNET_VALUE_SET,
        Value::Message(_) => RNET_VALUE_MESSAGE,
        _ => RNET_VALUE_UNREADABLE,
    }
}

/// A kind in words.
fn kind_text(kind: i32) -> String {
    let example = match kind {
        1 => Value::Bool(false),
        2 => Value::Int(0),
        3 => Value::Float(0.0),
        4 => Value::Str(String::new()),
        5 => Value::Bytes(Vec::new()),
        6 => Value::Json(String::new()),
        7 => Value::List(Vec::new()),
        8 => Value::Set(Vec::new()),
        9 => return "a message".to_owned(),
        _ => return "a value of an unknown kind".to_owned(),
    };
    example.type_text()
}

fn other_kind(key: &str, value: &Value, given: String) -> Error {
    Error::StateType { key: key.to_owned(), holds: value.type_text(), given }
}

/// A boolean.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_value_new_bool(value: bool) -> *mut rnet_value {
    owned(Value::Bool(value))
}

/// An integer.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_value_new_int(value: i64) -> *mut rnet_value {
    owned(Value::Int(value))
}

/// A float.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_value_new_float(value: f64) -> *mut rnet_value {
    owned(Value::Float(value))
}

/// # Safety
/// `bytes` is a valid view.
unsafe fn utf8(bytes: rnet_bytes) -> Outcome<String> {
    // SAFETY: as promised by the caller.
    let text = std::str::from_utf8(unsafe { bytes.get("text") }?);
    text.map(str::to_owned).map_err(|why| invalid(format!("text is not UTF-8: {why}")))
}

/// A string.
///
/// Errors: RNET_INVALID_ARGUMENT if it is not UTF-8.
///
/// # Safety
/// `text` is a valid view, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_new_string(
    text: rnet_bytes,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, Value::Str(utf8(text)?))) }
}

/// JSON text.
///
/// Errors: RNET_BAD_VALUE if it is not JSON.
///
/// # Safety
/// As for rnet_value_new_string().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_new_json(
    text: rnet_bytes,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, Value::json(utf8(text)?)?)) }
}

/// Bytes.
///
/// # Safety
/// `bytes` is a valid view, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_new_bytes(
    bytes: rnet_bytes,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, Value::Bytes(bytes.get("bytes")?.to_vec()))) }
}

/// A message of a type.
///
/// Errors: RNET_BAD_VALUE if the type is null, or the bytes cannot be a message of the type.
///
/// # Safety
/// `message_type` is null or a type, `bytes` a valid view, `out` valid for a write, `error` null or valid for
/// a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_new_message(
    message_type: *const rnet_type,
    bytes: rnet_bytes,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (ty, bytes) = unsafe { (type_of(message_type), bytes.get("bytes")?.to_vec()) };
        // SAFETY: as promised by the caller.
        unsafe { give_value(out, Value::Message(StateMessage::new(ty, bytes)?)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// A list of copies of these values.
///
/// # Safety
/// `items` refers to `count` values, `out` is valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_new_list(
    items: *const *const rnet_value,
    count: usize,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, Value::List(copies(items, count)?))) }
}

/// A set of copies of these values, sorted and without duplicates.
///
/// # Safety
/// As for rnet_value_new_list().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_new_set(
    items: *const *const rnet_value,
    count: usize,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, Value::set(copies(items, count)?))) }
}

/// # Safety
/// `items` refers to `count` pointers, each null or to a value.
unsafe fn copies(items: *const *const rnet_value, count: usize) -> Outcome<Vec<Value>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: not null, and as promised by the caller.
    let items = unsafe { std::slice::from_raw_parts(given(items, "items")?, count) };
    // SAFETY: as promised by the caller.
    items.iter().map(|item| unsafe { value_of(*item, "an item") }.cloned()).collect()
}

/// Gives a new value to the caller; null for none.
///
/// # Safety
/// `out` is null or valid for a write.
pub(crate) unsafe fn give_value(
    out: *mut *mut rnet_value,
    value: impl Into<Option<Value>>,
) -> Outcome {
    // First, so that a failure leaves nothing to free.
    // SAFETY: as promised by the caller.
    unsafe { write(out, ptr::null_mut())? };
    // SAFETY: as promised by the caller.
    unsafe { write(out, optional_owned(value.into())) }
}

/// A copy, owned by the caller. Null for null.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_copy(value: *const rnet_value) -> *mut rnet_value {
    // SAFETY: as promised by the caller.
    optional_owned(unsafe { optional_value(value) }.cloned())
}

/// Whether two values are equal. An integer and a float never are.
///
/// # Safety
/// Each is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_equal(a: *const rnet_value, b: *const rnet_value) -> bool {
    // SAFETY: as promised by the caller.
    unsafe { optional_value(a) == optional_value(b) }
}

/// The kind of a value; RNET_VALUE_NONE if it is null.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_kind_of(value: *const rnet_value) -> rnet_value_kind {
    // SAFETY: as promised by the caller.
    unsafe { optional_value(value) }.map_or(RNET_VALUE_NONE, kind_of)
}

/// The boolean; false if the value is not one.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_bool(value: *const rnet_value) -> bool {
    // SAFETY: as promised by the caller.
    unsafe { optional_value(value) }.and_then(Value::as_bool).unwrap_or_default()
}

/// The integer; 0 if the value is not one.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_int(value: *const rnet_value) -> i64 {
    // SAFETY: as promised by the caller.
    unsafe { optional_value(value) }.and_then(Value::as_int).unwrap_or_default()
}

/// The float; 0 if the value is not one.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_float(value: *const rnet_value) -> f64 {
    // SAFETY: as promised by the caller.
    unsafe { optional_value(value) }.and_then(Value::as_float).unwrap_or_default()
}

/// The bytes of a string, of bytes, of JSON text or of a message, valid as long as the value; not terminated
/// by NUL. Empty for other kinds.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_bytes(value: *const rnet_value) -> rnet_bytes {
    // SAFETY: as promised by the caller.
    match unsafe { optional_value(value) } {
        Some(Value::Str(text) | Value::Json(text) | Value::Unreadable(text)) => {
            rnet_bytes::of(text.as_bytes())
        }
        Some(Value::Bytes(bytes)) => rnet_bytes::of(bytes),
        Some(Value::Message(message)) => rnet_bytes::of(message.bytes()),
        _ => rnet_bytes::EMPTY,
    }
}

/// The name of its type, as text that is not terminated by NUL: "bool", "int", "float", "str", "bytes",
/// "json", "list", "set"; of a message its full name. Valid as long as the value.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_type_name(value: *const rnet_value) -> rnet_bytes {
    // SAFETY: as promised by the caller.
    let value = unsafe { optional_value(value) };
    value.map_or(rnet_bytes::EMPTY, |value| rnet_bytes::of(value.type_name().as_bytes()))
}

/// # Safety
/// `value` is null or a value.
unsafe fn items_of<'a>(value: *const rnet_value) -> &'a [Value] {
    // SAFETY: as promised by the caller.
    match unsafe { optional_value(value) } {
        Some(Value::List(items) | Value::Set(items)) => items,
        _ => &[],
    }
}

/// Number of items of a list or set; 0 for other kinds.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_count(value: *const rnet_value) -> usize {
    // SAFETY: as promised by the caller.
    unsafe { items_of(value) }.len()
}

/// An item of a list or set, which belongs to it; null if there is none at this index.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_item(
    value: *const rnet_value,
    index: usize,
) -> *const rnet_value {
    // SAFETY: as promised by the caller.
    optional_view(unsafe { items_of(value) }.get(index))
}

/// Checks that the value of a key is of a kind, an rnet_value_kind. `key` is for the text of the error.
///
/// Errors: RNET_STATE_TYPE.
///
/// # Safety
/// `value` is a value, `key` a string, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_check_kind(
    value: *const rnet_value,
    key: *const std::ffi::c_char,
    kind: i32,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (value, key) = unsafe { (value_of(value, "value")?, text(key, "key")?) };
        if kind_of(value) as i32 == kind {
            return Ok(());
        }
        Err(other_kind(key, value, kind_text(kind)).into())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Checks that the value of a key is an integer from `least` to `most`. `key` is for the text of the error.
///
/// Errors: RNET_STATE_TYPE if it is not an integer, RNET_BAD_VALUE if it is out of range.
///
/// # Safety
/// `value` is a value, `key` a string, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_check_int(
    value: *const rnet_value,
    key: *const std::ffi::c_char,
    least: i64,
    most: i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (value, key) = unsafe { (value_of(value, "value")?, text(key, "key")?) };
        match value.as_int() {
            Some(int) if (least..=most).contains(&int) => Ok(()),
            Some(int) => {
                let why = format!("{int} is not between {least} and {most}");
                Err(Error::bad_value(format!("value of {key}"), why).into())
            }
            None => Err(other_kind(key, value, kind_text(RNET_VALUE_INT as i32)).into()),
        }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Checks that the value of a key is a message that readers of `message_type` understand, by the rules of
/// topics. `key` is for the text of the error.
///
/// Errors: RNET_STATE_TYPE.
///
/// # Safety
/// `value` is a value, `key` a string, `message_type` null or a type, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_check_message(
    value: *const rnet_value,
    key: *const std::ffi::c_char,
    message_type: *const rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (value, key) = unsafe { (value_of(value, "value")?, text(key, "key")?) };
        // SAFETY: as promised by the caller.
        let reader = unsafe { type_of(message_type) };
        match value {
            Value::Message(message) => Ok(message.check_reader(key, &reader)?),
            other => Err(other_kind(key, other, reader.desc().to_string()).into()),
        }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a value of the caller. Null is allowed.
///
/// # Safety
/// `value` is null or an owned value that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_free(value: *mut rnet_value) {
    // SAFETY: every `rnet_value` is a `Value`; for the rest as promised by the caller.
    unsafe { free(value.cast::<Value>()) }
}
