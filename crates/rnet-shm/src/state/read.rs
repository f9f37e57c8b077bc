//! Reading one key, and many as of one revision.

use rnet_core::Error;
use rnet_ring::state::layout::Geometry;
use rnet_ring::state::{self as ring, Key};

use super::{Record, Region};

/// A time before any expiry.
const BEFORE_ANY_EXPIRY: u64 = 0;

impl Region {
    /// Copies the record of a key; `false` if it is absent or expired.
    ///
    /// # Errors
    /// `BadName`, `Corrupt`.
    #[inline]
    pub fn get(&self, key: &str, into: &mut Record) -> Result<bool, Error> {
        self.read(&self.inner.key(key)?, into)
    }

    /// Resolves a key's path once, for many reads.
    ///
    /// # Errors
    /// `BadName`.
    pub fn path(&self, key: &str) -> Result<KeyPath, Error> {
        Ok(KeyPath { trie_path: self.inner.key(key)?.trie_path(), key: key.into() })
    }

    /// Like [`Region::get`], for a resolved path.
    ///
    /// # Errors
    /// `Corrupt`.
    #[inline]
    pub fn get_at(&self, path: &KeyPath, into: &mut Record) -> Result<bool, Error> {
        self.read(&Key::with(path.key.as_bytes(), path.trie_path), into)
    }

    /// Like [`Region::get`], but also returns an expired key that is not deleted yet.
    ///
    /// # Errors
    /// Errors of [`Region::get`].
    pub fn get_with_expired(&self, key: &str, into: &mut Record) -> Result<bool, Error> {
        self.read_at(&self.inner.key(key)?, &|| BEFORE_ANY_EXPIRY, into)
    }

    #[inline]
    fn read(&self, key: &Key<'_>, into: &mut Record) -> Result<bool, Error> {
        self.read_at(key, &|| self.inner.clock.boot_ns(), into)
    }

    #[inline]
    fn read_at(
        &self,
        key: &Key<'_>,
        now: &dyn Fn() -> u64,
        into: &mut Record,
    ) -> Result<bool, Error> {
        let inner = &*self.inner;
        let ring = inner.checked_ring()?;
        let found = ring.get(inner.process_slot, key, now, &mut into.raw);
        let found = found.map_err(|_| inner.unread_error(&ring, "a read does not finish"))?;
        if found {
            into.load_meta();
        }
        Ok(found)
    }

    /// All keys that match a prefix, as of one revision, unordered. `/arm` matches that key and all keys
    /// below it, `/arm/` only the keys below it, `/` or an empty prefix all user keys.
    ///
    /// # Errors
    /// `Corrupt`; `LimitReached` if too many snapshots are read at the same time.
    pub fn snapshot(&self, prefix: &str) -> Result<(u64, Vec<Record>), Error> {
        let mut records = Vec::new();
        let revision = self.visit(prefix, &mut |record| records.push(record.clone()))?;
        Ok((revision, records))
    }

    /// Like [`Region::snapshot`], but passes each record to `see` once, after all were read.
    ///
    /// # Errors
    /// Errors of [`Region::snapshot`].
    pub fn visit(&self, prefix: &str, see: &mut dyn FnMut(&Record)) -> Result<u64, Error> {
        self.visit_at(prefix, self.inner.clock.boot_ns(), see)
    }

    /// Like [`Region::visit`], including expired keys that are not deleted yet.
    ///
    /// # Errors
    /// Errors of [`Region::visit`].
    pub fn visit_with_expired(
        &self,
        prefix: &str,
        see: &mut dyn FnMut(&Record),
    ) -> Result<u64, Error> {
        self.visit_at(prefix, BEFORE_ANY_EXPIRY, see)
    }

    fn visit_at(&self, prefix: &str, now: u64, see: &mut dyn FnMut(&Record)) -> Result<u64, Error> {
        let inner = &*self.inner;
        let ring = inner.checked_ring()?;
        let prefix = ring::Prefix::new(prefix.as_bytes(), inner.seed, &Geometry::DOMAIN);
        let mut shown = Record::default();
        ring.snapshot(inner.process_slot, &prefix, now, &mut |record| {
            shown.raw.clone_from(record);
            shown.load_meta();
            see(&shown);
        })
        .map_err(|_| inner.unread_error(&ring, "a snapshot does not finish"))
    }
}

/// A key and its resolved path.
#[derive(Clone, Debug)]
pub struct KeyPath {
    key: Box<str>,
    trie_path: ring::key::TriePath,
}

impl KeyPath {
    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }
}
