//! Host names.

use std::ffi::OsString;

use rnet_core::limits::MAX_HOST_LEN_BYTES;

use crate::{Entry, Reader, Result, Table, find};

/// Why a text is not a valid host name; `None` if it is valid.
pub fn invalid_host_reason(name: &str) -> Option<String> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let max = MAX_HOST_LEN_BYTES;
    let is_one = !name.is_empty() && name.len() <= max && name.bytes().all(fine);
    (!is_one).then(|| format!("a name of 1 to {max} letters, digits, '-', '.' and '_'"))
}

/// The name of this host in a settings file, if it has one.
///
/// # Errors
/// The name is invalid.
pub fn network_host(file: &Table<'_>) -> Result<Option<String>> {
    let network = file.get("network").and_then(|entry| entry.table("").ok());
    Ok(network.map(|network| network.optional("host", Entry::host)).transpose()?.flatten())
}

/// The name of this host in the settings file of [`find`], if there is one.
///
/// # Errors
/// The file cannot be read, or the name is invalid.
pub fn configured_host(env: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<String>> {
    let Some(file) = find(None, env)? else { return Ok(None) };
    network_host(&Reader::new(&file.text, &file.path)?.table())
}

/// The system's host name, with `-` for characters that are not allowed in host names.
pub fn this_host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let fine =
        |c: char| if invalid_host_reason(c.encode_utf8(&mut [0; 4])).is_none() { c } else { '-' };
    let name: String = name.trim().chars().take(MAX_HOST_LEN_BYTES).map(fine).collect();
    if name.is_empty() { "host".into() } else { name }
}
