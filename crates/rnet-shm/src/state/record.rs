//! What is written to the region and read from it.

use rnet_ring::state as ring;
use rnet_ring::state::leaf::{DELETED, DURABLE, EXPIRED};

/// The result of a read. Reusable: its buffer is kept.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Revision at which this was written; 0 if nothing was read.
    pub revision: u64,
    /// Number of writes of this key since it was created, from 1 on.
    pub version: u64,
    /// The kind of the value; the caller defines the meaning.
    pub kind: u16,
    /// The type of the value; the caller defines the meaning.
    pub type_id: u64,
    /// The key was deleted; only from [`super::Follower::next`].
    pub deleted: bool,
    /// The key was deleted because it expired.
    pub expired: bool,
    /// Whether the key is kept on disk.
    pub durable: bool,
    /// When it was written, ns since 1970.
    pub written_unix_ns: u64,
    /// Expiry time in ns of CLOCK_BOOTTIME; 0: never.
    pub expires_boot_ns: u64,
    pub(super) raw: ring::LeafBuffer,
}

impl Record {
    /// Fills the fields from the copied data.
    #[inline]
    pub(super) fn load_meta(&mut self) {
        let meta = &self.raw.meta;
        self.revision = meta.revision;
        self.version = meta.version;
        self.kind = meta.kind;
        self.type_id = meta.type_id;
        self.deleted = meta.has(DELETED);
        self.expired = meta.has(EXPIRED);
        self.durable = meta.has(DURABLE);
        self.written_unix_ns = meta.written_unix_ns;
        self.expires_boot_ns = meta.expires_boot_ns;
    }

    /// The key; empty if the data is not valid UTF-8.
    pub fn key(&self) -> &str {
        str::from_utf8(self.raw.key()).unwrap_or_default()
    }

    /// Name of the node that wrote it.
    pub fn writer(&self) -> &str {
        str::from_utf8(self.raw.writer()).unwrap_or_default()
    }

    /// The value's bytes.
    pub fn value(&self) -> &[u8] {
        self.raw.value()
    }

    /// What the key becomes when its writer exits, as it was written; see [`Will`].
    pub fn will(&self) -> Option<&[u8]> {
        self.raw.will()
    }
}

/// The metadata of a key while a write is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its revision.
    pub revision: u64,
    /// Number of writes of the key since it was created.
    pub version: u64,
    /// See [`Record::kind`].
    pub kind: u16,
    /// See [`Record::type_id`].
    pub type_id: u64,
    /// Whether the key is durable.
    pub durable: bool,
    /// Expiry time in ns of CLOCK_BOOTTIME; 0: never.
    pub expires_boot_ns: u64,
}

impl Head {
    pub(super) fn of(meta: &ring::LeafMeta) -> Head {
        Head {
            revision: meta.revision,
            version: meta.version,
            kind: meta.kind,
            type_id: meta.type_id,
            durable: meta.has(DURABLE),
            expires_boot_ns: meta.expires_boot_ns,
        }
    }
}

/// One change of a commit.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The key.
    pub key: &'a str,
    /// The new value; `None` deletes the key.
    pub value: Option<StoredValue<'a>>,
    /// The required revision; `Some(0)`: the key must be absent.
    pub expect: Option<u64>,
    /// Whether the key is stored on disk; `None`: unchanged.
    pub durable: Option<bool>,
}

/// A value as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredValue<'a> {
    /// See [`Record::kind`].
    pub kind: u16,
    /// See [`Record::type_id`].
    pub type_id: u64,
    /// The value.
    pub bytes: &'a [u8],
    /// What the key becomes when the writing node exits; see [`Will`].
    pub will: Option<&'a [u8]>,
    /// Expiry time in ns of CLOCK_BOOTTIME; 0: never.
    pub expires_boot_ns: u64,
}

/// A key that was read and must be unchanged when the commit takes effect.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    /// The key.
    pub key: &'a str,
    /// The required revision; 0: absent.
    pub revision: u64,
}

/// The encoding of a last will: what the key becomes.
pub struct Will;

impl Will {
    /// The key is deleted.
    pub const DELETE: &'static [u8] = &[];

    /// The key becomes this value.
    pub fn encode(kind: u16, type_id: u64, bytes: &[u8]) -> Vec<u8> {
        let mut will = Vec::with_capacity(16 + bytes.len());
        will.extend_from_slice(&u64::from(kind).to_le_bytes());
        will.extend_from_slice(&type_id.to_le_bytes());
        will.extend_from_slice(bytes);
        will
    }

    /// Kind, type and bytes of the value that the key becomes; `None` if the key is deleted or the will was
    /// not made by [`Will::encode`].
    pub fn decode(will: &[u8]) -> Option<(u16, u64, &[u8])> {
        let (kind, rest) = will.split_first_chunk::<8>()?;
        let (type_id, bytes) = rest.split_first_chunk::<8>()?;
        let kind = u16::try_from(u64::from_le_bytes(*kind)).ok()?;
        Some((kind, u64::from_le_bytes(*type_id), bytes))
    }
}
