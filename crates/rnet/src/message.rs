//! What can be sent: raw bytes, or a plain type.

use rnet_core::{Plain, TypeDesc};

mod sealed {
    pub trait Sealed {}
    impl Sealed for [u8] {}
    impl<T: rnet_core::Plain> Sealed for T {}
}

/// A message that needs no encoding: its memory is what is sent.
///
/// Implemented for `[u8]` and for every [`Plain`] type.
pub trait Message: sealed::Sealed + Send + 'static {
    /// How the type is described to the other side.
    fn type_desc() -> TypeDesc;
    /// Length that every message of the type has, in bytes; `None` if it may vary.
    fn fixed_len() -> Option<usize>;
    /// The bytes to send.
    fn as_bytes(&self) -> &[u8];
    /// The message in received bytes, which are 8-byte aligned; `None` if the length is wrong.
    fn from_bytes(bytes: &[u8]) -> Option<&Self>;
}

impl Message for [u8] {
    fn type_desc() -> TypeDesc {
        TypeDesc::Raw
    }
    fn fixed_len() -> Option<usize> {
        None
    }
    fn as_bytes(&self) -> &[u8] {
        self
    }
    fn from_bytes(bytes: &[u8]) -> Option<&Self> {
        Some(bytes)
    }
}

impl<T: Plain> Message for T {
    fn type_desc() -> TypeDesc {
        TypeDesc::Plain(T::plain_type())
    }
    fn fixed_len() -> Option<usize> {
        Some(size_of::<T>())
    }
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: `Plain` promises that the type has no padding, so all its bytes are initialised.
        unsafe { std::slice::from_raw_parts((&raw const *self).cast::<u8>(), size_of::<T>()) }
    }
    fn from_bytes(bytes: &[u8]) -> Option<&Self> {
        let at = bytes.as_ptr().cast::<T>();
        let fits = bytes.len() == size_of::<T>() && at.is_aligned();
        // SAFETY: length and alignment are as checked, and `Plain` promises that every bit
        // pattern is a value.
        fits.then(|| unsafe { &*at })
    }
}
