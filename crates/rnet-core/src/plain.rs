//! Types whose bytes are the message: no encoding, no copy.
//!
//! Processes that agree on a [`PlainType`] may access the same memory. The traits of this module state the
//! conditions that make this sound. `#[derive(rnet::Plain)]` checks them at compile time; do not implement
//! the traits by hand.

use crate::types::{FieldType, PlainType, Prim};

// Plain types keep their memory representation on the wire, and `PlainType::format` relies on it.
#[cfg(not(target_endian = "little"))]
compile_error!("robot-net's plain types are little endian, and so must be the machine");

/// A struct whose bytes are its message.
///
/// Derive it with `#[derive(rnet::Plain)]` on a `#[repr(C)]` struct; the derive checks all conditions of this
/// trait.
///
/// # Safety
/// The implementer guarantees the following. Readers and writers of shared memory rely on it.
/// - every bit pattern is a valid value (so no `bool`, `char`, enum, reference or pointer);
/// - the type has no padding, so that all of its bytes are initialised;
/// - its alignment is at most [`MAX_PLAIN_ALIGN_BYTES`](crate::limits::MAX_PLAIN_ALIGN_BYTES);
/// - it has no interior mutability;
/// - [`plain_type`](Self::plain_type) describes this exact layout, with `size` equal to `size_of::<Self>()`.
#[allow(unsafe_code, reason = "a promise about memory layout can only be made by an unsafe trait")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a plain type",
    label = "its bytes cannot be sent as they are",
    note = "put `#[derive(Clone, Copy, rnet::Plain)]` and `#[repr(C)]` on the struct"
)]
pub unsafe trait Plain: Copy + Send + Sync + 'static {
    /// The layout, for the comparison of publisher and subscriber and for tools.
    fn plain_type() -> PlainType;
}

/// A struct at the start of a message, followed by data that the struct describes.
///
/// Derive it with `#[derive(rnet::Plain)]` and `#[plain(tail)]`. It is not a [`Plain`] type, because it is
/// not a complete message without its data.
///
/// # Safety
/// The conditions of [`Plain`] hold for the header: every bit pattern is valid, no padding, small alignment,
/// no interior mutability, and [`header_type`](Self::header_type) describes this exact layout, with `tail`
/// true.
#[allow(unsafe_code, reason = "a promise about memory layout can only be made by an unsafe trait")]
pub unsafe trait PlainHeader: Copy + Send + Sync + 'static {
    /// The layout, for the comparison of publisher and subscriber and for tools.
    fn header_type() -> PlainType;
}

/// A field of a plain struct: fixed-size integers and floats, arrays of fields, and plain structs.
///
/// # Safety
/// The conditions of [`Plain`] hold for the field: every bit pattern is valid, no padding, small alignment,
/// no interior mutability, and [`field_type`](Self::field_type) has the size of `Self`.
#[allow(unsafe_code, reason = "a promise about memory layout can only be made by an unsafe trait")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a plain type",
    label = "not every bit pattern of this type is valid, or its layout is not fixed",
    note = "fields may be u8 to u64, i8 to i64, f32, f64, arrays of these, and structs that derive `Plain`",
    note = "use u8 for bool, u32 for char, u64 for usize; a nested struct needs `#[derive(Clone, Copy, rnet::Plain)]`"
)]
pub unsafe trait PlainField: Copy + Send + Sync + 'static {
    /// The field's type, for comparison and tools.
    fn field_type() -> FieldType;
}

macro_rules! plain_numbers {
    ($($type:ty => $prim:ident),* $(,)?) => {$(
        // SAFETY: for a fixed-size number every bit pattern is a valid value, there is no padding, the
        // alignment is at most 8, and `Prim::size` is its size (tested below).
        #[allow(unsafe_code, reason = "see the SAFETY line")]
        unsafe impl PlainField for $type {
            fn field_type() -> FieldType {
                FieldType::Prim(Prim::$prim)
            }
        }
    )*};
}

plain_numbers!(
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    f32 => F32, f64 => F64,
);

// SAFETY: an array is its elements without gaps, so the conditions of `T` hold for the array; N fits in the
// description.
#[allow(unsafe_code, reason = "see the SAFETY line")]
unsafe impl<T: PlainField, const N: usize> PlainField for [T; N] {
    fn field_type() -> FieldType {
        const {
            assert!(
                N > 0 && N <= u32::MAX as usize,
                "an array in a plain type has 1 to 2^32 - 1 elements"
            )
        };
        FieldType::Array { of: Box::new(T::field_type()), len: N as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes_agree<T: PlainField>() {
        assert_eq!(T::field_type().size(), size_of::<T>());
        assert!(align_of::<T>() <= crate::limits::MAX_PLAIN_ALIGN_BYTES);
    }

    #[test]
    fn described_sizes_are_real_sizes() {
        sizes_agree::<u8>();
        sizes_agree::<u16>();
        sizes_agree::<u32>();
        sizes_agree::<u64>();
        sizes_agree::<i8>();
        sizes_agree::<i16>();
        sizes_agree::<i32>();
        sizes_agree::<i64>();
        sizes_agree::<f32>();
        sizes_agree::<f64>();
        sizes_agree::<[f32; 3]>();
        sizes_agree::<[[u16; 5]; 7]>();
    }
}
