//! State and parameters: keys with values that can be watched, without a server.
//!
//! This crate builds on `rnet-node` and plugs into it with an [`Extension`](rnet_node::Extension). Users
//! access it as `rnet::state` and `rnet::param`.
//!
//! | file | content |
//! |---|---|
//! | `state` | [`State`]: reading and writing single keys |
//! | `value`, `encode`, `message`, `types` | values, their encoding, their types |
//! | `entry` | the attributes of a key |
//! | `put`, `options` | writing with options |
//! | `modify` | changes computed from the current value: counters, lists, sets |
//! | `hash_view` | the keys under a prefix as the fields of one object |
//! | `cell` | access to one key in loops |
//! | `codec` | the Rust types of values |
//! | `transaction` | several keys, all or nothing |
//! | `dead_nodes` | cleanup after nodes that died |
//! | `durable` | the keys that are also on disk |
//! | `watch`, `watch_handle`, `stream` | notification of changes: blocking, by callback, async |
//! | `shared` | the state shared by all handles of a node |
//! | `prefix` | key prefixes |
//! | `extension` | the connection to the events of the node |
//! | `param` | parameters |
//! | `remote` | the state of other hosts |

#![forbid(unsafe_code)]

// Generated code of messages says `::rnet::`; what it names is in the engine.
extern crate rnet_node as rnet;

mod cell;
mod codec;
mod dead_nodes;
mod durable;
mod encode;
mod entry;
mod extension;
mod hash_view;
mod message;
mod modify;
pub mod msgs;
mod options;
pub mod param;
mod prefix;
mod put;
mod remote;
mod shared;
mod state;
mod stream;
mod transaction;
#[doc(hidden)]
mod types;
mod value;
mod watch;
mod watch_handle;

pub use cell::Cell;
pub use codec::StateType;
#[doc(hidden)]
pub use durable::{StateDirChoice, StateFolder};
pub use entry::{Change, Entry, LastWill, Owner, Snapshot};
pub use hash_view::Hash;
pub use message::StateMessage;
pub use put::Put;
#[doc(hidden)]
pub use remote::{Home, StateAccess, StateNeed, StateTopic, serve};
pub use remote::{RemotePut, RemoteState, Replica, WithAge, split_host};
#[doc(hidden)]
pub use rnet_shm::state::{BlockingHooks, with_blocking_hooks};
pub use state::State;
pub use stream::ChangeStream;
pub use transaction::{Transaction, TransactionPut};
pub use value::Value;
pub use watch::{Changes, Watch};
pub use watch_handle::WatchHandle;
