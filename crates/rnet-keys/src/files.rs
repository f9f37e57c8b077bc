//! Private files: read with checks, written as a whole.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
pub use x509_parser::pem::Pem;

use crate::{KeyError, Result};

pub const PRIVATE_FILE: u32 = 0o600;
#[cfg(feature = "authority")]
pub const PRIVATE_DIR: u32 = 0o700;
pub const PUBLIC_FILE: u32 = 0o644;

/// Longest file that is read, in bytes: 20,000 revoked certificates need 1 MB.
pub const MAX_LEN_BYTES: u64 = 4 << 20;

/// Reads a file that only this user, or root, may open.
///
/// # Errors
/// `Mode` and `Owner`; `Io`; `File` if it is not a file, too long, or not text.
pub fn read_private(path: &Path) -> Result<String> {
    read(path, true)
}

/// Reads a file without secrets.
///
/// # Errors
/// As [`read_private`], but for mode and owner.
pub fn read_public(path: &Path) -> Result<String> {
    read(path, false)
}

fn read(path: &Path, private: bool) -> Result<String> {
    // Does not wait for the writer of a FIFO.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let open = File::options().read(true).custom_flags(flags).open(path);
    let file = open.map_err(KeyError::io("open", path))?;
    // Of the opened file: its path may name another one by now.
    let metadata = file.metadata().map_err(KeyError::io("read", path))?;
    if !metadata.is_file() {
        return Err(KeyError::file(path, "this is not a file"));
    }
    if private {
        check_private(path, &metadata, PRIVATE_FILE)?;
    }
    let mut bytes = Vec::new();
    file.take(MAX_LEN_BYTES + 1).read_to_end(&mut bytes).map_err(KeyError::io("read", path))?;
    if bytes.len() as u64 > MAX_LEN_BYTES {
        return Err(KeyError::file(path, format!("longer than {MAX_LEN_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| KeyError::file(path, "this is not text (PEM)"))
}

/// Checks that only this user, or root, may open a file or folder.
pub fn check_private(path: &Path, metadata: &Metadata, right: u32) -> Result<()> {
    let (mode, user) = (metadata.mode() & 0o7777, rustix::process::geteuid().as_raw());
    if metadata.uid() != user && metadata.uid() != 0 {
        return Err(KeyError::Owner { path: path.to_owned(), owner: metadata.uid(), user });
    }
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(KeyError::Mode { path: path.to_owned(), mode, right }),
    }
}

/// Replaces a file: a reader, also after a crash, finds the old or the new content. The caller holds a
/// [`lock`] that excludes other writers of the file.
pub fn write_atomic(path: &Path, content: &str, mode: u32) -> Result<()> {
    let name = path.file_name().ok_or_else(|| KeyError::file(path, "this is not a file"))?;
    let mut new_name = std::ffi::OsString::from(".");
    new_name.push(name);
    new_name.push(".new");
    let new = path.with_file_name(new_name);
    // A killed process may have left one.
    match fs::remove_file(&new) {
        Err(why) if why.kind() != ErrorKind::NotFound => {
            return Err(KeyError::io("remove", &new)(why));
        }
        _ => {}
    }
    let written = || {
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(parent(path))?.sync_all()
    };
    written().map_err(KeyError::io("write", path))
}

/// The folder of a file.
pub fn parent(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// Locks a file until the returned handle is dropped; the kernel unlocks it if the process is killed. If the
/// file was replaced meanwhile, locks the new one.
pub fn lock(path: &Path) -> Result<File> {
    loop {
        let file = File::open(path).map_err(KeyError::io("open", path))?;
        file.lock().map_err(KeyError::io("lock", path))?;
        let locked = file.metadata().map_err(KeyError::io("read", path))?;
        let current = fs::metadata(path).map_err(KeyError::io("read", path))?;
        if (locked.dev(), locked.ino()) == (current.dev(), current.ino()) {
            return Ok(file);
        }
    }
}

/// The blocks of a PEM text.
pub fn pem_blocks(path: &Path, text: &str) -> Result<Vec<Pem>> {
    let blocks: Result<Vec<Pem>, _> = Pem::iter_from_buffer(text.as_bytes()).collect();
    // The cause is left out: it may quote the text.
    blocks.map_err(|_| KeyError::file(path, "damaged: a PEM block is not complete; copy it again"))
}

/// Writes one PEM block.
pub fn pem_block(label: &str, content: &[u8]) -> String {
    let text = STANDARD.encode(content);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", lines.collect::<String>())
}
