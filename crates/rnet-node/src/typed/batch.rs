//! Receiving many messages in one call.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::options::deadline;
use rnet_core::{Error, Result};

use super::sample::Sample;
use super::subscriber::{Decode, Subscriber};
use crate::Message;

impl<T: Message + ?Sized> Subscriber<T> {
    /// Passes up to `max` messages to `each`, in the order of [`Subscriber::recv`]: waits for the first
    /// message as `recv` does, then takes the available ones. Returns the number of messages, at least one
    /// unless `max` is 0. `each` can end the batch with [`ControlFlow::Break`].
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("batch{}", std::process::id());
    /// # let node = rnet::Node::builder("logger").dir(dir).domain(&domain).open()?;
    /// # let mut sends = node.publisher::<[u8]>("/imu").open()?;
    /// let mut imu = node.subscriber::<[u8]>("/imu").open()?;
    /// # imu.wait_for_publishers(1)?;
    /// # sends.send(&[1; 22])?;
    /// # sends.send(&[2; 22])?;
    /// let mut log = Vec::new();
    /// let count = imu.recv_batch(1000, |sample| {
    ///     log.extend_from_slice(&sample);
    ///     std::ops::ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(log.len(), count * 22);
    /// # drop((sends, imu));
    /// # let path = node.domain_path().to_owned();
    /// # drop(node);
    /// # std::fs::remove_dir_all(path).unwrap();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for `recv`, if it is the first result: an error after messages is returned by the next call.
    pub fn recv_batch(
        &mut self,
        max: usize,
        each: impl FnMut(Sample<'_, T>) -> ControlFlow<()>,
    ) -> Result<usize> {
        self.take_batch(max, None, each)
    }

    /// As [`Subscriber::recv_batch`]; waits for the first message for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; as [`Subscriber::recv_batch`].
    pub fn recv_batch_timeout(
        &mut self,
        max: usize,
        timeout: Duration,
        each: impl FnMut(Sample<'_, T>) -> ControlFlow<()>,
    ) -> Result<usize> {
        self.take_batch(max, Some(timeout), each)
    }

    fn take_batch(
        &mut self,
        max: usize,
        timeout: Option<Duration>,
        mut each: impl FnMut(Sample<'_, T>) -> ControlFlow<()>,
    ) -> Result<usize> {
        let mut count = 0;
        while count < max {
            let at = match self.receiver.advance() {
                Ok(Some(at)) => at,
                Ok(None) if count > 0 => break,
                Ok(None) => match self.receiver.receive(deadline(timeout))? {
                    Some(at) => at,
                    None => return Err(self.timed_out("a message", timeout)),
                },
                // The error recurs by itself, unless a sample is dropped meanwhile.
                Err(Error::TooManyPins { .. }) if count > 0 => break,
                Err(error) if count > 0 => {
                    self.receiver.errors.push_front(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            let (receiver, buffer) = self.split();
            let broke = match receiver.sample(at, buffer) {
                Ok(sample) => each(sample).is_break(),
                Err(error) if count > 0 => {
                    receiver.errors.push_front(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            count += 1;
            if broke {
                break;
            }
        }
        Ok(count)
    }
}
