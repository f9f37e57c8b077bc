//! Reads MCAP files from any source and in any state.
//!
//! A file may be truncated, damaged or hostile, and it may still be written. So the reader compares every
//! length, count and offset with the file before it uses it, bounds allocations by the available data, and
//! reports each problem as a [`ReadError`] with its offset.
//!
//! - [`Recording`] opens a file by its index, or without an index by reading all of it;
//! - [`Messages`] yields its messages in the order of time;
//! - [`Series`] yields fields of a topic over time, as numbers;
//! - [`check`] reads everything and compares all redundant data.

mod blocks;
mod channel_times;
mod channels;
mod check;
mod chunk;
mod error;
mod field;
mod index;
mod info;
mod input;
mod latched;
mod messages;
mod record;
mod recording;
mod scan;
mod series;

pub use channel_times::ChannelTimes;
pub use channels::{Channel, Schema, TypeError};
pub use check::{CheckReport, check};
pub use error::{Problem, ReadError};
pub(crate) use field::find_plain_field;
pub use field::{FieldError, FieldReader};
pub use info::RecordingInfo;
pub use messages::{Message, Messages, Select};
pub use recording::Recording;
pub use series::{Column, Series, SeriesError};
