//! Casts between plain values and bytes: the only place where `rnet-node` and `rnet` reinterpret memory.
//!
//! All functions are safe. They rely on the promises of the traits of [`rnet_core::plain`]: no padding, every
//! bit pattern is a value, no interior mutability.

use std::mem::MaybeUninit;

use rnet_core::{Plain, PlainField, PlainHeader};

/// The bytes of a message.
#[inline(always)]
pub fn bytes_of<T: Plain>(message: &T) -> &[u8] {
    // SAFETY: `Plain` promises that there is no padding.
    unsafe { bytes(std::slice::from_ref(message)) }
}

/// The bytes of a header.
#[inline(always)]
pub fn bytes_of_header<T: PlainHeader>(header: &T) -> &[u8] {
    // SAFETY: `PlainHeader` promises that there is no padding.
    unsafe { bytes(std::slice::from_ref(header)) }
}

/// The bytes of numbers.
#[inline(always)]
pub fn bytes_of_fields<T: PlainField>(fields: &[T]) -> &[u8] {
    // SAFETY: `PlainField` promises that there is no padding.
    unsafe { bytes(fields) }
}

/// The bytes of a message, for writing.
#[inline(always)]
pub fn bytes_of_mut<T: Plain>(message: &mut T) -> &mut [u8] {
    // SAFETY: `Plain` promises that there is no padding, and that every bit pattern is a value.
    unsafe { bytes_mut(message) }
}

/// The bytes of a header, for writing.
#[inline(always)]
pub fn bytes_of_header_mut<T: PlainHeader>(header: &mut T) -> &mut [u8] {
    // SAFETY: `PlainHeader` promises that there is no padding, and that every bit pattern is a value.
    unsafe { bytes_mut(header) }
}

/// The message at the start of `bytes`, in place. `None` if there are too few bytes.
///
/// # Panics
/// If the bytes do not start at a multiple of the alignment of `T`.
#[inline(always)]
pub fn message_in<T: Plain>(bytes: &[u8]) -> Option<&T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    let at = bytes.as_ptr().cast::<T>();
    assert!(at.is_aligned(), "received bytes are 8-byte aligned");
    // SAFETY: there are enough bytes, aligned, and `Plain` promises that every bit pattern is a value.
    Some(unsafe { &*at })
}

/// As many fields as `bytes` has, in place; bytes after the last whole field are left out. `None` if the
/// bytes do not start at a multiple of the alignment of `T`.
#[inline]
pub fn fields_in<T: PlainField>(bytes: &[u8]) -> Option<&[T]> {
    let at = bytes.as_ptr().cast::<T>();
    if !at.is_aligned() {
        return None;
    }
    let count = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
    // SAFETY: aligned as checked, so many fit into `bytes`, and `PlainField` promises that every bit pattern
    // is a value.
    Some(unsafe { std::slice::from_raw_parts(at, count) })
}

/// A message of zeros.
pub fn zeroed_box<T: Plain>() -> Box<T> {
    // SAFETY: `Plain` promises that every bit pattern is a value, zeros among them.
    unsafe { Box::new(MaybeUninit::zeroed()).assume_init() }
}

/// A header of zeros.
pub fn zeroed_header<T: PlainHeader>() -> T {
    // SAFETY: `PlainHeader` promises that every bit pattern is a value, zeros among them.
    unsafe { std::mem::zeroed() }
}

/// # Safety
/// `T` has no padding and no interior mutability.
#[inline(always)]
unsafe fn bytes<T>(values: &[T]) -> &[u8] {
    // SAFETY: the caller promises that all bytes are initialised; they live as long as the borrow.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
}

/// # Safety
/// `T` has no padding, and every bit pattern is a value of it.
#[inline(always)]
unsafe fn bytes_mut<T>(value: &mut T) -> &mut [u8] {
    let at = (&raw mut *value).cast::<u8>();
    // SAFETY: as the caller promises; the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(at, size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_the_whole_ones_of_aligned_bytes() {
        let words = [1u64, 2, 3];
        let bytes = bytes_of_fields(&words);
        assert_eq!(bytes.len(), 24);
        assert_eq!(fields_in::<u64>(&bytes[..20]), Some(&words[..2]));
        assert_eq!(fields_in::<u64>(&bytes[8..]), Some(&words[1..]));
        assert_eq!(fields_in::<u64>(&bytes[4..]), None);
    }
}
