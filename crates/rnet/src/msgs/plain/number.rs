//! Numbers as elements of images, points and tensors.

use rnet_core::{Error, PlainField, Result};

/// The type of a number in the data. Its value is that of `foxglove.PackedElementField.NumericType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum NumberType {
    /// Unsigned, 8 bits.
    U8 = 1,
    /// Signed, 8 bits.
    I8 = 2,
    /// Unsigned, 16 bits.
    U16 = 3,
    /// Signed, 16 bits.
    I16 = 4,
    /// Unsigned, 32 bits.
    U32 = 5,
    /// Signed, 32 bits.
    I32 = 6,
    /// IEEE 754 single.
    F32 = 7,
    /// IEEE 754 double.
    F64 = 8,
}

impl NumberType {
    /// All of them, by value.
    pub const ALL: [Self; 8] =
        [Self::U8, Self::I8, Self::U16, Self::I16, Self::U32, Self::I32, Self::F32, Self::F64];

    /// The type of this value, if there is one.
    pub fn from_value(value: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| *ty as u32 == value)
    }

    /// Size, in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A number of Rust's that can be an element: `u8` to `u64`, `i8` to `i64`, `f32`, `f64`.
pub trait Number: PlainField + PartialEq + std::fmt::Debug + sealed::Sealed {
    /// Its type in images and points, which have no 64-bit integers.
    const TYPE: Option<NumberType>;
    /// Its kind as in DLPack: 0 signed, 1 unsigned, 2 float.
    const DLPACK_CODE: u8;
    /// The number in its first bytes, little endian. Zero if there are too few.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($type:ty => $number:expr, $code:literal;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Number for $type {
            const TYPE: Option<NumberType> = $number;
            const DLPACK_CODE: u8 = $code;
            fn read(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or_else(Self::default, |bytes| Self::from_le_bytes(*bytes))
            }
        }
    )*};
}

numbers! {
    u8 => Some(NumberType::U8), 1;
    i8 => Some(NumberType::I8), 0;
    u16 => Some(NumberType::U16), 1;
    i16 => Some(NumberType::I16), 0;
    u32 => Some(NumberType::U32), 1;
    i32 => Some(NumberType::I32), 0;
    u64 => None, 1;
    i64 => None, 0;
    f32 => Some(NumberType::F32), 2;
    f64 => Some(NumberType::F64), 2;
}

/// Bytes as numbers, in place. A rest that is too short for one is left out.
///
/// # Errors
/// `BadValue` if the bytes do not start where such a number may.
pub(super) fn numbers<'a, T: Number>(what: &str, bytes: &'a [u8]) -> Result<&'a [T]> {
    rnet_shm::plain::fields_in(bytes).ok_or_else(|| {
        let why = format!("the data does not start at a multiple of {}", align_of::<T>());
        Error::bad_value(what, why)
    })
}
