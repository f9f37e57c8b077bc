//! The head of an endpoint's file: a header, and behind the first page a description as JSON.

use std::os::fd::OwnedFd;
use std::path::Path;

use rnet_core::{Error, MAX_META_LEN_BYTES};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::LAYOUT_VERSION;
use crate::os::files::{io_error, open_read, read_exact_at, word_at};

/// What an endpoint says of itself: read from the head of its file.
///
/// `header_words` words at the start of the file, checked for magic and version, and the JSON
/// text behind the first page.
pub fn read_endpoint_header(
    path: &Path,
    magic: u64,
    header_words: usize,
) -> Result<(OwnedFd, Vec<u8>, Vec<u8>), Error> {
    let file = open_read(path).map_err(|e| io_error("cannot open", path, e))?;
    let mut header = vec![0u8; header_words * 8];
    read_exact_at(&file, &mut header, 0).map_err(|e| io_error("cannot read", path, e))?;
    let corrupt = |what: &str| Error::Corrupt {
        topic: String::new(),
        publisher_node: path.display().to_string(),
        what: what.to_owned(),
    };
    if word_at(&header, 0) != magic {
        return Err(corrupt("the file does not start with the header of an endpoint file"));
    }
    let found = u32::try_from(word_at(&header, 1)).unwrap_or(u32::MAX);
    if found != LAYOUT_VERSION {
        return Err(Error::LayoutVersion { path: path.to_owned(), found, ours: LAYOUT_VERSION });
    }
    let meta_len = word_at(&header, 4);
    if meta_len > MAX_META_LEN_BYTES as u64 {
        return Err(corrupt("the description exceeds the length limit"));
    }
    let mut meta = vec![0u8; meta_len as usize];
    read_exact_at(&file, &mut meta, 4096).map_err(|e| io_error("cannot read", path, e))?;
    Ok((file, header, meta))
}

/// The description of an endpoint as JSON, if it is within the length limit.
pub(crate) fn meta_json<T: Serialize>(meta: &T) -> Result<Vec<u8>, Error> {
    let json = serde_json::to_vec(meta)
        .map_err(|e| Error::BadValue { what: "type description".to_owned(), why: e.to_string() })?;
    if json.len() > MAX_META_LEN_BYTES {
        return Err(Error::LimitReached {
            what: "bytes of type description".to_owned(),
            limit: MAX_META_LEN_BYTES,
            hint: "split the type".to_owned(),
        });
    }
    Ok(json)
}

/// The description in the file at `path`.
pub(crate) fn parse_meta<T: DeserializeOwned>(path: &Path, json: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(json)
        .map_err(|e| corrupt(path, &format!("the description does not parse: {e}")))
}

/// The error for a file of a peer that does not have the form which it must have.
pub(crate) fn corrupt(path: &Path, what: &str) -> Error {
    Error::Corrupt {
        topic: path.display().to_string(),
        publisher_node: "a peer".to_owned(),
        what: what.to_owned(),
    }
}
