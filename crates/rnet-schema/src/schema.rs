//! One message type with everything needed to decode its messages.

use crate::canonical::{self, Canonical};
use crate::docs::{self, Docs};
use crate::error::SchemaError;
use crate::scan;
use prost::Message;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use prost_types::FileDescriptorSet;
use std::fmt;
use std::sync::Arc;

/// One message type: its name, its canonical descriptor set, and a descriptor to decode messages.
///
/// Cheap to clone. Equality compares the types: file names, comments, reserved numbers and options of other
/// tools do not matter. (The hash includes reserved numbers, because compatibility depends on them.)
///
/// ```
/// use rnet_schema::{Schema, compile_text};
/// let text = r#"syntax = "proto3"; package demo; message Level { /* [V] */ double volt = 1; }"#;
/// let level = compile_text("level.proto", text)?.schema("demo.Level")?;
/// let travelled = Schema::from_descriptor_set(level.descriptor_set(), "demo.Level")?;
/// assert_eq!(travelled, level);
/// assert_eq!(travelled.hash(), level.hash());
/// # Ok::<(), rnet_schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct Schema {
    inner: Arc<Inner>,
}

struct Inner {
    descriptor: MessageDescriptor,
    set: FileDescriptorSet,
    set_bytes: Vec<u8>,
    structure: Vec<u8>,
    hash: SchemaHash,
    docs: Docs,
}

/// A fingerprint of a type, equal in every process and version of robot-net: 128 bits of FNV-1a over the
/// structure and the reserved numbers and names. Types with equal hashes get the same verdicts of
/// [`crate::check`]. It is suited for caches and for display. A hostile peer can construct two types with the
/// same hash, so equality compares the structure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaHash(u128);

impl SchemaHash {
    fn of(parts: [&[u8]; 2]) -> Self {
        // Offset basis and prime of the 128-bit FNV, http://www.isthe.com/chongo/tech/comp/fnv/.
        let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
        for byte in parts.into_iter().flatten() {
            hash =
                (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        Self(hash)
    }
}

impl fmt::Display for SchemaHash {
    /// 32 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for SchemaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Schema {
    /// Parses a `FileDescriptorSet`, which may be hostile, and extracts the message type of this full name.
    ///
    /// # Errors
    /// [`SchemaError`]: an exceeded limit of [`crate::limits`], bytes that are not a descriptor set, an
    /// inconsistent or incomplete set, or no such message. Never panics; memory stays a small multiple of the
    /// limits.
    pub fn from_descriptor_set(bytes: &[u8], name: &str) -> Result<Self, SchemaError> {
        Self::from_set(&read_set(bytes)?, name)
    }

    /// The same for a set that passed the scan.
    pub(crate) fn from_set(set: &FileDescriptorSet, name: &str) -> Result<Self, SchemaError> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let Canonical { set, structure, reserved, docs } = canonical::canonical(set, name)?;
        let not_valid = |why: String| SchemaError::Invalid { at: name.to_owned(), why };
        let pool = DescriptorPool::from_file_descriptor_set(set.clone()).map_err(|error| {
            let why = error.to_string();
            match error.file() {
                Some(file) => SchemaError::Invalid { at: file.to_owned(), why },
                None => not_valid(why),
            }
        })?;
        let descriptor = pool
            .get_message_by_name(name)
            .ok_or_else(|| not_valid("the message is lost among its own files".into()))?;
        let set_bytes = set.encode_to_vec();
        let hash = SchemaHash::of([&structure, &reserved]);
        let inner = Inner { descriptor, set, set_bytes, structure, hash, docs };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Full name of the message type.
    pub fn name(&self) -> &str {
        self.inner.descriptor.full_name()
    }

    /// The fingerprint.
    pub fn hash(&self) -> SchemaHash {
        self.inner.hash
    }

    /// The canonical `FileDescriptorSet` in bytes, as sent with a channel: only the required files, each
    /// after its imports, without comments.
    pub fn descriptor_set(&self) -> &[u8] {
        &self.inner.set_bytes
    }

    /// The same with comments, for recordings and humans.
    pub fn descriptor_set_with_docs(&self) -> Vec<u8> {
        self.with_docs(self.inner.set.clone())
    }

    /// In the form of protoc, with each field's JSON name and the comments, for readers of other projects:
    /// some do not derive missing names.
    pub fn descriptor_set_with_json_names(&self) -> Vec<u8> {
        // The pool has added the names.
        let files = self.inner.descriptor.parent_pool().file_descriptor_protos();
        self.with_docs(FileDescriptorSet { file: files.cloned().collect() })
    }

    fn with_docs(&self, set: FileDescriptorSet) -> Vec<u8> {
        docs::attach(set, self.inner.descriptor.parent_pool(), &self.inner.docs).encode_to_vec()
    }

    /// The comments of the type and of all contained types.
    pub fn docs(&self) -> &Docs {
        &self.inner.docs
    }

    pub(crate) fn descriptor(&self) -> &MessageDescriptor {
        &self.inner.descriptor
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
            || (self.name() == other.name() && self.inner.structure == other.inner.structure)
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({} {})", self.name(), self.inner.hash)
    }
}

/// Scans, then decodes.
pub(crate) fn read_set(bytes: &[u8]) -> Result<FileDescriptorSet, SchemaError> {
    let kept = scan::filter(bytes)?;
    FileDescriptorSet::decode(&*kept).map_err(|error| SchemaError::Malformed {
        // The scan has checked every record. Only the content of a leaf remains, for which prost reports no
        // offset.
        offset: 0,
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::SchemaHash;

    /// Test vectors of the authors of FNV.
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(SchemaHash::of([b"", b""]).to_string(), "6c62272e07bb014262b821756295c58d");
        assert_eq!(SchemaHash::of([b"a", b""]).to_string(), "d228cb696f1a8caf78912b704e4a8964");
    }
}
