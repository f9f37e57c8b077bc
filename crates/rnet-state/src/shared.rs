//! State shared by all handles of a node, and its access to the region.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, TryLockError};

use rnet_core::{Error, Result, key_name};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::os::fork::{ForkGuard, ProcessOwned};
use rnet_shm::state::{
    Check, Clock, Follower, Guard, Head, KeyPath, Record, Region, StoredValue, Will, Write,
};

use super::dead_nodes::Sweeper;
use super::durable::{Durable, StateDirChoice, StateFolder};
use super::encode::{self, Packed, kind};
use super::entry::{Entry, LastWill, Owner};
use super::message::{StateMessage, check_bytes, check_compatible};
use super::options::{Expiry, Options};
use super::prefix::Prefix;
use super::types::TypeRegistry;
use super::value::Value;
use crate::param::{ParamDescription, rules};
use rnet_node::MessageType;

/// A buffer for a longer value is not kept for the next read.
const MAX_SPARE_VALUE_LEN_BYTES: usize = 2 << 20;

/// Prefix of the keys with reports of disk problems.
const DISK_REPORTS_PREFIX: &str = "!disk";

/// Maximum number of types that one write is compared with, if other writers change the type of the key in
/// between.
const MAX_TYPE_ROUNDS: usize = 64;

/// The state of a node; shared by all handles.
pub struct StateShared {
    own: Arc<OwnNode>,
    pub(crate) region: ProcessOwned<Region>,
    /// Declared after the region, because it writes the last wills through it.
    durable: Durable,
    clock: Clock,
    types: TypeRegistry,
    spare: Mutex<Option<Box<Record>>>,
    /// The parameters that this node has declared, by key.
    pub(crate) declared: Mutex<BTreeMap<String, ParamDescription>>,
    pub(super) sweeper: Sweeper,
}

/// An encoded value, before it is written.
pub(super) struct PreparedValue<'a> {
    kind: u16,
    type_id: u64,
    bytes: Packed<'a>,
    will: Option<Vec<u8>>,
    expires_boot_ns: u64,
    constraint: TypeConstraint,
}

/// Constraint on the current value of a key to be written.
struct TypeConstraint {
    kind: u16,
    /// Message types that may be overwritten; if empty, any type of the kind.
    types: Vec<u64>,
    message_type: Option<MessageType>,
    any_type: bool,
}

impl TypeConstraint {
    fn accepts(&self, head: &Head) -> bool {
        self.any_type
            || head.kind == self.kind
                && (self.kind != kind::MESSAGE || self.types.contains(&head.type_id))
    }
}

impl PreparedValue<'_> {
    /// Keeps the other attributes of the key.
    pub(super) fn keep_attributes(&mut self, expires_boot_ns: u64, will: Option<&[u8]>) {
        self.expires_boot_ns = expires_boot_ns;
        self.will = will.map(<[u8]>::to_vec);
    }

    pub(super) fn stored(&self) -> StoredValue<'_> {
        StoredValue {
            kind: self.kind,
            type_id: self.type_id,
            bytes: &self.bytes,
            will: self.will.as_deref(),
            expires_boot_ns: self.expires_boot_ns,
        }
    }
}

/// One key of a commit.
pub(super) struct CommitItem<'a> {
    pub(super) key: &'a str,
    /// `None`: delete the key.
    pub(super) value: Option<PreparedValue<'a>>,
    pub(super) expect: Option<u64>,
    pub(super) durable: Option<bool>,
}

impl CommitItem<'_> {
    fn write(&self) -> Write<'_> {
        Write {
            key: self.key,
            value: self.value.as_ref().map(PreparedValue::stored),
            expect: self.expect,
            durable: self.durable,
        }
    }
}

impl StateShared {
    pub(crate) fn open(
        own: &Arc<OwnNode>,
        clock: Clock,
        state_dir: Option<PathBuf>,
    ) -> Result<Arc<StateShared>> {
        let region = ProcessOwned::new(Region::open_unswept(own, clock.clone())?);
        let folder = StateFolder::of(own.domain(), &StateDirChoice::from_env(state_dir));
        let durable = Durable::open(&region, own.domain(), folder)?;
        // The last wills of dead nodes may be durable.
        region.sweep_dead();
        let shared = Arc::new(StateShared {
            own: own.clone(),
            region,
            durable,
            clock,
            types: TypeRegistry::default(),
            spare: Mutex::default(),
            declared: Mutex::default(),
            sweeper: Sweeper::default(),
        });
        shared.store_disk_reports();
        Ok(shared)
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// The node.
    pub(super) fn own(&self) -> &OwnNode {
        &self.own
    }

    pub(super) fn fork_guard(&self) -> ForkGuard {
        self.own.fork_guard()
    }

    pub(crate) fn check_fork(&self) -> Result<()> {
        self.fork_guard().check(|| format!("state of node {}", self.own.name()))
    }

    pub(super) fn node_name(&self) -> &str {
        self.own.name().as_str()
    }

    /// The current time of the clock for expiry.
    pub(super) fn now(&self) -> u64 {
        self.clock.boot_ns()
    }

    pub(super) fn revision(&self) -> u64 {
        if self.fork_guard().is_from_parent() { 0 } else { self.region.revision() }
    }

    pub(super) fn follow(&self, after: u64) -> Result<Follower> {
        self.region.follow(after)
    }

    /// Reads a key with a reused buffer.
    pub(super) fn read<T>(
        &self,
        key: &str,
        make: impl FnOnce(&Self, &Record) -> Result<T>,
    ) -> Result<Option<T>> {
        self.check_fork()?;
        let key = key_name(key)?;
        let mut record = self.take_spare();
        let made = match self.region.get(&key, &mut record) {
            Ok(true) => make(self, &record).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        self.return_spare(record);
        made
    }

    /// As [`StateShared::read_into`], for a key whose path is known.
    #[inline]
    pub(super) fn read_at(&self, path: &KeyPath, record: &mut Record) -> Result<bool> {
        self.check_fork()?;
        self.region.get_at(path, record)
    }

    /// Reads a key into the caller's record.
    pub(super) fn read_into(&self, key: &str, record: &mut Record) -> Result<bool> {
        self.check_fork()?;
        self.region.get(key, record)
    }

    fn take_spare(&self) -> Box<Record> {
        // A thread that would have to wait creates its own record.
        match self.spare.try_lock() {
            Ok(mut spare) => spare.take(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
            Err(TryLockError::WouldBlock) => None,
        }
        .unwrap_or_default()
    }

    fn return_spare(&self, record: Box<Record>) {
        if record.value().len() <= MAX_SPARE_VALUE_LEN_BYTES
            && let Ok(mut spare) = self.spare.try_lock()
        {
            *spare = Some(record);
        }
    }

    /// Visits the keys under a prefix as of one revision, in any order; returns the revision.
    pub(super) fn visit(&self, prefix: &Prefix, mut see: impl FnMut(&Record)) -> Result<u64> {
        self.check_fork()?;
        self.region.visit(prefix.bytes(), &mut |record| {
            if prefix.matches(record.key()) {
                see(record);
            }
        })
    }

    /// The keys under a prefix as of one revision, including expired ones that are not deleted yet; in any
    /// order.
    pub(super) fn records_with_expired(&self, prefix: &Prefix) -> Result<(u64, Vec<Record>)> {
        self.check_fork()?;
        let mut records = Vec::new();
        let revision = self.region.visit_with_expired(prefix.bytes(), &mut |record| {
            if prefix.matches(record.key()) {
                records.push(record.clone());
            }
        })?;
        Ok((revision, records))
    }

    /// The entries of the keys under a prefix as of one revision, sorted.
    pub(super) fn entries(&self, prefix: &Prefix) -> Result<(u64, Vec<Entry>)> {
        let mut entries = Vec::new();
        let revision =
            self.visit(prefix, |record| entries.push(self.entry_or_unreadable(record)))?;
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok((revision, entries))
    }

    pub(super) fn bad_record(record: &Record, why: String) -> Error {
        let what = format!("{} (written by {})", record.key(), record.writer());
        Error::BadValue { what, why }
    }

    pub(super) fn value_of(&self, record: &Record) -> Result<Value> {
        self.decode(record.kind, record.type_id, record.value())
            .map_err(|why| Self::bad_record(record, why))
    }

    fn decode(&self, of: u16, type_id: u64, bytes: &[u8]) -> std::result::Result<Value, String> {
        if of != kind::MESSAGE {
            return encode::decode(of, bytes);
        }
        let message_type = self.types.read(&self.region, type_id)?;
        check_bytes(&message_type, bytes)?;
        Ok(Value::Message(StateMessage::with_type_id(type_id, message_type, bytes.to_vec())))
    }

    pub(super) fn entry_of(&self, record: &Record) -> Result<Entry> {
        Ok(self.entry_with(record, self.value_of(record)?))
    }

    /// As [`StateShared::entry_of`]; an unreadable value is replaced by a description of the fault.
    pub(super) fn entry_or_unreadable(&self, record: &Record) -> Entry {
        let value = self.decode(record.kind, record.type_id, record.value());
        self.entry_with(record, value.unwrap_or_else(Value::Unreadable))
    }

    fn entry_with(&self, record: &Record, value: Value) -> Entry {
        let will = record.will().map(|will| match Will::decode(will) {
            None => LastWill::Delete,
            Some((of, type_id, bytes)) => {
                let value = self.decode(of, type_id, bytes);
                LastWill::Becomes(value.unwrap_or_else(Value::Unreadable))
            }
        });
        Entry {
            key: record.key().to_owned(),
            value,
            revision: record.revision,
            version: record.version,
            owner: Owner {
                node: record.writer().to_owned(),
                written_unix_ns: record.written_unix_ns,
            },
            durable: record.durable,
            expires_boot_ns: (record.expires_boot_ns != 0).then_some(record.expires_boot_ns),
            last_will: will,
        }
    }

    /// The type of a value, in words.
    pub(super) fn holds_text(&self, of: u16, type_id: u64) -> String {
        if of != kind::MESSAGE {
            return encode::kind_text(of).to_owned();
        }
        match self.types.read(&self.region, type_id) {
            Ok(message_type) => message_type.desc().to_string(),
            Err(why) => format!("a message ({why})"),
        }
    }

    /// Encodes a value with its options.
    pub(super) fn prepare<'a>(
        &self,
        key: &str,
        value: &'a Value,
        options: &Options,
    ) -> Result<PreparedValue<'a>> {
        // The description of a message type is stored where the message is stored, also if the option is not
        // given and the key is already durable.
        let durable = match options.durable {
            Some(durable) => durable,
            None if matches!(value, Value::Message(_)) => {
                self.read(key, |_, record| Ok(record.durable))?.unwrap_or(false)
            }
            None => false,
        };
        let (of, type_id, bytes) = self.pack(key, value, durable)?;
        let will = match &options.will {
            None => None,
            Some(LastWill::Delete) => Some(Will::DELETE.to_vec()),
            Some(LastWill::Becomes(will)) => {
                let (will_kind, will_type, bytes) = self.pack(key, will, durable)?;
                if !options.change_type && (will_kind, will_type) != (of, type_id) {
                    return Err(Error::StateType {
                        key: key.to_owned(),
                        holds: value.type_text(),
                        given: format!("{} as its last will", will.type_text()),
                    });
                }
                Some(Will::encode(will_kind, will_type, &bytes))
            }
        };
        Ok(PreparedValue {
            kind: of,
            type_id,
            bytes,
            will,
            expires_boot_ns: self.expiry(key, options.expiry)?,
            constraint: TypeConstraint {
                kind: of,
                types: vec![type_id; usize::from(of == kind::MESSAGE)],
                message_type: value.message_type().cloned(),
                any_type: options.change_type,
            },
        })
    }

    fn expiry(&self, key: &str, expiry: Option<Expiry>) -> Result<u64> {
        let bad = |what: &str, why: &str| {
            Error::bad_value(
                format!("{what} of {key}"),
                format!("{why}; to remove the key, use delete"),
            )
        };
        match expiry {
            None => Ok(0),
            Some(Expiry::After(ttl)) if ttl.is_zero() => {
                Err(bad("time to live", "it must be longer than 0"))
            }
            Some(Expiry::After(ttl)) => {
                let ttl = u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
                Ok(self.now().saturating_add(ttl))
            }
            Some(Expiry::At(0)) => Err(bad("end", "it must be later than 0")),
            Some(Expiry::At(boot_ns)) => Ok(boot_ns),
        }
    }

    fn pack<'a>(
        &self,
        key: &str,
        value: &'a Value,
        durable: bool,
    ) -> Result<(u16, u64, Packed<'a>)> {
        let bytes = encode::encode(value)
            .map_err(|why| Error::bad_value(format!("value of {key}"), why))?;
        let type_id = match value.message_type() {
            Some(message_type) => self.types.register(&self.region, message_type, durable)?,
            None => 0,
        };
        Ok((encode::kind_of(value), type_id, bytes))
    }

    /// Stores the reports of the disk, where every process of the domain can read them.
    fn store_disk_reports(&self) {
        if !self.durable.has_reports() {
            return;
        }
        for (report, at) in self.durable.take_reports().iter().zip(self.now()..) {
            let key = format!("{DISK_REPORTS_PREFIX}/{at:020}");
            let bytes = report.as_bytes();
            let value =
                StoredValue { kind: kind::STR, type_id: 0, bytes, will: None, expires_boot_ns: 0 };
            let write = Write { key: &key, value: Some(value), expect: None, durable: Some(false) };
            // Without free memory, the report is lost.
            let _ = self.region.commit(&[write], &[], &mut |_, _| Ok(()));
        }
    }

    /// The reports of the disk, oldest first.
    pub(super) fn disk_reports(&self) -> Result<Vec<String>> {
        self.check_fork()?;
        let (_, mut records) = self.region.snapshot(DISK_REPORTS_PREFIX)?;
        records.sort_by(|a, b| a.key().cmp(b.key()));
        Ok(records.iter().map(|r| String::from_utf8_lossy(r.value()).into_owned()).collect())
    }

    /// All writes of user keys pass through here, so that the parameter rules apply.
    fn commit_to_region(
        &self,
        writes: &[Write<'_>],
        guards: &[Guard<'_>],
        check: &mut Check<'_>,
    ) -> Result<u64> {
        let done = rules::commit(&self.region, &self.own, writes, guards, check);
        self.store_disk_reports();
        done
    }

    /// Whether a key that a watch knows to be expired still has this revision. If it has not, or is deleted
    /// here because it expired, the journal reports it.
    pub(super) fn is_expired_unreported(&self, key: &str, revision: u64) -> Result<bool> {
        if self.region.delete_expired(key, revision) {
            return Ok(false);
        }
        let mut record = Record::default();
        Ok(self.region.get_with_expired(key, &mut record)? && record.revision == revision)
    }

    /// Writes one key without checking its type: the caller has read it at the expected revision.
    pub(super) fn write_at(&self, write: Write<'_>) -> Result<u64> {
        self.commit_to_region(&[write], &[], &mut |_, _| Ok(()))
    }

    /// Writes a value that is not a message, from its bytes.
    pub(super) fn write_simple(
        &self,
        key: &str,
        of: u16,
        bytes: &[u8],
        expect: Option<u64>,
    ) -> Result<u64> {
        self.check_fork()?;
        let value = StoredValue { kind: of, type_id: 0, bytes, will: None, expires_boot_ns: 0 };
        let write = Write { key, value: Some(value), expect, durable: None };
        let mut mismatch = None;
        let done = self.commit_to_region(&[write], &[], &mut |_, head| match head {
            Some(head) if head.kind != of => {
                mismatch = Some(*head);
                Err(Error::Interrupted)
            }
            _ => Ok(()),
        });
        match mismatch {
            None => done,
            Some(head) => Err(Error::StateType {
                key: key.to_owned(),
                holds: self.holds_text(head.kind, head.type_id),
                given: encode::kind_text(of).to_owned(),
            }),
        }
    }

    /// Commits keys after checking that each value may replace the current one.
    pub(super) fn commit(&self, items: &mut [CommitItem<'_>], guards: &[Guard<'_>]) -> Result<u64> {
        self.check_fork()?;
        for _ in 0..MAX_TYPE_ROUNDS {
            // Usually one key, which then needs no allocation.
            let (one, many);
            let writes: &[Write<'_>] = if let [item] = &*items {
                one = [item.write()];
                &one
            } else {
                many = items.iter().map(CommitItem::write).collect::<Vec<_>>();
                &many
            };
            let mut mismatch = None;
            let done = self.commit_to_region(writes, guards, &mut |at, head| {
                let constraint = items[at].value.as_ref().map(|value| &value.constraint);
                match (constraint, head) {
                    (Some(constraint), Some(head)) if !constraint.accepts(head) => {
                        // Converted to an error below, because the check runs during the commit.
                        mismatch = Some((at, *head));
                        Err(Error::Interrupted)
                    }
                    _ => Ok(()),
                }
            });
            let Some((at, head)) = mismatch else { return done };
            self.allow_compatible_type(&mut items[at], &head)?;
        }
        Err(Error::limit_reached(
            "types of a key in one write",
            MAX_TYPE_ROUNDS,
            "its writers use different types; make them use one type",
        ))
    }

    /// Allows a message to replace one of another type that its readers understand.
    fn allow_compatible_type(&self, item: &mut CommitItem<'_>, head: &Head) -> Result<()> {
        let Some(value) = &mut item.value else { return Ok(()) };
        let constraint = &mut value.constraint;
        let mut given = encode::kind_text(constraint.kind).to_owned();
        if let Some(message_type) = &constraint.message_type {
            given = message_type.desc().to_string();
            if head.kind == kind::MESSAGE
                && let Ok(held) = self.types.read(&self.region, head.type_id)
            {
                match check_compatible(message_type, &held) {
                    Ok(()) => {
                        constraint.types.push(head.type_id);
                        return Ok(());
                    }
                    Err(why) => given = format!("{given} ({why})"),
                }
            }
        }
        let holds = self.holds_text(head.kind, head.type_id);
        Err(Error::StateType { key: item.key.to_owned(), holds, given })
    }
}
