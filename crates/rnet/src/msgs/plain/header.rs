//! What the headers of these messages have in common beside [`DataHeader`]: texts, rows, and their common fields.

use rnet_core::limits::MAX_MESSAGE_LEN_BYTES;
use rnet_core::{PlainHeader, Result};

pub use rnet_node::typed::data_header::{DataHeader, DataLayout, read};
pub(super) use rnet_node::typed::data_header::{bad_header, header_of};

/// Bytes of data behind a header of `T`, if a message may be so long.
pub(super) fn data_len_of<T: PlainHeader>(len: u128) -> Result<u64> {
    let most = (MAX_MESSAGE_LEN_BYTES - size_of::<T>()) as u64;
    u64::try_from(len).ok().filter(|len| *len <= most).ok_or_else(|| {
        bad_header::<T>(format!(
            "{len} bytes of data; a message has at most {most} after its header"
        ))
    })
}

/// A text field: its bytes up to the first zero. Empty for what [`check_text`] refuses.
pub(super) fn text(field: &[u8]) -> &str {
    let len = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    std::str::from_utf8(&field[..len]).unwrap_or_default()
}

pub(super) fn check_text(name: &str, field: &[u8]) -> std::result::Result<(), String> {
    let len = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    if field[len..].iter().any(|byte| *byte != 0) {
        return Err(format!("{name} continues after a zero byte"));
    }
    match std::str::from_utf8(&field[..len]) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{name} is not UTF-8 from byte {} on", error.valid_up_to())),
    }
}

pub(super) fn set_text<T: PlainHeader, const N: usize>(name: &str, text: &str) -> Result<[u8; N]> {
    let mut field = [0; N];
    if text.contains('\0') {
        return Err(bad_header::<T>(format!("{name} {text:?} contains a zero byte")));
    }
    let place = field.get_mut(..text.len()).ok_or_else(|| {
        bad_header::<T>(format!("{name} {text:?} has {} bytes; at most {N} fit", text.len()))
    })?;
    place.copy_from_slice(text.as_bytes());
    Ok(field)
}

/// Checks that rows of `row` bytes do not overlap, nor reach beyond the data; `what` is in them.
pub(super) fn check_rows(
    (height, row, row_stride): (u32, u64, u32),
    data_len: u64,
    what: &str,
) -> std::result::Result<(), String> {
    if row > u64::from(row_stride) {
        return Err(format!(
            "row_stride is {row_stride}, but the {what} of a row have {row} bytes"
        ));
    }
    let between = u128::from(height.saturating_sub(1)) * u128::from(row_stride);
    let reach = if height == 0 { 0 } else { between + u128::from(row) };
    if reach > u128::from(data_len) {
        return Err(format!(
            "{height} rows end {reach} bytes into the data, but data_len is {data_len}"
        ));
    }
    Ok(())
}

/// Row `y` of so many, each of `row` bytes.
pub(super) fn row_of(
    data: &[u8],
    y: u32,
    (height, row, row_stride): (u32, u64, u32),
) -> Option<&[u8]> {
    let start = u64::from(y) * u64::from(row_stride);
    data.get(start as usize..(start + row) as usize).filter(|_| y < height)
}

/// What is written the same for each header, because its first fields are the same.
macro_rules! common_header {
    ($type:ident, $view:ident, $first_len_bytes:literal) => {
        impl $type {
            /// When the thing was so, ns since 1970 UTC; 0 for not known.
            pub fn timestamp_ns(&self) -> i64 {
                self.timestamp_ns
            }

            /// With this time, ns since 1970 UTC.
            #[must_use]
            pub fn with_timestamp_ns(mut self, timestamp_ns: i64) -> Self {
                self.timestamp_ns = timestamp_ns;
                self
            }

            /// The frame (REP-105) in which it is given.
            pub fn frame_id(&self) -> &str {
                header::text(&self.frame_id)
            }

            /// With this frame.
            ///
            /// # Errors
            /// `BadValue`: more than 64 bytes, or a zero inside.
            pub fn with_frame_id(mut self, frame_id: &str) -> rnet_core::Result<Self> {
                self.frame_id = header::set_text::<Self, 64>("frame_id", frame_id)?;
                Ok(self)
            }

            /// Bytes of the data.
            pub fn data_len_bytes(&self) -> usize {
                self.data_len as usize
            }

            /// The header as it stands at the start of a message.
            pub fn header_bytes(&self) -> &[u8] {
                rnet_shm::plain::bytes_of_header(self)
            }
        }

        impl header::DataHeader for $type {
            type View<'a> = $view<'a>;
            const FIRST_LEN_BYTES: usize = $first_len_bytes;

            fn layout(&self) -> header::DataLayout {
                header::DataLayout { data_offset: self.data_offset, data_len: self.data_len }
            }
            fn set_timestamp_ns(&mut self, timestamp_ns: i64) {
                self.timestamp_ns = timestamp_ns;
            }
            fn check(&self) -> Result<(), String> {
                header::check_text("frame_id", &self.frame_id)?;
                self.check_own()
            }
            fn with_data<'a>(&'a self, data: &'a [u8]) -> $view<'a> {
                $view { header: self, data }
            }
        }

        impl<'a> $view<'a> {
            /// The header.
            pub fn header(&self) -> &'a $type {
                self.header
            }

            /// All of the data, as it was sent.
            pub fn data(&self) -> &'a [u8] {
                self.data
            }
        }
    };
}
pub(super) use common_header;
