//! The state of a domain: keys that hold values and can be watched, without a server.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = std::env::temp_dir();
//! # let node = rnet::Node::builder("arm").dir(dir).domain(&format!("state{}", std::process::id())).open()?;
//! let state = node.state()?;
//! state.set("/arm/mode", "idle")?;
//! assert_eq!(state.get_as::<String>("/arm/mode")?.as_deref(), Some("idle"));
//! assert_eq!(state.add("/arm/starts", 1)?, 1);
//! // Only if it was not written since it was read:
//! let entry = state.entry("/arm/mode")?.expect("it was set");
//! state.compare_and_set("/arm/mode", entry.revision, "moving")?;
//! # let path = node.domain_path().to_owned();
//! # drop((state, node));
//! # std::fs::remove_dir_all(path)?;
//! # Ok(()) }
//! ```
//!
//! A key belongs to the host that writes it. [`Node::state_of`](crate::Node::state_of) reads and writes the
//! keys of another host.

pub use rnet_state::{
    Cell, Change, ChangeStream, Changes, Entry, Hash, LastWill, Owner, Put, RemotePut, RemoteState,
    Replica, Snapshot, State, StateMessage, StateType, Transaction, TransactionPut, Value, Watch,
    WatchHandle, WithAge, split_host,
};
