//! Large plain messages on a topic: a publisher fills them in place, a subscriber reads them in place.

#![expect(clippy::result_large_err, reason = "a loan is returned by value, without allocating")]

use std::fmt;
use std::ops::{Deref, DerefMut};

use rnet_core::{Error, Meta, Result};

use rnet_shm::plain;

use super::data_header::{DataHeader, bad_header};
use super::publisher::{Loan, Publisher};
use super::sample::{OwnedSample, Sample};
use crate::Message;

impl<T: DataHeader + Message<DecodeBuffer = T>> Publisher<T> {
    /// Sends a header with its data. The data is copied once, to the memory that readers read.
    ///
    /// # Errors
    /// `BadValue` if `data` does not have the length in the header; otherwise as [`Publisher::send`].
    pub fn send_data(&mut self, header: &T, data: &[u8]) -> Result<()> {
        let layout = header.layout();
        if layout.data_len != data.len() as u64 {
            let (declared, len) = (layout.data_len, data.len());
            return Err(bad_header::<T>(format!(
                "{len} bytes of data, but the header declares {declared}"
            )));
        }
        let mut loan = self.loan_with(header)?;
        loan.copy_from_slice(data);
        loan.send().map_err(|(_, error)| error)
    }

    /// Lends the memory of a message with this header; its data is written in place and never copied.
    ///
    /// # Errors
    /// As [`Publisher::send`].
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("loanimage{}", std::process::id());
    /// # let node = rnet::Node::builder("camera").dir(dir).domain(&domain).open()?;
    /// use rnet::msgs::Image;
    /// let mut images = node.publisher::<Image>("/camera").open()?;
    /// let mut seen = node.subscriber::<Image>("/camera").open()?;
    /// images.wait_for_subscribers(1)?;
    /// let header = Image::new(640, 480, "mono8")?.with_frame_id("camera")?;
    /// let mut image = images.loan_with(&header)?;
    /// image[0] = 255;
    /// image.send().map_err(|(_, error)| error)?;
    /// let image = seen.recv()?;
    /// assert_eq!((image.width(), image.encoding()), (640, "mono8"));
    /// assert_eq!(image.view().pixels::<u8>()?.at(0, 0), Some(&[255][..]));
    /// # drop(image);
    /// # drop((images, seen));
    /// # let path = node.domain_path().to_owned();
    /// # drop(node);
    /// # std::fs::remove_dir_all(path).unwrap();
    /// # Ok(()) }
    /// ```
    pub fn loan_with(&mut self, header: &T) -> Result<DataLoan<'_, T>> {
        let loan = self.loan_bytes(header.data_range().end)?;
        Ok(DataLoan { loan, header: *header })
    }
}

/// Memory of a message lent by [`Publisher::loan_with`]: the bytes of its data. Dropping it without
/// [`DataLoan::send`] sends nothing.
///
/// Until it is written, the data is that of an earlier message.
pub struct DataLoan<'a, T: DataHeader> {
    loan: Loan<'a>,
    header: T,
}

impl<'a, T: DataHeader> DataLoan<'a, T> {
    /// The header that is sent.
    pub fn header(&self) -> &T {
        &self.header
    }

    /// Sets the timestamp of the message, in ns since 1970 UTC.
    pub fn set_timestamp_ns(&mut self, timestamp_ns: i64) {
        self.header.set_timestamp_ns(timestamp_ns);
    }

    /// Sends the message. On error the loan is returned unchanged.
    pub fn send(self) -> std::result::Result<(), (DataLoan<'a, T>, Error)> {
        self.send_by(Loan::send)
    }

    /// As [`DataLoan::send`], with metadata.
    pub fn send_with(self, meta: Meta) -> std::result::Result<(), (DataLoan<'a, T>, Error)> {
        self.send_by(|loan| loan.send_with(meta))
    }

    fn send_by(
        mut self,
        send: impl FnOnce(Loan<'a>) -> std::result::Result<(), (Loan<'a>, Error)>,
    ) -> std::result::Result<(), (DataLoan<'a, T>, Error)> {
        let bytes = plain::bytes_of_header(&self.header);
        // Bytes between this header and the data belong to a later version of the header: zero.
        let (head, _) = self.loan.split_at_mut(self.header.data_range().start);
        let (own, later) = head.split_at_mut(bytes.len());
        own.copy_from_slice(bytes);
        later.fill(0);
        let Self { loan, header } = self;
        send(loan).map_err(|(loan, error)| (Self { loan, header }, error))
    }
}

impl<T: DataHeader> Deref for DataLoan<'_, T> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.loan[self.header.data_range()]
    }
}

impl<T: DataHeader> DerefMut for DataLoan<'_, T> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let range = self.header.data_range();
        &mut self.loan[range]
    }
}

impl<T: DataHeader + fmt::Debug> fmt::Debug for DataLoan<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DataLoan").field(&self.header).finish()
    }
}

macro_rules! view {
    ($sample:ty) => {
        impl<T: DataHeader + Message<DecodeBuffer = T>> $sample {
            /// The data, in the publisher's memory.
            pub fn data(&self) -> &[u8] {
                self.bytes().get(self.data_range()).unwrap_or_default()
            }

            /// The checked header, with the data in the publisher's memory.
            pub fn view(&self) -> T::View<'_> {
                T::with_data(self, self.data())
            }
        }
    };
}
view!(Sample<'_, T>);
view!(OwnedSample<T>);
