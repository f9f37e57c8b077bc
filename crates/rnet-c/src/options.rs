//! Option structs of any version: they begin with their size, and an absent option is zero.

use crate::error::{Outcome, invalid};

/// A struct of options. All of its fields are valid when zero, which means the default.
///
/// # Safety
/// `repr(C)`, its first field is `struct_size: usize`, and all bits zero is a valid value.
pub(crate) unsafe trait Options: Copy {
    const NAME: &'static str;

    /// The size of the struct in the header that the program was compiled with.
    ///
    /// # Errors
    /// `InvalidArgument` if it was not initialised.
    ///
    /// # Safety
    /// `given` refers to a size.
    unsafe fn size_of_given(given: *const Self) -> Outcome<usize> {
        // SAFETY: the size is the first field.
        let size = unsafe { given.cast::<usize>().read() };
        if (size_of::<usize>()..=4096).contains(&size) {
            return Ok(size);
        }
        let (name, init) = (Self::NAME, Self::NAME.to_uppercase());
        Err(invalid(format!("{name} has struct_size {size}: initialise it with {init}_INIT")))
    }

    /// Reads the options that a program passes, which may be compiled with an older or newer header.
    ///
    /// # Errors
    /// `InvalidArgument` if it was not initialised, or sets an option that this library does not know.
    ///
    /// # Safety
    /// `given` is null, which means the defaults, or refers to as many bytes as its `struct_size` says.
    unsafe fn read(given: *const Self) -> Outcome<Self> {
        // SAFETY: all bits zero is a valid value of the type.
        let mut options: Self = unsafe { std::mem::zeroed() };
        if given.is_null() {
            return Ok(options);
        }
        // SAFETY: not null, and as promised by the caller.
        let size = unsafe { Self::size_of_given(given) }?;
        let known = size.min(size_of::<Self>());
        // SAFETY: both are valid for `known` bytes, and do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut options).cast(), known);
        }
        // SAFETY: `given` has `size` bytes, as the caller promises.
        let unknown =
            unsafe { std::slice::from_raw_parts(given.cast::<u8>().add(known), size - known) };
        match unknown.iter().position(|byte| *byte != 0) {
            None => Ok(options),
            Some(at) => Err(invalid(format!(
                "{} sets an option at byte {} that this librnet ({}) does not know: install a newer librnet, or leave it unset",
                Self::NAME,
                known + at,
                rnet::VERSION
            ))),
        }
    }
}

/// Declares that structs are [`Options`].
macro_rules! options {
    ($($name:ident),*) => {$(
        // SAFETY: each is repr(C), begins with its size, and has fields of numbers, pointers and such structs.
        unsafe impl crate::options::Options for $name {
            const NAME: &'static str = stringify!($name);
        }
    )*};
}
pub(crate) use options;

/// A duration that an option gives in ns.
///
/// # Errors
/// `InvalidArgument` if it is negative.
pub(crate) fn duration(ns: i64, what: &str) -> Outcome<std::time::Duration> {
    u64::try_from(ns)
        .map(std::time::Duration::from_nanos)
        .map_err(|_| invalid(format!("{what} is negative: {ns} ns")))
}

/// As [`duration`]; `None` if it is 0, which means the default.
pub(crate) fn optional_duration(ns: i64, what: &str) -> Outcome<Option<std::time::Duration>> {
    Ok(Some(duration(ns, what)?).filter(|duration| !duration.is_zero()))
}

/// The builder with an option, if that is set.
pub(crate) fn set<B, T>(builder: B, value: Option<T>, apply: impl FnOnce(B, T) -> B) -> B {
    match value {
        Some(value) => apply(builder, value),
        None => builder,
    }
}

/// Writes a struct of results, as far as the caller's header knows it.
///
/// # Errors
/// `InvalidArgument` if it is null or not initialised.
///
/// # Safety
/// `out` is null or refers to as many bytes as its `struct_size` says.
pub(crate) unsafe fn fill<T: Options>(out: *mut T, result: T) -> Outcome {
    if out.is_null() {
        return Err(invalid(format!("the pointer to {} is null", T::NAME)));
    }
    // SAFETY: not null, and as promised by the caller.
    let size = unsafe { T::size_of_given(out) }?;
    let known = size.min(size_of::<T>()) - size_of::<usize>();
    let from = (&raw const result).cast::<u8>();
    // SAFETY: both are valid for the size and `known` bytes more, and do not overlap; the size stays the caller's.
    unsafe {
        let offset = size_of::<usize>();
        std::ptr::copy_nonoverlapping(from.add(offset), out.cast::<u8>().add(offset), known);
    }
    Ok(())
}
