//! The trait of a key-value store under comparison.

use crate::spec::Call;
use crate::{About, Broker, Error, Net, Result};
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
    /// If it cannot run here; the text names the missing part and how to install it.
    fn version(&self) -> Result<String>;

    /// Whether it has such a call; with `durable`, one that returns when a crash can no longer undo it.
    ///
    /// # Errors
    /// Why not, for the report.
    fn supports(&self, call: Call, durable: bool) -> Result<()> {
        let common = matches!(call, Call::Set | Call::Get | Call::Rest);
        if common && !durable { Ok(()) } else { Err(Error::new("it has no such call")) }
    }

    /// The server it needs, keeping its files in `dir`. With `disk` each value is to be on disk, in
    /// that folder, before its writer is answered.
    fn broker(&self, dir: &Path, disk: Option<&Path>, port: u16) -> Option<Broker>;

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

    /// Adds one to the whole number at `key` (absent is 0) in one call.
    ///
    /// # Errors
    /// The library's own.
    fn add_one(&mut self, _key: &str) -> Result<()> {
        Err(Error::new("it has no such call"))
    }

    /// Adds one as a user of compare-and-set does: reads the number, writes the next on condition that no
    /// other client has written in between, and retries otherwise. Returns how often it began.
    ///
    /// # Errors
    /// The library's own; a conflict is none.
    fn compare_and_add_one(&mut self, _key: &str) -> Result<u64> {
        Err(Error::new("it has no such call"))
    }

    /// The whole number at `key`; 0 where it is absent.
    ///
    /// # Errors
    /// The library's own, or that the value is not a number.
    fn number(&mut self, _key: &str) -> Result<u64> {
        Err(Error::new("it has no such call"))
    }

    /// Waits until all requests in flight are answered. Answers to gets are not shown.
    ///
    /// # Errors
    /// The library's own.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
