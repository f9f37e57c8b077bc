//! Host names.

use rnet_core::limits::MAX_HOST_LEN_BYTES;

/// Why a text is not a valid host name; `None` if it is valid.
pub fn invalid_host_reason(name: &str) -> Option<String> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let max = MAX_HOST_LEN_BYTES;
    let is_one = !name.is_empty() && name.len() <= max && name.bytes().all(fine);
    (!is_one).then(|| format!("a name of 1 to {max} letters, digits, '-', '.' and '_'"))
}

/// The system's host name, with `-` for characters that are not allowed in host names.
pub fn this_host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let fine =
        |c: char| if invalid_host_reason(c.encode_utf8(&mut [0; 4])).is_none() { c } else { '-' };
    let name: String = name.trim().chars().take(MAX_HOST_LEN_BYTES).map(fine).collect();
    if name.is_empty() { "host".into() } else { name }
}
