//! Reading MCAP files, from anywhere and in any state.
//!
//! A file may be cut off, damaged or hostile, and it may still be written. So no length, count or offset of it is
//! believed before it has been compared with the file, what is allocated is bounded by what is there, and each thing
//! that is wrong is a [`ReadError`] with the offset at which it was found.
//!
//! - [`Recording`] opens a file: by its index if it has one, else by reading all of it;
//! - [`Messages`] are its messages, in the order of time;
//! - [`Series`] are fields of a topic over time, as numbers;
//! - [`check`] reads everything and compares everything that is said twice.

mod blocks;
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

pub use channels::{Channel, Schema, TypeError};
pub use check::{CheckReport, check};
pub use error::{Problem, ReadError};
pub use field::{FieldError, FieldReader};
pub(crate) use field::{PathStep, find_plain_field, parse_path};
pub use info::RecordingInfo;
pub use messages::{Message, Messages, Select};
pub use recording::Recording;
pub use series::{Column, Series, SeriesError};
