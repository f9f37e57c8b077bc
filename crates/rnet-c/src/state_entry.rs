//! What reads of the state return: entries, changes, and lists of them.

use std::ffi::{CString, c_char};
use std::ptr;

use rnet::state::{Change, Entry, LastWill};

use crate::border::{enter, free, given};
use crate::error::{c_text, rnet_code, rnet_error};
use crate::options::{fill, options};
use crate::state_value::{optional_view, rnet_value, view};
use crate::subscriber::RNET_FOREVER;
use crate::texts::element;

/// A key of the state with its value and its metadata, which rnet_entry_read() returns. It does not change:
/// any thread may read it.
pub struct rnet_entry {
    entry: Entry,
    key: CString,
    owner: CString,
}

/// The content of an rnet_entry. Initialise it with RNET_ENTRY_INFO_INIT. Its pointers are valid as long as
/// the entry.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_entry_info {
    /// sizeof(rnet_entry_info), set by the initialiser.
    pub struct_size: usize,
    /// The key, with its leading slash.
    pub key: *const c_char,
    /// Its value.
    pub value: *const rnet_value,
    /// Revision at which it was written: a number that grows with each change of any key.
    pub revision: u64,
    /// Number of writes of the key since it was created, from 1.
    pub version: u64,
    /// Name of the node that wrote it.
    pub owner: *const c_char,
    /// Time of the write, in ns since 1970 UTC.
    pub written_unix_ns: u64,
    /// Expiry time, in ns of CLOCK_BOOTTIME; 0: never.
    pub expires_boot_ns: u64,
    /// Remaining time to live, in ns; RNET_FOREVER if it does not expire.
    pub ttl_left_ns: i64,
    /// Whether it is kept on disk.
    pub durable: bool,
    /// Whether it is deleted when the node that wrote it ends.
    pub last_will_delete: bool,
    /// The value that it gets when the node that wrote it ends; null: none.
    pub last_will: *const rnet_value,
}

options!(rnet_entry_info, rnet_change_info);

impl rnet_entry {
    pub(crate) fn new(entry: Entry) -> rnet_entry {
        let (key, owner) = (c_text(&entry.key), c_text(&entry.owner.node));
        rnet_entry { entry, key, owner }
    }

    fn info(&self) -> rnet_entry_info {
        let Entry { value, revision, version, owner, durable, expires_boot_ns, last_will, .. } =
            &self.entry;
        let left = self.entry.ttl_left().map(|left| i64::try_from(left.as_nanos()));
        rnet_entry_info {
            struct_size: size_of::<rnet_entry_info>(),
            key: self.key.as_ptr(),
            value: view(value),
            revision: *revision,
            version: *version,
            owner: self.owner.as_ptr(),
            written_unix_ns: owner.written_unix_ns,
            expires_boot_ns: expires_boot_ns.unwrap_or_default(),
            ttl_left_ns: left.and_then(Result::ok).unwrap_or(RNET_FOREVER),
            durable: *durable,
            last_will_delete: matches!(last_will, Some(LastWill::Delete)),
            last_will: match last_will {
                Some(LastWill::Becomes(value)) => view(value),
                _ => optional_view(None),
            },
        }
    }
}

/// The content of an entry.
///
/// # Safety
/// `entry` is an entry, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_entry_read(
    entry: *const rnet_entry,
    out: *mut rnet_entry_info,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || fill(out, given(entry, "entry")?.info())) }
}

/// Frees an entry of the caller. Null is allowed.
///
/// # Safety
/// `entry` is null, or an entry that a function has returned and that was not freed; not one of a list or
/// change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_entry_free(entry: *mut rnet_entry) {
    // SAFETY: as promised by the caller.
    unsafe { free(entry) }
}

/// Entries, sorted by key. Any thread may read it.
pub struct rnet_entry_list {
    entries: Vec<rnet_entry>,
    revision: u64,
}

impl rnet_entry_list {
    pub(crate) fn new(entries: impl IntoIterator<Item = Entry>, revision: u64) -> rnet_entry_list {
        rnet_entry_list { entries: entries.into_iter().map(rnet_entry::new).collect(), revision }
    }
}

/// An entry, which belongs to the list; null if there is none at this index.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_entry_list_get(
    list: Option<&rnet_entry_list>,
    index: usize,
) -> *const rnet_entry {
    list.map_or(ptr::null(), |list| element(&list.entries, index))
}

/// The revision of the state at which the list was made; 0 for the state of another host.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_entry_list_revision(list: Option<&rnet_entry_list>) -> u64 {
    list.map_or(0, |list| list.revision)
}

/// Frees a list with its entries. Null is allowed.
///
/// # Safety
/// `list` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_entry_list_free(list: *mut rnet_entry_list) {
    // SAFETY: as promised by the caller.
    unsafe { free(list) }
}

/// A change of a key, which rnet_change_read() returns. It does not change: any thread may read it.
pub struct rnet_change {
    key: CString,
    entry: Option<rnet_entry>,
    expired: Option<bool>,
    revision: u64,
    skipped: Option<u64>,
    initial: bool,
}

/// The content of an rnet_change. Initialise it with RNET_CHANGE_INFO_INIT. Its pointers are valid as long as
/// the change.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_change_info {
    /// sizeof(rnet_change_info), set by the initialiser.
    pub struct_size: usize,
    /// The key, with its leading slash.
    pub key: *const c_char,
    /// The key as it is now; null: it was deleted.
    pub entry: *const rnet_entry,
    /// 1: it was deleted because it expired. 2: it was not. 0: unknown, because the watch was too slow.
    pub expired: i32,
    /// Revision of the change.
    pub revision: u64,
    /// Number of values of this key that the watch missed before this one; -1: unknown.
    pub skipped: i64,
    /// Whether this is not a change, but a value that existed when the watch began.
    pub initial: bool,
}

impl rnet_change {
    pub(crate) fn new(change: Change) -> rnet_change {
        let Change { key, entry, expired, revision, skipped, initial, .. } = change;
        let (key, entry) = (c_text(&key), entry.map(rnet_entry::new));
        rnet_change { key, entry, expired, revision, skipped, initial }
    }

    fn info(&self) -> rnet_change_info {
        rnet_change_info {
            struct_size: size_of::<rnet_change_info>(),
            key: self.key.as_ptr(),
            entry: self.entry.as_ref().map_or(ptr::null(), ptr::from_ref),
            expired: self.expired.map_or(0, |expired| if expired { 1 } else { 2 }),
            revision: self.revision,
            skipped: self.skipped.and_then(|skipped| skipped.try_into().ok()).unwrap_or(-1),
            initial: self.initial,
        }
    }
}

/// The content of a change.
///
/// # Safety
/// `change` is a change, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_change_read(
    change: *const rnet_change,
    out: *mut rnet_change_info,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || fill(out, given(change, "change")?.info())) }
}

/// Frees a change of the caller; not that of a callback. Null is allowed.
///
/// # Safety
/// `change` is null, or a change that a function has returned and that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_change_free(change: *mut rnet_change) {
    // SAFETY: as promised by the caller.
    unsafe { free(change) }
}
