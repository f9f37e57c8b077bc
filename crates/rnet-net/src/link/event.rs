//! What the threads of a link tell its control thread.

use rnet::{EndpointEvent, Error, Lane, NodeEvent};

use crate::transport::{HostId, Presence};
use crate::wire::{Document, Item, Subscribe};

use super::backlog::BacklogGuard;

/// A publisher of this host, and the host that wants it.
pub type OfflineKey = (HostId, u64);

/// What happens to a link.
pub enum Event {
    /// Endpoints of this host.
    LocalEndpoint(EndpointEvent),
    /// Nodes of this host.
    LocalNode(NodeEvent),
    HostUp(Presence),
    HostDown(Presence),
    /// What the link of another host has said, which is counted as waiting until it is looked at.
    FromPeer(Box<Event>, BacklogGuard),
    /// A host that does not keep to the protocol, and what it did.
    ProtocolViolation(HostId, String),
    /// The link of a host has begun anew; its session.
    NewSession(HostId, u64),
    Document(HostId, Document, Vec<u8>),
    NeedType(HostId, u128),
    Type(HostId, u128, Vec<u8>),
    Subscribe(HostId, Lane, Subscribe),
    /// The other side ends a channel: as owner, or because it wants no more.
    Unsubscribe(HostId, Lane, u32),
    /// The subscription of the other host gets, or no longer gets, what a channel carries; 0 says that the
    /// channel has begun.
    Delivery(HostId, Lane, u32, u64, bool),
    /// A subscription of this host waits to be admitted to the proxy of this endpoint, has come, or has gone.
    ProxyReadersChanged(HostId, u64),
    /// A publisher of this host is gone, and its channel with it.
    ChannelEnded(HostId, Lane, u32),
    /// The reader of a publisher, which was wanted again, can be had, or there is none.
    OfflineReader(OfflineKey),
    Problem(Error),
    /// What is wrong from now on, or (`false`) no longer.
    PersistentProblem(Error, bool),
    TransportFailed(std::io::Error),
    RoleLost,
    Stop,
}

/// What its owner says at the end of a channel.
pub fn channel_end(channel: u32) -> Item<'static> {
    Item::Delivery { channel, subscription: 0, active: false }
}
