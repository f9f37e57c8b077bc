//! Files that are written whole or not at all.

use crate::{Error, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes a file by way of another that takes its name when it is complete: a run that is ended leaves what
/// was written before. An existing file that is not regular, such as a pipe or /dev/null, is written to
/// directly.
///
/// # Errors
/// With the path, when it cannot be written; those of `write`.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let named = |e: std::io::Error| Error::new(format!("{}: {e}", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(named)?;
    }
    let special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let partial = path.with_extension("partial");
    let target = if special { path } else { &partial };
    let mut out = BufWriter::new(File::create(target).map_err(named)?);
    write(&mut out)?;
    out.flush().map_err(named)?;
    if special { Ok(()) } else { std::fs::rename(&partial, path).map_err(named) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_a_device_is_not() {
        let dir = std::env::temp_dir().join(format!("bench-file-{}", std::process::id()));
        let path = dir.join("new/x.json");
        for text in ["old", "new"] {
            write_whole(&path, |out| Ok(out.write_all(text.as_bytes())?)).expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("read"), text);
        }
        let failed = write_whole(&path, |_| Err(Error::new("no")));
        assert!(failed.is_err());
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "new");

        // Through a link of our own: were the device's place taken, then only the link's.
        let link = dir.join("null");
        std::os::unix::fs::symlink("/dev/null", &link).expect("linked");
        write_whole(&link, |out| Ok(out.write_all(b"gone")?)).expect("written");
        assert!(std::fs::symlink_metadata(&link).expect("there").is_symlink());
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
