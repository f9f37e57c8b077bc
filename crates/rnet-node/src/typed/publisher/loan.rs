//! Memory that a publisher lends to be filled in place.

use rnet_core::{Error, Meta, Result};
use rnet_shm::channel::publisher::{Writer, WriterLoan};

use super::{Publisher, wrong_len};
use crate::Message;

impl<T: Message + ?Sized> Publisher<T> {
    /// [`Publisher::loan`] for messages of any type.
    pub(crate) fn loan_bytes(&mut self, len: usize) -> Result<Loan<'_>> {
        self.check_len(len)?;
        let loan = self.writer.loan(len)?;
        let exact = self.fixed_len.map(|len| (len, self.topic.as_str()));
        Ok(Loan { writer: &mut self.writer, loan: Some(loan), exact })
    }
}

impl Publisher<[u8]> {
    /// Lends `len` bytes to be filled in place and then sent. A large message is built in the memory that its
    /// readers read, and is never copied.
    ///
    /// # Errors
    /// `MessageTooLarge`, `OutOfMemory`, and `Full` as for [`Publisher::send`].
    pub fn loan(&mut self, len: usize) -> Result<Loan<'_>> {
        self.loan_bytes(len)
    }

    /// As [`Publisher::loan`], but the loan does not borrow the publisher, so that several can be filled at a
    /// time. Return each with [`Publisher::send_loan`] or [`Publisher::drop_loan`]; a loan that is only
    /// dropped keeps its memory until the publisher is dropped.
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("loan{}", std::process::id());
    /// # let node = rnet::Node::builder("camera").dir(dir).domain(&domain).open()?;
    /// let mut images = node.publisher::<[u8]>("/image").open()?;
    /// let mut left = images.loan_owned(100_000)?;
    /// let mut right = images.loan_owned(100_000)?;
    /// images.loaned(&mut left).fill(1);
    /// images.loaned(&mut right).fill(2);
    /// images.send_loan(right).map_err(|(_, error)| error)?;
    /// images.drop_loan(left);
    /// # drop(images);
    /// # let path = node.domain_path().to_owned();
    /// # drop(node);
    /// # std::fs::remove_dir_all(path).unwrap();
    /// # Ok(()) }
    /// ```
    pub fn loan_owned(&mut self, len: usize) -> Result<OwnedLoan> {
        self.check_len(len)?;
        Ok(OwnedLoan { publisher: self.id, loan: self.writer.loan(len)? })
    }

    /// The bytes of a loan of this publisher; empty for a loan of another publisher.
    ///
    /// They do not move until the loan is returned.
    pub fn loaned<'a>(&'a mut self, loan: &'a mut OwnedLoan) -> &'a mut [u8] {
        if loan.publisher == self.id { self.writer.loan_bytes_mut(&mut loan.loan) } else { &mut [] }
    }

    /// Sends a loan. On error the loan is returned unchanged.
    pub fn send_loan(&mut self, loan: OwnedLoan) -> Result<(), (OwnedLoan, Error)> {
        self.send_whole_loan(loan, Writer::send_loan)
    }

    /// As [`Publisher::send_loan`], with metadata.
    pub fn send_loan_with(
        &mut self,
        loan: OwnedLoan,
        meta: Meta,
    ) -> Result<(), (OwnedLoan, Error)> {
        self.send_whole_loan(loan, |writer, loan| writer.send_loan_with(loan, &meta, None))
    }

    fn send_whole_loan(
        &mut self,
        loan: OwnedLoan,
        send: impl FnOnce(&mut Writer, WriterLoan) -> Result<(), (WriterLoan, Error)>,
    ) -> Result<(), (OwnedLoan, Error)> {
        match self.check_len(loan.loan.len()) {
            Ok(()) => self.send_loan_by(loan, send),
            Err(error) => Err((loan, error)),
        }
    }

    #[inline]
    pub(crate) fn send_loan_by(
        &mut self,
        loan: OwnedLoan,
        send: impl FnOnce(&mut Writer, WriterLoan) -> Result<(), (WriterLoan, Error)>,
    ) -> Result<(), (OwnedLoan, Error)> {
        if loan.publisher != self.id {
            let what = format!("loan on {}", self.topic);
            return Err((
                loan,
                Error::bad_value(
                    what,
                    "it belongs to another publisher: send it with that publisher",
                ),
            ));
        }
        let publisher = self.id;
        send(&mut self.writer, loan.loan)
            .map_err(|(loan, error)| (OwnedLoan { publisher, loan }, error))
    }

    /// Returns a loan without sending it.
    pub fn drop_loan(&mut self, loan: OwnedLoan) {
        if loan.publisher == self.id {
            self.writer.drop_loan(loan.loan);
        }
    }
}

/// Memory lent by [`Publisher::loan_owned`].
#[derive(Debug)]
#[must_use = "the memory stays on loan until its publisher sends or drops the loan"]
pub struct OwnedLoan {
    pub(crate) publisher: u64,
    pub(crate) loan: WriterLoan,
}

impl OwnedLoan {
    /// Sends only the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.loan.truncate(len);
    }
}

/// Memory lent by [`Publisher::loan`]. Dropping it without [`Loan::send`] sends nothing.
///
/// Until they are written, the bytes are those of an earlier message.
pub struct Loan<'a> {
    writer: &'a mut Writer,
    loan: Option<WriterLoan>,
    /// Length that the message must have, from its type, and the topic.
    exact: Option<(usize, &'a str)>,
}

impl<'a> Loan<'a> {
    /// Sends the message. On error the loan is returned unchanged.
    pub fn send(self) -> Result<(), (Loan<'a>, Error)> {
        self.send_by(Writer::send_loan)
    }

    /// As [`Loan::send`], with metadata.
    pub fn send_with(self, meta: Meta) -> Result<(), (Loan<'a>, Error)> {
        self.send_by(|writer, loan| writer.send_loan_with(loan, &meta, None))
    }

    #[inline]
    pub(crate) fn send_by(
        mut self,
        send: impl FnOnce(&mut Writer, WriterLoan) -> Result<(), (WriterLoan, Error)>,
    ) -> Result<(), (Loan<'a>, Error)> {
        if let Some((exact, topic)) = self.exact.filter(|(exact, _)| *exact != self.len()) {
            let error = wrong_len(topic, self.len(), exact);
            return Err((self, error));
        }
        let Some(loan) = self.loan.take() else { return Ok(()) };
        match send(self.writer, loan) {
            Ok(()) => Ok(()),
            Err((loan, error)) => {
                self.loan = Some(loan);
                Err((self, error))
            }
        }
    }

    /// Sends only the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        if let Some(loan) = &mut self.loan {
            loan.truncate(len);
        }
    }
}

impl std::ops::Deref for Loan<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.loan {
            Some(loan) => self.writer.loan_bytes(loan),
            None => &[],
        }
    }
}

impl std::ops::DerefMut for Loan<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.loan {
            Some(loan) => self.writer.loan_bytes_mut(loan),
            None => &mut [],
        }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if let Some(loan) = self.loan.take() {
            self.writer.drop_loan(loan);
        }
    }
}

impl std::fmt::Debug for Loan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Loan({} bytes)", self.loan.as_ref().map_or(0, WriterLoan::len))
    }
}
