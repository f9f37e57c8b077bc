//! Changing the last will of an open publisher.

use rnet_core::Result;

use super::Publisher;
use crate::Message;

impl<T: Message + ?Sized> Publisher<T> {
    /// Replaces the last will of [`crate::PublisherBuilder::last_will`] with this message. A process that is
    /// killed during the call leaves one or the other.
    ///
    /// # Errors
    /// `BadValue` if the publisher was opened without a last will, or the message has another type or more
    /// than 4096 bytes; `Closed` in a forked child. The last will is unchanged then.
    pub fn set_last_will(&mut self, message: &T) -> Result<()> {
        if let Some(bytes) = message.as_bytes() {
            self.check_len(bytes.len())?;
            return self.writer.set_will(Some(bytes));
        }
        self.check(message)?;
        message.encode(&mut self.encoded);
        let set = self.writer.set_will(Some(&self.encoded));
        self.clear_encoded();
        set
    }

    /// Removes the last will; [`Publisher::set_last_will`] may set another.
    ///
    /// # Errors
    /// `BadValue` if the publisher was opened without a last will; `Closed` in a forked child.
    pub fn clear_last_will(&mut self) -> Result<()> {
        self.writer.set_will(None)
    }
}
