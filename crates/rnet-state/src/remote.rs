//! The state of other hosts: what answers for this host's keys there, and what asks (docs/design/state-hosts.md).

mod home;
mod remote_state;
mod replica;
mod state_endpoint;
mod wire;

pub use home::{Home, StateAccess, StateNeed, serve};
pub use remote_state::{RemotePut, RemoteState, WithAge, split_host};
pub use replica::Replica;
pub use wire::StateTopic;
