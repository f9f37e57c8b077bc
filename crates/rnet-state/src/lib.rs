//! State and parameters: keys that hold values, can be watched, and are there without a server.
//!
//! It stands on `rnet-node`, into which it plugs with an [`Extension`](rnet_node::Extension); users see it as
//! `rnet::state` and `rnet::param`.
//!
//! | file | what |
//! |---|---|
//! | `state` | [`State`]: reading and writing single keys |
//! | `value`, `encode`, `message`, `types` | what a key holds, its bytes, its type |
//! | `entry` | what is told of a key |
//! | `put`, `options` | writing with options |
//! | `transfer` | values on their way between hosts |
//! | `modify` | changes computed from the present value: counters, lists, sets |
//! | `hash` | the keys under a prefix as the fields of one thing |
//! | `cell` | one key for loops |
//! | `codec` | the Rust types that values are read as |
//! | `transaction` | several keys, all or nothing |
//! | `sweep` | cleaning up behind nodes that died |
//! | `durable` | the keys that are on disk too |
//! | `watch`, `watch_handle`, `callbacks`, `stream` | being told of changes: blocking, by callback, async |
//! | `pace` | how a watch passes the time between two changes |
//! | `extension` | what the node tells the state, and asks of it |
//! | `param` | parameters |
//! | `remote` | the state of other hosts |

// Generated code of messages says `::rnet::`; what it names is in the engine.
extern crate rnet_node as rnet;

mod cell;
mod codec;
mod durable;
mod encode;
mod entry;
mod extension;
mod hash;
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
mod sweep;
mod transaction;
#[doc(hidden)]
pub mod transfer;
mod types;
mod value;
mod watch;
mod watch_handle;

pub use cell::Cell;
pub use codec::StateType;
#[doc(hidden)]
pub use durable::{StateDirChoice, StateFolder};
pub use entry::{Change, Entry, LastWill, Owner, Snapshot};
pub use hash::Hash;
pub use message::StateMessage;
pub use put::Put;
#[doc(hidden)]
pub use remote::{Home, serve};
pub use remote::{RemotePut, RemoteState, Replica, WithAge, split_host};
#[doc(hidden)]
pub use rnet_shm::state::{BlockingHooks, with_blocking_hooks};
pub use state::State;
pub use stream::ChangeStream;
pub use transaction::{Transaction, TransactionPut};
pub use value::Value;
pub use watch::{Changes, Watch};
pub use watch_handle::WatchHandle;
