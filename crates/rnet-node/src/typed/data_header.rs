//! What the headers of large messages have in common: where the data is, and reading one that may be hostile.

use std::ops::Range;

use rnet_core::{Error, PlainHeader, Result};
use rnet_shm::plain;

/// Data starts at a multiple of this, in bytes.
const DATA_MULTIPLE: u64 = 64;

/// Where the data of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLayout {
    /// From the start of the message to that of its data, in bytes.
    pub data_offset: u64,
    /// Bytes of the data.
    pub data_len: u64,
}

/// A header that data follows: `rnet::msgs::Image`, `PointCloud`, `Tensor`.
///
/// Values that were made by a constructor, or read by [`read`], are consistent in themselves: no view reaches beyond the data.
pub trait DataHeader: PlainHeader {
    /// The header with its data, as it is looked at.
    type View<'a>;

    /// Bytes of the header that every version of the type has.
    const FIRST_LEN_BYTES: usize;

    /// Where the data is.
    fn layout(&self) -> DataLayout;

    /// Sets the time that the message tells, ns since 1970 UTC; 0 for not known.
    fn set_timestamp_ns(&mut self, timestamp_ns: i64);

    /// Checks a received header, whose [`DataLayout`] has been checked.
    ///
    /// # Errors
    /// In words, the field and the value that cannot be.
    fn check(&self) -> std::result::Result<(), String>;

    /// The header with `data`, which has the length that it says.
    fn with_data<'a>(&'a self, data: &'a [u8]) -> Self::View<'a>;

    /// Which bytes of the message are its data.
    fn data_range(&self) -> Range<usize> {
        let DataLayout { data_offset, data_len } = self.layout();
        data_offset as usize..(data_offset + data_len) as usize
    }
}

/// The header of a message, copied and checked, and its data.
///
/// For messages from elsewhere than a subscriber, a recording for example. A longer header, of a later version, is read as far as it
/// is known here; what a shorter one lacks is zero.
///
/// # Errors
/// `BadValue` names the field and the value that cannot be. No message makes it panic.
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

/// The header of a message, copied, and checked in the order of the page.
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
    // Fields of a version that the sender did not know: what stands there is its data.
    let known = size_of::<T>().min(data_offset as usize);
    plain::bytes_of_header_mut(&mut header)[known..].fill(0);
    header.check()?;
    Ok(header)
}

/// The error of a header that cannot be.
pub fn bad_header<T: PlainHeader>(why: String) -> Error {
    Error::bad_value(T::header_type().name, why)
}
