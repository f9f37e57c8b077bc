//! `rnet_type`: what an endpoint sends and receives.

use std::ffi::{CString, c_char, c_void};

use rnet::msgs::plain::HeaderDescription;
use rnet::schema::{CompiledProtos, Schema, SchemaError, Sources, builtin_files};
use rnet::{Error, Field, FieldType, MessageType, PlainType, Prim};

use crate::border::{enter, free, give, given, write};
use crate::bytes::{rnet_bytes, text};
use crate::error::{Outcome, c_text, invalid, rnet_code, rnet_error};

/// The type of messages: raw bytes, a plain struct or a protobuf message. Any thread may use it. Endpoints copy it:
/// it may be freed once they are open.
pub struct rnet_type {
    pub(crate) ty: MessageType,
    name: CString,
    /// Of a type whose header data follows.
    header: Option<HeaderDescription>,
}

impl rnet_type {
    pub(crate) fn new(ty: MessageType) -> rnet_type {
        let name = c_text(ty.desc().name().unwrap_or_default());
        let header = match &ty {
            MessageType::Plain(plain) => HeaderDescription::find(plain),
            _ => None,
        };
        rnet_type { ty, name, header }
    }
}

/// The type that an option or argument gives; raw bytes if it is null.
///
/// # Safety
/// `ty` is null or a type that was not freed.
pub(crate) unsafe fn type_of(ty: *const rnet_type) -> MessageType {
    // SAFETY: as promised by the caller.
    unsafe { ty.as_ref() }.map_or(MessageType::Raw, |ty| ty.ty.clone())
}

/// The kind of a number in a plain struct.
#[allow(dead_code, reason = "option structs hold its numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_primitive {
    /// Not a number: the field is a struct, described by `type`.
    RNET_STRUCT = 0,
    /// uint8_t
    RNET_U8 = 1,
    /// uint16_t
    RNET_U16 = 2,
    /// uint32_t
    RNET_U32 = 3,
    /// uint64_t
    RNET_U64 = 4,
    /// int8_t
    RNET_I8 = 5,
    /// int16_t
    RNET_I16 = 6,
    /// int32_t
    RNET_I32 = 7,
    /// int64_t
    RNET_I64 = 8,
    /// float
    RNET_F32 = 9,
    /// double
    RNET_F64 = 10,
    /// bool, one byte of 0 or 1
    RNET_BOOL = 11,
}

/// A field of a plain struct.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_field {
    /// Its name. Fields whose names begin with _ are padding.
    pub name: *const c_char,
    /// Its offset in the struct, in bytes: offsetof().
    pub offset: usize,
    /// The kind of number, an rnet_primitive; RNET_STRUCT for a struct.
    pub primitive: i32,
    /// Number of elements of an array; 0 for a single value.
    pub array_len: u32,
    /// For an array of arrays, the lengths of the inner ones, from the outside in; 0: none. `float m[4][3]` has
    /// array_len 4 and inner_len {3}.
    pub inner_len: [u32; 3],
    /// For RNET_STRUCT its type, which must be plain; otherwise null.
    pub struct_type: *const rnet_type,
}

impl rnet_field {
    /// # Safety
    /// `name` is a string, and `struct_type` null or a type.
    unsafe fn field(&self) -> Outcome<Field> {
        // SAFETY: as promised by the caller.
        let name = unsafe { text(self.name, "the name of a field") }?.to_owned();
        let one = match self.primitive {
            0 => {
                // SAFETY: as promised by the caller.
                let given = unsafe { given(self.struct_type, "the struct_type of a field") }?;
                match &given.ty {
                    MessageType::Plain(plain) => FieldType::Struct(plain.clone()),
                    _ => {
                        return Err(invalid(format!(
                            "the type of field {name} is not a plain struct"
                        )));
                    }
                }
            }
            number => {
                let at = usize::try_from(number - 1).ok();
                let prim = at.and_then(|at| Prim::ALL.get(at));
                FieldType::Prim(*prim.ok_or_else(|| {
                    invalid(format!(
                        "field {name} has primitive {number}, which is not an rnet_primitive"
                    ))
                })?)
            }
        };
        let [second, third, fourth] = self.inner_len;
        let lens = [self.array_len, second, third, fourth];
        let lens = lens.into_iter().take_while(|len| *len > 0).collect::<Vec<_>>();
        let ty =
            lens.into_iter().rev().fold(one, |of, len| FieldType::Array { of: Box::new(of), len });
        Ok(Field { name, offset: self.offset, ty })
    }
}

/// The type of a plain struct, sent as it is in memory. Publisher and subscriber compare its fields by name.
/// The caller frees it with rnet_type_free().
///
/// `size` and `align` are sizeof() and alignof() of the struct; at most 8 byte alignment. Bytes outside of all
/// fields are padding.
///
/// Errors: RNET_BAD_VALUE for a field outside of the struct, or two that overlap.
///
/// # Safety
/// `name` is a string, `fields` refers to `field_count` fields, `out` is valid for a write, `error` is null or valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_type_plain(
    name: *const c_char,
    size: usize,
    align: usize,
    fields: *const rnet_field,
    field_count: usize,
    out: *mut *mut rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let name = unsafe { text(name, "name") }?.to_owned();
        let fields = if field_count == 0 {
            &[][..]
        } else {
            // SAFETY: not null, and as promised by the caller.
            unsafe { std::slice::from_raw_parts(given(fields, "fields")?, field_count) }
        };
        // SAFETY: as promised by the caller.
        let fields = fields.iter().map(|field| unsafe { field.field() }).collect::<Outcome<_>>()?;
        let plain = PlainType { name, size, align, tail: false, fields };
        plain.validate()?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_type::new(MessageType::Plain(plain))) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The protobuf type `name` of a serialized google.protobuf.FileDescriptorSet with all imports. The caller frees it
/// with rnet_type_free().
///
/// Errors: RNET_BAD_VALUE if the set is damaged or does not contain the type.
///
/// # Safety
/// `descriptor_set` is a valid view, `name` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_type_protobuf(
    descriptor_set: rnet_bytes,
    name: *const c_char,
    out: *mut *mut rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (set, name) = unsafe { (descriptor_set.get("descriptor_set")?, text(name, "name")?) };
        let ty = protobuf(name, Schema::from_descriptor_set(set, name))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, ty) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// A built-in message by its full name: "foxglove.LaserScan", "rnet.msgs.Twist"; "rnet.msgs.Image", "rnet.msgs.PointCloud"
/// and "rnet.msgs.Tensor" for plain headers that data follows, see rnet_message_split(). The caller frees it with
/// rnet_type_free().
///
/// Errors: RNET_BAD_VALUE for an unknown name.
///
/// # Safety
/// `name` is a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_type_builtin(
    name: *const c_char,
    out: *mut *mut rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let name = unsafe { text(name, "name") }?;
        let plain = HeaderDescription::all().into_iter().find(|one| one.plain.name == name);
        let ty = match plain {
            Some(header) => rnet_type::new(MessageType::Plain(header.plain)),
            None => protobuf(name, builtin().and_then(|compiled| compiled.schema(name)))?,
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, ty) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Copies the header of a message that its data follows (rnet.msgs.Image, PointCloud, Tensor) to `header`, a struct with
/// the fields of docs/design/plain-messages.md, checks it, and gives its data, a view of `message`. The data is as long
/// as the header says, so that no element is outside of it. Fields that the message does not have are zero.
///
/// Errors: RNET_BAD_VALUE names the invalid field; RNET_INVALID_ARGUMENT if the type has no data.
///
/// # Safety
/// `ty` is a type, `message` a valid view, `header` valid for writes of `header_len` bytes, `data` valid for a write,
/// `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_message_split(
    ty: *const rnet_type,
    message: rnet_bytes,
    header: *mut c_void,
    header_len: usize,
    data: *mut rnet_bytes,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (ty, message) = unsafe { (given(ty, "ty")?, message.get("message")?) };
        // SAFETY: not null, and as promised by the caller.
        let header = unsafe {
            given(header, "header")?;
            std::slice::from_raw_parts_mut(header.cast::<u8>(), header_len)
        };
        let Some(description) = &ty.header else {
            let name = ty.ty.desc().name().unwrap_or("raw bytes").to_owned();
            return Err(invalid(format!("messages of type {name} have no header with data")));
        };
        let found = description.read(message, header)?;
        // SAFETY: as promised by the caller.
        unsafe { write(data, rnet_bytes::of(&message[found])) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The type of a schema.
fn protobuf(name: &str, schema: Result<Schema, SchemaError>) -> Outcome<rnet_type> {
    let schema = schema.map_err(|why| Error::bad_value(name, why.to_string()))?;
    Ok(rnet_type::new(MessageType::Protobuf(schema)))
}

/// All built-in messages, compiled at each call: a program asks for a few, once.
fn builtin() -> Result<CompiledProtos, SchemaError> {
    let imports = builtin_files().map(|file| format!("import \"{file}\";\n"));
    let text = format!("syntax = \"proto3\";\n{}", imports.collect::<String>());
    Sources::default().compile_text("builtin.proto", &text)
}

/// The name of a type; "" for raw bytes and for null. Valid until the type is freed.
///
/// # Safety
/// `ty` is null or a type that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_type_name(ty: *const rnet_type) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { ty.as_ref() }.map_or(c"".as_ptr(), |ty| ty.name.as_ptr())
}

/// Frees a type. Null is allowed.
///
/// # Safety
/// `ty` is null or a type that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_type_free(ty: *mut rnet_type) {
    // SAFETY: as promised by the caller.
    unsafe { free(ty) }
}
