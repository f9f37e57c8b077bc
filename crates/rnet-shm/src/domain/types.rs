//! Protobuf types in a node's folder: each in a separate file, which endpoints name by its hash.
//!
//! A descriptor set is too long for each endpoint's description, and the same for all endpoints of a type.
//! The file is complete before an endpoint names it, and is removed with the node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rnet_core::{Error, MAX_SCHEMA_LEN_BYTES, MAX_TYPES_PER_NODE};
use rnet_ring::fail_point;

use crate::LAYOUT_VERSION;
use crate::domain::directory::DomainDir;
use crate::domain::endpoint_file::corrupt;
use crate::domain::presence;
use crate::os::files::{self, create_error, io_error, word_at};

const MAGIC: u64 = u64::from_le_bytes(*b"RNETTYP\x01");
/// Offset of the descriptor set.
const SET_AT: u64 = 64;
/// Digits of a hash.
const HASH_LEN: usize = 32;

/// The types that a node has written.
#[derive(Debug, Default)]
pub(crate) struct TypeFiles(Mutex<BTreeSet<String>>);

impl TypeFiles {
    /// Writes a type unless it exists.
    pub(crate) fn write_once(
        &self,
        folder: &Path,
        mode: u32,
        hash: &str,
        set: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        let path = path_of(folder, hash).ok_or_else(|| Error::BadValue {
            what: "hash of a type".to_owned(),
            why: format!("{hash:?} is not {HASH_LEN} hexadecimal digits"),
        })?;
        // Held while the file is written: a thread that finds the hash here may name the file.
        let mut types = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if types.contains(hash) {
            return Ok(());
        }
        if types.len() >= MAX_TYPES_PER_NODE {
            return Err(Error::LimitReached {
                what: "protobuf types in one node".to_owned(),
                limit: MAX_TYPES_PER_NODE,
                hint: "spread them over several nodes".to_owned(),
            });
        }
        let set = set()?;
        if set.len() > MAX_SCHEMA_LEN_BYTES {
            return Err(Error::LimitReached {
                what: format!("bytes in the description of a type (this one has {})", set.len()),
                limit: MAX_SCHEMA_LEN_BYTES,
                hint: "split the type".to_owned(),
            });
        }
        write(&path, mode, &set)?;
        types.insert(hash.to_owned());
        Ok(())
    }
}

impl TypeFiles {
    /// Removes the files by name: listing the folder needs a file descriptor.
    pub(crate) fn remove(&self, folder: &Path) {
        for hash in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = path_of(folder, hash).map(rustix::fs::unlink);
        }
    }
}

fn write(path: &Path, mode: u32, set: &[u8]) -> Result<(), Error> {
    let len = SET_AT + set.len() as u64;
    let file =
        files::create_sized(path, len, mode).map_err(|e| create_error(None, path, len, e))?;
    let words = [MAGIC, u64::from(LAYOUT_VERSION), set.len() as u64];
    let header: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let written = files::write_all_at(&file, set, SET_AT).and_then(|()| {
        fail_point!("type.set");
        files::write_all_at(&file, &header, 0)
    });
    fail_point!("type.complete");
    written.map_err(|e| {
        crate::os::folders::remove(path);
        io_error("cannot write", path, e)
    })
}

/// Reads the descriptor set that a node's endpoints name. Its content is untrusted.
///
/// # Errors
/// `Io` (`NotFound` if the node has left), `LayoutVersion`, `Corrupt`.
pub fn read(folder: &Path, hash: &str) -> Result<Vec<u8>, Error> {
    let Some(path) = path_of(folder, hash) else {
        return Err(corrupt(folder, "an endpoint names a type by an invalid hash"));
    };
    let file = files::open_read(&path).map_err(|e| io_error("cannot open", &path, e))?;
    let failed = |e| io_error("cannot read", &path, e);
    let mut header = [0u8; SET_AT as usize];
    files::read_exact_at(&file, &mut header, 0).map_err(failed)?;
    if word_at(&header, 0) != MAGIC {
        return Err(corrupt(&path, "the file does not start with the header of a type file"));
    }
    let found = u32::try_from(word_at(&header, 1)).unwrap_or(u32::MAX);
    if found != LAYOUT_VERSION {
        return Err(Error::LayoutVersion { path, found, ours: LAYOUT_VERSION });
    }
    let len = word_at(&header, 2);
    if len > MAX_SCHEMA_LEN_BYTES as u64 {
        return Err(corrupt(&path, "the type exceeds the length limit"));
    }
    let mut set = vec![0u8; len as usize];
    files::read_exact_at(&file, &mut set, SET_AT).map_err(failed)?;
    Ok(set)
}

/// Whether the type that [`read`] did not find is lost: its node is neither leaving nor dead, and will not
/// write it again.
pub fn is_lost(dir: &DomainDir, folder: &Path) -> bool {
    // A leaving node removes this file before the types.
    let stays = rustix::fs::lstat(folder.join("node")).is_ok();
    let name = folder.file_name().and_then(|name| name.to_str());
    let named = name.and_then(presence::parse_folder_name);
    stays && named.is_some_and(|(stem, incarnation)| presence::is_alive(dir, stem, incarnation))
}

/// The path of a type's file; `None` if `hash` is not a valid hash. A hostile peer could use `/` in it to
/// leave the folder.
fn path_of(folder: &Path, hash: &str) -> Option<PathBuf> {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    (hash.len() == HASH_LEN && hash.bytes().all(digit)).then(|| folder.join(format!("t{hash}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn writes_type_once_and_reads_it() {
        let folder = std::env::temp_dir().join(format!("rnet-types-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let types = TypeFiles::default();
        types.write_once(&folder, 0o600, HASH, || Ok(b"the set".to_vec())).unwrap();
        types.write_once(&folder, 0o600, HASH, || panic!("the type already exists")).unwrap();
        assert_eq!(read(&folder, HASH).unwrap(), b"the set");
        let path = path_of(&folder, HASH).unwrap();

        let absent = read(&folder, &HASH.replace('0', "1")).unwrap_err();
        assert!(matches!(
            absent,
            Error::Io { source: rnet_core::OsError { kind: std::io::ErrorKind::NotFound, .. }, .. }
        ));
        for bad in ["", "../../../etc/passwd", &HASH[1..], &HASH.to_uppercase()] {
            assert!(types.write_once(&folder, 0o600, bad, || Ok(Vec::new())).is_err(), "{bad}");
            assert!(matches!(read(&folder, bad), Err(Error::Corrupt { .. })), "{bad}");
        }
        let long = vec![0; MAX_SCHEMA_LEN_BYTES + 1];
        let refused =
            types.write_once(&folder, 0o600, &HASH.replace('0', "2"), || Ok(long)).unwrap_err();
        assert!(refused.to_string().contains("1048576"), "{refused}");

        // A length beyond the file, a length beyond the limit, another magic, an empty file.
        for (at, word) in [(16, 1 << 19), (16, u64::MAX), (8, 1), (0, 0)] {
            let honest = std::fs::read(&path).unwrap();
            let mut corrupt = honest.clone();
            corrupt[at..at + 8].copy_from_slice(&u64::to_le_bytes(word));
            std::fs::write(&path, &corrupt).unwrap();
            assert!(read(&folder, HASH).is_err(), "{at} {word}");
            std::fs::write(&path, honest).unwrap();
        }
        std::fs::write(&path, b"").unwrap();
        assert!(read(&folder, HASH).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn limits_types_per_node() {
        let folder = std::env::temp_dir().join(format!("rnet-types-many-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let types = TypeFiles::default();
        for n in 0..MAX_TYPES_PER_NODE {
            types.write_once(&folder, 0o600, &format!("{n:032x}"), || Ok(Vec::new())).unwrap();
        }
        let refused = types.write_once(&folder, 0o600, HASH, || Ok(Vec::new())).unwrap_err();
        assert!(matches!(refused, Error::LimitReached { limit: MAX_TYPES_PER_NODE, .. }));
        types.write_once(&folder, 0o600, &format!("{:032x}", 7), || Ok(Vec::new())).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }
}
