//! What a publisher does when files are truncated under it: its own, its chunks, its readers' pages.

use std::io;
use std::path::Path;

use rnet_core::Error;

use super::Writer;
use crate::os::files::io_error;
use crate::os::sigbus;

/// A file of our own was cut off: nobody sees what is written there.
#[cold]
pub(super) fn truncated(path: &Path) -> Error {
    let doing = "a file of this publisher was truncated, so the publisher must be reopened; cannot send \
                 through";
    io_error(doing, path, io::ErrorKind::UnexpectedEof)
}

impl Writer {
    /// Lets go of what was truncated; fails if that is the log. A load, unless some file was.
    ///
    /// Asked where a message waits for room or memory and once in
    /// [`RATE_WINDOW_MESSAGES`](crate::os::barrier::RATE_WINDOW_MESSAGES) messages: a writer only writes to its log, and what it wrote to
    /// pages that are gone does no harm but reach nobody.
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
            // From now on every message, however short, comes this way.
            self.inline_below = 0;
            return Err(truncated(&self.path));
        }
        Ok(())
    }
}
