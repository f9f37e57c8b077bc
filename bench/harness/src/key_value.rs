//! The trait of a key-value store under comparison.

use crate::{About, Broker, Net, Result};
use std::path::Path;

/// One store, in one configuration.
pub trait KeyValue: Sync {
    /// The name on the command line and in raw data.
    fn id(&self) -> &'static str;

    /// How the report describes it.
    fn about(&self) -> About;

    /// The version in use.
    ///
    /// # Errors
    /// When it cannot run here; the text says what is missing and how to get it.
    fn version(&self) -> Result<String>;

    /// The server it needs.
    fn broker(&self, dir: &Path, port: u16) -> Option<Broker>;

    /// Joins as one client.
    ///
    /// # Errors
    /// The library's own.
    fn open(&self, net: &Net) -> Result<Box<dyn KeyValueClient>>;
}

/// A client of a store.
pub trait KeyValueClient: Send {
    /// How many requests are in flight at a time. With 1 each call returns when it is answered;
    /// with more it returns when another may be sent, and answers come in order.
    fn in_flight(&self) -> usize {
        1
    }

    /// Sets `key`.
    ///
    /// # Errors
    /// The library's own.
    fn set(&mut self, key: &str, value: &[u8]) -> Result<()>;

    /// Gets `key` and shows its value (`None` when it is not there) to `seen`. With many in flight:
    /// asks again, and shows the oldest answer that is due; may show none until as many are in flight.
    ///
    /// # Errors
    /// The library's own.
    fn get(&mut self, key: &str, seen: &mut dyn FnMut(Option<&[u8]>)) -> Result<()>;

    /// Waits until all requests in flight are answered. Answers to gets are not shown.
    ///
    /// # Errors
    /// The library's own.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
