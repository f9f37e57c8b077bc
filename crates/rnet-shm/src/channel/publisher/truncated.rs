//! What a publisher does when its own file, its chunks, or its readers' pages are truncated.

use std::io;
use std::path::Path;

use rnet_core::Error;

use super::Writer;
use crate::os::files::io_error;
use crate::os::sigbus;

/// The error for a truncated file of our own: writes to it reach no reader.
#[cold]
pub(super) fn truncated(path: &Path) -> Error {
    let doing = "a file of this publisher was truncated, so the publisher must be reopened; cannot send \
                 through";
    io_error(doing, path, io::ErrorKind::UnexpectedEof)
}

impl Writer {
    /// Drops what was truncated; fails if that is the log. One load, unless a file was truncated.
    ///
    /// Called when a message waits for capacity or memory, and once every
    /// [`RATE_WINDOW_MESSAGES`](crate::os::barrier::RATE_WINDOW_MESSAGES) messages: a writer only writes to
    /// its log, and writes to removed pages are harmless, but reach no reader.
    #[inline]
    pub(super) fn check_truncated(&mut self) -> Result<(), Error> {
        if sigbus::truncated_so_far() == self.seen_truncated && self.inline_below != 0 {
            return Ok(());
        }
        self.find_truncated()
    }

    #[cold]
    fn find_truncated(&mut self) -> Result<(), Error> {
        self.seen_truncated = sigbus::truncated_so_far();
        self.reader_table.evict_truncated();
        self.pool.drop_truncated();
        if self.map.is_truncated() {
            // From now on every message, however short, takes this path.
            self.inline_below = 0;
            return Err(truncated(&self.path));
        }
        Ok(())
    }
}
