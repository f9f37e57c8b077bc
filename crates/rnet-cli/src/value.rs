//! Values as text and as JSON, the same for topics, state and parameters.
//!
//! - `message`: a message of whatever type, or a field of it;
//! - `text`: a value of the state or of a parameter;
//! - `given`: a message from what a person wrote;
//! - `plain`: which parts of a plain message are text, times and lists;
//! - `field`: fields of JSON values: all on lines, all as cells;
//! - `hex`: bytes.

pub mod field;
pub mod hex;
mod message;
pub mod message_input;
mod plain;
pub mod text;

pub use message::Message;
pub use rnet_monitor::text::escape_controls;
pub use rnet_monitor::value::to_json;

/// What a value of a protobuf enum says: `rate limit` of `CAUSE_RATE_LIMIT`, `-` of one that is not specified.
pub fn enum_word(name: &str) -> String {
    match name.split_once('_') {
        None | Some((_, "UNSPECIFIED")) => "-".to_owned(),
        Some((_, word)) => word.replace('_', " ").to_lowercase(),
    }
}

/// Bytes of a field of bytes that are shown, unless everything is.
const SHOWN_FIELD_BYTES: usize = 16;

/// How much of a value is printed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Elements of an array, and bytes of a dump.
    pub elements: usize,
    /// Bytes of a field of bytes.
    pub field_bytes: usize,
}

impl Limits {
    /// By `--truncate-length` and `--full-length`.
    pub fn of(elements: usize, full: bool) -> Limits {
        match full {
            true => Limits { elements: usize::MAX, field_bytes: usize::MAX },
            false => Limits { elements, field_bytes: elements.min(SHOWN_FIELD_BYTES) },
        }
    }
}
