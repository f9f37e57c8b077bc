//! Frames between two links, as bytes. docs/design/wire.md defines each field.
//!
//! Nothing here blocks, allocates memory because of an announcement, or trusts an unchecked byte.

mod compression;
mod error;
mod header;
mod item;
mod items;
mod message;
mod part;
mod reassembly;
mod varint;

pub use compression::{compress, decompress};
pub use error::WireError;
pub use header::{ACK_AT_ONCE, ACK_ONLY, HEADER_LEN, Header, MAGIC, MAX_FRAME_LEN, VERSION};
pub use item::{Data, Fragment, Item, PlainData, Subscribe};
pub use items::{Encoder, Items};
pub use part::{Document, DocumentPart};
pub use reassembly::{AddedPart, PartBuffer, PartStatus, Reassembly, ReassemblyProgress};
