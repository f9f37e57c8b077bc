//! `rnet_value`: a value of the state.

use std::ffi::c_char;
use std::ptr;

use rnet::Error;
use rnet::state::{StateMessage, Value};

use crate::border::{enter, free, given, write};
use crate::bytes::{rnet_bytes, text};
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::types::{rnet_type, type_of};

/// A value of the state, of one of the kinds rnet_value_kind. It does not change: any thread may read it.
/// Functions that store it copy it. A value that rnet_value_new() or a function that says so returns
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

/// What a value contains. Begin with all bits zero, and set `kind` and the fields of that kind.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_value_data {
    /// Its kind, an rnet_value_kind.
    pub kind: i32,
    /// The boolean.
    pub boolean: bool,
    /// The integer.
    pub integer: i64,
    /// The float.
    pub number: f64,
    /// The text of a string, the bytes, JSON text, or the bytes of a message; not terminated by NUL.
    pub bytes: rnet_bytes,
    /// The items of a list or set. Null if read: see rnet_value_item().
    pub items: *const *const rnet_value,
    /// Number of items of a list or set.
    pub item_count: usize,
    /// The type of a message. Null if read: see rnet_value_type_name() and rnet_value_check().
    pub message_type: *const rnet_type,
}

impl rnet_value_data {
    const NONE: rnet_value_data = rnet_value_data {
        kind: RNET_VALUE_NONE as i32,
        boolean: false,
        integer: 0,
        number: 0.0,
        bytes: rnet_bytes::EMPTY,
        items: ptr::null(),
        item_count: 0,
        message_type: ptr::null(),
    };

    fn of(value: &Value) -> rnet_value_data {
        let mut data = rnet_value_data { kind: kind_of(value) as i32, ..Self::NONE };
        match value {
            Value::Bool(value) => data.boolean = *value,
            Value::Int(value) => data.integer = *value,
            Value::Float(value) => data.number = *value,
            Value::Str(text) | Value::Json(text) | Value::Unreadable(text) => {
                data.bytes = rnet_bytes::of(text.as_bytes());
            }
            Value::Bytes(bytes) => data.bytes = rnet_bytes::of(bytes),
            Value::Message(message) => data.bytes = rnet_bytes::of(message.bytes()),
            Value::List(items) | Value::Set(items) => data.item_count = items.len(),
            _ => {}
        }
        data
    }

    /// The value of a key, if that is a boolean, an integer or a float: others would end with it.
    ///
    /// # Errors
    /// `StateType` for another kind.
    pub(crate) fn of_scalar(key: &str, value: Option<&Value>) -> Outcome<rnet_value_data> {
        match value {
            None => Ok(Self::NONE),
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_)) => {
                Ok(value.map_or(Self::NONE, Self::of))
            }
            Some(other) => {
                Err(other_kind(key, other, "a boolean, an integer or a float".to_owned()).into())
            }
        }
    }

    /// The value with this content.
    ///
    /// # Errors
    /// `InvalidArgument`, `BadValue`.
    ///
    /// # Safety
    /// The fields of its kind are valid.
    pub(crate) unsafe fn value(self) -> Outcome<Value> {
        // SAFETY: as promised by the caller.
        let bytes = || unsafe { self.bytes.get("bytes") };
        // SAFETY: as promised by the caller.
        let items = || unsafe { copies(self.items, self.item_count) };
        Ok(match self.kind {
            1 => Value::Bool(self.boolean),
            2 => Value::Int(self.integer),
            3 => Value::Float(self.number),
            4 => Value::Str(utf8(bytes()?)?),
            5 => Value::Bytes(bytes()?.to_vec()),
            6 => Value::json(utf8(bytes()?)?)?,
            7 => Value::List(items()?),
            8 => Value::set(items()?),
            // SAFETY: as promised by the caller.
            9 => Value::Message(unsafe {
                StateMessage::new(type_of(self.message_type), bytes()?.to_vec())?
            }),
            other => {
                return Err(invalid(format!("kind is {other}, of which no value can be made")));
            }
        })
    }
}

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
    let example = rnet_value_data { kind, bytes: rnet_bytes::of(b"0"), ..rnet_value_data::NONE };
    // SAFETY: the bytes are valid, and a list has 0 items.
    let example = unsafe { example.value() };
    example.map_or("a value of an unknown kind".to_owned(), |value| value.type_text())
}

fn other_kind(key: &str, value: &Value, given: String) -> Error {
    Error::StateType { key: key.to_owned(), holds: value.type_text(), given }
}

fn utf8(bytes: &[u8]) -> Outcome<String> {
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    text.map_err(|why| invalid(format!("text is not UTF-8: {why}")))
}

/// A value of any kind except RNET_VALUE_NONE and RNET_VALUE_UNREADABLE. Its content is copied; a set is sorted, without
/// duplicates. The caller frees it with rnet_value_free().
///
/// Errors: RNET_INVALID_ARGUMENT for another kind, or text that is not UTF-8; RNET_BAD_VALUE for text that is not JSON,
/// and for a message without a type, or with bytes that cannot be of its type.
///
/// # Safety
/// The fields of `data` that its kind uses are valid, `out` is valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_new(
    data: rnet_value_data,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, data.value()?)) }
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

/// The content of a value, whose pointers are valid as long as the value; of kind RNET_VALUE_NONE if it is null.
///
/// # Safety
/// `value` is null or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_read(value: *const rnet_value) -> rnet_value_data {
    // SAFETY: as promised by the caller.
    unsafe { optional_value(value) }.map_or(rnet_value_data::NONE, rnet_value_data::of)
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
    match unsafe { optional_value(value) } {
        Some(Value::List(items) | Value::Set(items)) => optional_view(items.get(index)),
        _ => ptr::null(),
    }
}

/// Checks that the value of a key is of a kind, an rnet_value_kind; a message must be one that readers of
/// `message_type` understand, by the rules of topics. `key` is for the text of the error.
///
/// Errors: RNET_STATE_TYPE.
///
/// # Safety
/// `value` is a value, `key` a string, `message_type` null or a type, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_value_check(
    value: *const rnet_value,
    key: *const c_char,
    kind: i32,
    message_type: *const rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (value, key) = unsafe { (value_of(value, "value")?, text(key, "key")?) };
        // SAFETY: as promised by the caller.
        let reader = unsafe { type_of(message_type) };
        match (value, kind) {
            (Value::Message(message), 9) => Ok(message.check_reader(key, &reader)?),
            (_, 9) => Err(other_kind(key, value, reader.desc().to_string()).into()),
            _ if kind_of(value) as i32 == kind => Ok(()),
            _ => Err(other_kind(key, value, kind_text(kind)).into()),
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
