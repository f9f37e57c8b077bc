//! Common parts of the headers of large messages: the position of the data, and reading an untrusted header.

use std::ops::Range;

use rnet_core::{Error, PlainHeader, Result};
use rnet_shm::plain;

/// Data starts at a multiple of this, in bytes.
const DATA_MULTIPLE: u64 = 64;

/// Position of a message's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLayout {
    /// From the start of the message to its data, in bytes.
    pub data_offset: u64,
    /// Length of the data, in bytes.
    pub data_len: u64,
}

/// A header that data follows: `rnet::msgs::Image`, `PointCloud`, `Tensor`.
///
/// Values made by a constructor, or read by [`read`], are consistent: no view exceeds the data.
pub trait DataHeader: PlainHeader {
    /// The view of the header with its data.
    type View<'a>;

    /// Bytes of the header that every version of the type has.
    const FIRST_LEN_BYTES: usize;

    /// The position of the data.
    fn layout(&self) -> DataLayout;

    /// Sets the timestamp of the message, in ns since 1970 UTC; 0 if unknown.
    fn set_timestamp_ns(&mut self, timestamp_ns: i64);

    /// Checks a received header, whose [`DataLayout`] has been checked.
    ///
    /// # Errors
    /// The invalid field and its value, as text.
    fn check(&self) -> std::result::Result<(), String>;

    /// The view of the header with `data`, whose length must match the header.
    fn with_data<'a>(&'a self, data: &'a [u8]) -> Self::View<'a>;

    /// The range of the message that is its data.
    fn data_range(&self) -> Range<usize> {
        let DataLayout { data_offset, data_len } = self.layout();
        data_offset as usize..(data_offset + data_len) as usize
    }
}

/// Returns a checked copy of a message's header, and its data.
///
/// For messages that do not come from a subscriber, for example from a recording. Of a longer header, of a
/// later version, only the known fields are read; the missing fields of a shorter one are zero.
///
/// # Errors
/// `BadValue` names the invalid field and its value. No message makes it panic.
///
/// ```
/// use rnet::msgs::plain::{Image, DataHeader, read};
/// let image = Image::new(4, 2, "mono8")?.with_frame_id("camera")?;
/// let mut message = image.header_bytes().to_vec();
/// message.extend([7; 8]);
/// let (header, data) = read::<Image>(&message)?;
/// assert_eq!(header.with_data(data).row(1), Some(&[7; 4][..]));
/// message.pop();
/// assert!(read::<Image>(&message).unwrap_err().to_string().contains("data_len"));
/// # Ok::<(), rnet::Error>(())
/// ```
pub fn read<T: DataHeader>(message: &[u8]) -> Result<(T, &[u8])> {
    let name = || T::header_type().name;
    let header: T = header_of(message).map_err(|why| Error::bad_value(name(), why))?;
    Ok((header, &message[header.data_range()]))
}

/// A copy of a message's header, checked in the order of the page.
pub fn header_of<T: DataHeader>(message: &[u8]) -> std::result::Result<T, String> {
    let len = message.len();
    if len < T::FIRST_LEN_BYTES {
        return Err(format!("{len} bytes, but the header has {}", T::FIRST_LEN_BYTES));
    }
    let mut header = plain::zeroed_header::<T>();
    let known = len.min(size_of::<T>());
    plain::bytes_of_header_mut(&mut header)[..known].copy_from_slice(&message[..known]);
    // Of the copy: the sender may write to the message at any time.
    let DataLayout { data_offset, data_len } = header.layout();
    if !data_offset.is_multiple_of(DATA_MULTIPLE) || data_offset < T::FIRST_LEN_BYTES as u64 {
        let first = T::FIRST_LEN_BYTES;
        return Err(format!(
            "data_offset is {data_offset}; it must be a multiple of {DATA_MULTIPLE}, at least {first}"
        ));
    }
    if data_offset.checked_add(data_len) != Some(len as u64) {
        return Err(format!(
            "data_offset {data_offset} and data_len {data_len} do not add up to the {len} bytes of the message"
        ));
    }
    // Fields of a version that the sender did not know: their place holds its data.
    let known = size_of::<T>().min(data_offset as usize);
    plain::bytes_of_header_mut(&mut header)[known..].fill(0);
    header.check()?;
    Ok(header)
}

/// The error of an invalid header.
pub fn bad_header<T: PlainHeader>(why: String) -> Error {
    Error::bad_value(T::header_type().name, why)
}
