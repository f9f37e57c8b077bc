//! `rnet_buffer`, and messages as JSON, for tools that do not know a type when they are compiled.

use std::ffi::c_char;

use rnet::schema::JsonOptions;
use rnet::{Error, MessageType};
use rnet_format::value::{encode, message_to_json_with};

use crate::border::{enter, free, give};
use crate::bytes::{rnet_bytes, text};
use crate::error::{Failure, Outcome, rnet_code, rnet_error};
use crate::types::{rnet_type, type_of};

/// Bytes or text that the library has made. Any thread may use it.
pub struct rnet_buffer {
    /// With a NUL after the content.
    bytes: Vec<u8>,
}

impl rnet_buffer {
    pub(crate) fn new(mut bytes: Vec<u8>) -> rnet_buffer {
        bytes.push(0);
        rnet_buffer { bytes }
    }
}

/// The bytes of a buffer, valid until it is freed. Empty if `buffer` is null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_buffer_bytes(buffer: Option<&rnet_buffer>) -> rnet_bytes {
    buffer
        .map_or(rnet_bytes::EMPTY, |buffer| rnet_bytes::of(&buffer.bytes[..buffer.bytes.len() - 1]))
}

/// The bytes of a buffer as a text that ends with NUL, valid until the buffer is freed; "" if `buffer` is null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_buffer_text(buffer: Option<&rnet_buffer>) -> *const c_char {
    buffer.map_or(c"".as_ptr(), |buffer| buffer.bytes.as_ptr().cast())
}

/// Frees a buffer. Null is allowed.
///
/// # Safety
/// `buffer` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_buffer_free(buffer: *mut rnet_buffer) {
    // SAFETY: as promised by the caller.
    unsafe { free(buffer) }
}

/// The description of a type as JSON: the fields of a plain type, the name of a protobuf type. The caller frees it
/// with rnet_buffer_free().
///
/// # Safety
/// `ty` is null or a type, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_type_to_json(
    ty: *const rnet_type,
    out: *mut *mut rnet_buffer,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let json = || Outcome::Ok(unsafe { type_of(ty) }.desc().to_json());
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, rnet_buffer::new(json()?.into_bytes()))) }
}

/// An error of a message of a type.
fn bad_message(ty: &MessageType, why: String) -> Failure {
    Error::bad_value(ty.desc().name().unwrap_or("raw bytes"), why).into()
}

/// A message as JSON: ProtoJSON for protobuf, an object of the fields for a plain type. The caller frees it with
/// rnet_buffer_free().
///
/// Errors: RNET_BAD_VALUE if the bytes are not a message of the type, or the type is raw bytes.
///
/// # Safety
/// `ty` is null or a type, `message` a valid view, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_message_to_json(
    ty: *const rnet_type,
    message: rnet_bytes,
    out: *mut *mut rnet_buffer,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let ty = unsafe { type_of(ty) };
        // SAFETY: as promised by the caller.
        let bytes = unsafe { message.get("message") }?;
        if matches!(ty, MessageType::Raw) {
            return Err(bad_message(
                &ty,
                "they have no fields; pass the type of the topic".to_owned(),
            ));
        }
        let json = message_to_json_with(&ty, bytes, &JsonOptions::default());
        let json = json.map_err(|why| bad_message(&ty, why))?.to_string();
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_buffer::new(json.into_bytes())) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The bytes of a message that JSON describes, as rnet_message_to_json() writes it. Fields that are absent are zero.
/// The caller frees them with rnet_buffer_free().
///
/// Errors: RNET_BAD_VALUE, with the field, if the text is not JSON or does not match the type.
///
/// # Safety
/// `ty` is null or a type, `json` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_message_from_json(
    ty: *const rnet_type,
    json: *const c_char,
    out: *mut *mut rnet_buffer,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let ty = unsafe { type_of(ty) };
        // SAFETY: as promised by the caller.
        let json = unsafe { text(json, "json") }?;
        let json = serde_json::from_str(json);
        let json = json.map_err(|why| Error::bad_value("JSON", why.to_string()))?;
        let bytes = encode(&ty, &json).map_err(|why| bad_message(&ty, why))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_buffer::new(bytes)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
