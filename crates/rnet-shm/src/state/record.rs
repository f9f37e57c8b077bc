//! What goes into the region and what comes out.

use rnet_ring::state as ring;
use rnet_ring::state::leaf::{DELETED, DURABLE, EXPIRED};

/// What a read copies out. Reusable: its buffer is kept.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Revision at which this was written; 0 if nothing was read.
    pub revision: u64,
    /// Writes of this key since it was made, from 1 on.
    pub version: u64,
    /// What kind of value it is; the meaning is the caller's.
    pub kind: u16,
    /// Which type of values; the meaning is the caller's.
    pub type_id: u64,
    /// The key was deleted; only from [`super::Follower::next`].
    pub deleted: bool,
    /// The key was deleted because its time was over.
    pub expired: bool,
    /// Whether the key is kept on disk.
    pub durable: bool,
    /// When it was written, ns since 1970.
    pub written_unix_ns: u64,
    /// When its time is over, in ns of CLOCK_BOOTTIME; 0: never.
    pub expires_boot_ns: u64,
    pub(super) raw: ring::LeafBuffer,
}

impl Record {
    /// Shows what was copied.
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

    /// The key; empty if what stands there is no text.
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

    /// What the key becomes when its writer ends, as it was given; see [`Will`].
    pub fn will(&self) -> Option<&[u8]> {
        self.raw.will()
    }
}

/// What stands at a key while a write is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its revision.
    pub revision: u64,
    /// Writes of the key since it was made.
    pub version: u64,
    /// See [`Record::kind`].
    pub kind: u16,
    /// See [`Record::type_id`].
    pub type_id: u64,
    /// Whether it is kept on disk.
    pub durable: bool,
    /// When its time is over, in ns of CLOCK_BOOTTIME; 0: never.
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
    /// Which key.
    pub key: &'a str,
    /// What it becomes; `None`: it is deleted.
    pub value: Option<StoredValue<'a>>,
    /// The revision at which it must be; `Some(0)`: it must be absent.
    pub expect: Option<u64>,
    /// Whether it is to be on disk; `None`: as the key is.
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
    /// What the key becomes when the writing node ends; see [`Will`].
    pub will: Option<&'a [u8]>,
    /// When its time is over, in ns of CLOCK_BOOTTIME; 0: never.
    pub expires_boot_ns: u64,
}

/// A key that was read, and must be unchanged when the commit holds.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    /// Which key.
    pub key: &'a str,
    /// At which revision; 0: absent.
    pub revision: u64,
}

/// What a last will says: what the key becomes.
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

    /// Kind, type and bytes of the value that the key becomes; `None`: it is deleted, or the will is
    /// none that [`Will::encode`] makes.
    pub fn decode(will: &[u8]) -> Option<(u16, u64, &[u8])> {
        let (kind, rest) = will.split_first_chunk::<8>()?;
        let (type_id, bytes) = rest.split_first_chunk::<8>()?;
        let kind = u16::try_from(u64::from_le_bytes(*kind)).ok()?;
        Some((kind, u64::from_le_bytes(*type_id), bytes))
    }
}
