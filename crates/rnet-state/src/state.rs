//! Reads and writes single keys.

use std::path::Path;
use std::sync::Arc;

use rnet_core::Result;

use rnet_node::Message;
use rnet_node::core::NodeCore;
use rnet_shm::state::Clock;

use crate::codec::StateType;
use crate::entry::{Entry, Snapshot};
use crate::message;
use crate::prefix::Prefix;
use crate::shared::StateShared;
use crate::value::Value;

/// The state of a node's domain.
///
/// Cheap to clone; created by `rnet::Node::state`, and usable from any thread. Each method lists its own
/// errors; in addition, each returns `BadName` for an invalid key, `BadValue` for an unreadable value, and
/// `Closed` in a forked child.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut settings = rnet_node::NodeSettings::new("arm");
/// # settings.dir = Some(std::env::temp_dir());
/// # settings.domain = Some(format!("state{}", std::process::id()));
/// # let node = settings.open()?;
/// # let state = rnet_state::State::open(&node, None, None)?;
/// // let state = node.state()?;
/// let revision = state.set("/arm/mode", "idle")?;
/// assert_eq!(state.get("/arm/mode")?, Some("idle".into()));
/// // Only if nobody has changed it since:
/// state.compare_and_set("/arm/mode", revision, "moving")?;
/// assert!(state.compare_and_set("/arm/mode", revision, "idle").is_err());
/// # let path = node.state.domain.path().to_owned();
/// # drop((state, node));
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct State {
    pub(crate) shared: Arc<StateShared>,
    pub(crate) core: Arc<NodeCore>,
}

impl State {
    /// The state of the node's domain. The node opens it on first use and shares it. The clock and folder of
    /// the first use apply; `None`: the system's clocks, and the folder from the environment.
    ///
    /// # Errors
    /// `OutOfMemory`, `NoPermission`, `LayoutVersion` for its file; `Closed` in a forked child.
    #[doc(hidden)]
    pub fn open(
        core: &Arc<NodeCore>,
        clock: Option<Clock>,
        state_dir: Option<&Path>,
    ) -> Result<State> {
        let shared = core.state.extension(|own| {
            let clock = clock.unwrap_or_else(Clock::system);
            StateShared::open(own, clock, state_dir.map(Path::to_owned))
        })?;
        Ok(State { shared, core: core.clone() })
    }

    /// The value of a key; `None` if it is absent or expired.
    pub fn get(&self, key: &str) -> Result<Option<Value>> {
        self.shared.read(key, |shared, record| shared.value_of(record))
    }

    /// The value of a key as a Rust type: `bool`, an integer, a float, `String`, `Vec<u8>`, or [`Value`].
    ///
    /// # Errors
    /// `StateType` if the key holds another type; `BadValue` for an integer out of range of the type.
    pub fn get_as<T: StateType>(&self, key: &str) -> Result<Option<T>> {
        self.shared.read(key, |shared, record| shared.typed(record))
    }

    /// The message of a key.
    ///
    /// # Errors
    /// `StateType` if the key does not hold a message, or its type is not compatible with `M`.
    pub fn get_message<M: Message + Clone>(&self, key: &str) -> Result<Option<M>> {
        let Some(value) = self.get(key)? else { return Ok(None) };
        match &value {
            Value::Message(message) => message.decode_key(key).map(Some),
            other => Err(rnet_core::Error::StateType {
                key: key.to_owned(),
                holds: other.type_text(),
                given: message::type_name_of::<M>(),
            }),
        }
    }

    /// The value of a key with all attributes.
    pub fn entry(&self, key: &str) -> Result<Option<Entry>> {
        self.shared.read(key, |shared, record| shared.entry_of(record))
    }

    /// Whether a key is stored on disk, so that writing it takes as long as the disk; `false` if it is
    /// absent.
    pub fn is_durable(&self, key: &str) -> Result<bool> {
        Ok(self.shared.read(key, |_, record| Ok(record.durable))?.unwrap_or(false))
    }

    /// Problems of the state on disk since the domain started, as text, oldest first: a damaged file and its
    /// new path, or a file that could not be read at the start. They never prevent a start. The error of a
    /// single write is returned by that write ([`Error::Storage`](rnet_core::Error::Storage)) and not listed
    /// here.
    ///
    /// # Errors
    /// `Corrupt`, `LimitReached`.
    pub fn disk_reports(&self) -> Result<Vec<String>> {
        self.shared.disk_reports()
    }

    /// Revision of the newest change of any key in the domain.
    pub fn revision(&self) -> u64 {
        self.shared.revision()
    }

    /// Sets a key, and returns the revision of the change. It is then readable in every process of the
    /// domain.
    ///
    /// This removes a time to live and a last will of the key; its durability is kept.
    ///
    /// # Errors
    /// `StateType` if the key holds another type; `BadValue`, `LimitReached` for a value that cannot be
    /// stored; `OutOfMemory`; for a durable key `Storage`.
    pub fn set(&self, key: &str, value: impl Into<Value>) -> Result<u64> {
        self.put(key).set(value)
    }

    /// Sets a key to a message.
    ///
    /// # Errors
    /// As [`State::set`].
    pub fn set_message<M: Message>(&self, key: &str, message: &M) -> Result<u64> {
        self.put(key).set_message(message)
    }

    /// Sets a key that has this revision ([`Entry::revision`]); 0: that is absent.
    ///
    /// # Errors
    /// `Conflict` if it has another revision; as [`State::set`].
    pub fn compare_and_set(
        &self,
        key: &str,
        revision: u64,
        value: impl Into<Value>,
    ) -> Result<u64> {
        self.put(key).if_revision(revision).set(value)
    }

    /// Deletes a key; `false` if it is absent.
    ///
    /// # Errors
    /// For a durable key, `Storage`.
    pub fn delete(&self, key: &str) -> Result<bool> {
        self.put(key).delete()
    }

    /// The keys under a prefix, as of one revision, sorted.
    ///
    /// A prefix matches whole names: `/arm` matches `/arm` itself and `/arm/…`, never `/army`; `/arm/`
    /// matches `/arm/…` only; `/` and the empty prefix match all keys.
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        Ok(self.shared.entries(&Prefix::new(prefix)?)?.1)
    }

    /// The names of the keys under a prefix, sorted.
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        let prefix = Prefix::new(prefix)?;
        let mut keys = Vec::new();
        self.shared.visit(&prefix, |record| keys.push(record.key().to_owned()))?;
        keys.sort_unstable();
        Ok(keys)
    }

    /// The keys under a prefix, as of one revision: each transaction is included completely or not at all.
    pub fn snapshot(&self, prefix: &str) -> Result<Snapshot> {
        let (revision, entries) = self.shared.entries(&Prefix::new(prefix)?)?;
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        Ok(Snapshot { revision, entries })
    }
}

rnet_node::debug_by!([] State, "State", |this| "node": this.shared.node_name());
