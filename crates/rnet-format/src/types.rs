//! Message types by name, of files and built in, and as text.

mod catalog;
mod compare;
mod layout;
mod names;
mod proto_text;
mod source_files;

pub use catalog::Catalog;
pub use compare::{
    CheckedType, Direction, Sides, TypeReport, UnmatchedType, check_types, diff_types,
};
pub use layout::layout;
pub use names::find;
pub use proto_text::{field_type, proto_text};
