//! Restores values from disk into the region.

use rnet_core::Result;
use rnet_shm::state::{DiskValue, PersisterHandle, RestoreOutcome, Will};

use super::record::Saved;

/// Restores one key in its present state: its owner is gone, and it may have expired.
///
/// # Errors
/// `OutOfMemory`, `BadName`, `Corrupt`.
pub(super) fn restore(disk: &PersisterHandle, saved: &Saved<'_>) -> Result<RestoreOutcome> {
    if saved.expires_boot_ns != 0 && saved.expires_boot_ns <= disk.clock().boot_ns() {
        return Ok(RestoreOutcome::Done);
    }
    let mut restored = DiskValue {
        key: saved.key,
        kind: saved.kind,
        type_id: saved.type_id,
        version: saved.version,
        written_unix_ns: saved.written_unix_ns,
        expires_boot_ns: saved.expires_boot_ns,
        writer: saved.writer,
        bytes: saved.value,
    };
    if let Some(will) = saved.will {
        let Some((kind, type_id, bytes)) = Will::decode(will) else {
            return Ok(RestoreOutcome::Done);
        };
        let version = saved.version.saturating_add(1);
        restored = DiskValue { kind, type_id, bytes, version, expires_boot_ns: 0, ..restored };
    }
    disk.restore(&restored)
}
