//! What observers tell of themselves: a text beside the file of each that has something to say.
//!
//! A recorder takes no part in its domain, so it cannot publish how it is going. Its text is made whole and moved into
//! place, so whoever reads sees an old one or a new one. It comes from another process and is to be trusted like one.

use std::io::Read;
use std::path::Path;

use rnet_core::Result;

use super::peers::is_held;
use super::{ObserverFile, STATUS_SUFFIX, listed};
use crate::os::files::{self, io_error};
use crate::os::temp_file::TempFile;

/// A longer text is not written, and not read.
pub const MAX_STATUS_LEN_BYTES: usize = 64 << 10;

impl ObserverFile {
    /// Tells those who look what is so, in place of what was told before. It goes with the observer.
    ///
    /// # Errors
    /// `Io` if there is no room for it, or it is too long.
    pub fn publish_status(&self, text: &str) -> Result<()> {
        let path = &self.sibling_path(STATUS_SUFFIX);
        let failed = |errno| io_error("cannot write", path, errno);
        if text.len() > MAX_STATUS_LEN_BYTES {
            return Err(failed(rustix::io::Errno::FBIG));
        }
        let folder = path.parent().unwrap_or(path);
        let (file, temp_file) = TempFile::create(folder, self.mode).map_err(failed)?;
        files::write_all_at(&file, text.as_bytes(), 0).map_err(failed)?;
        temp_file.persist(path).map_err(failed)
    }
}

/// What the living observers of the domain in this directory tell, by their ids. What cannot be read is left out.
pub fn read_statuses(domain: &Path) -> Vec<(u64, String)> {
    let folder = domain.join(super::FOLDER);
    let ids = listed(&folder).into_iter();
    ids.filter_map(|id| {
        let path = folder.join(format!("{id:016x}"));
        let observer = files::open_read(&path).ok()?;
        let status = files::open_read(&path.with_extension(&STATUS_SUFFIX[1..])).ok()?;
        let mut text = String::new();
        let most = MAX_STATUS_LEN_BYTES as u64 + 1;
        std::fs::File::from(status).take(most).read_to_string(&mut text).ok()?;
        (text.len() <= MAX_STATUS_LEN_BYTES && is_held(&observer)).then_some((id, text))
    })
    .collect()
}
