//! Events that the threads of a link send to its control thread.

use rnet::{EndpointEvent, Error, Lane, NodeEvent};

use crate::transport::{HostId, Presence};
use crate::wire::{Document, Item, Subscribe};

use super::backlog::BacklogGuard;

/// A publisher of this host, and the host that wants it.
pub type OfflineKey = (HostId, u64);

/// An event for the control thread.
pub enum Event {
    /// An endpoint of this host opened or closed.
    LocalEndpoint(EndpointEvent),
    /// A node of this host joined or left.
    LocalNode(NodeEvent),
    HostUp(Presence),
    HostDown(Presence),
    /// An event from the link of another host; it counts as backlog until it is handled.
    FromPeer(Box<Event>, BacklogGuard),
    /// A host that violated the protocol, and the violation.
    ProtocolViolation(HostId, String),
    /// The link of a host has restarted its session; the new session.
    NewSession(HostId, u64),
    Document(HostId, Document, Vec<u8>),
    NeedType(HostId, u128),
    Type(HostId, u128, Vec<u8>),
    Subscribe(HostId, Lane, Subscribe),
    /// The other side ends a channel: as its owner, or because it does not want more.
    Unsubscribe(HostId, Lane, u32),
    /// The subscription of the other host starts (`true`) or stops receiving what a channel carries; 0
    /// means that the channel has begun.
    Delivery(HostId, Lane, u32, u64, bool),
    /// A subscription of this host waits to be admitted to the proxy of this endpoint, was admitted, or has
    /// left.
    ProxyReadersChanged(HostId, u64),
    /// A publisher of this host is gone, and its channel with it.
    ChannelEnded(HostId, Lane, u32),
    /// The requested reader of a publisher is available, or it does not exist.
    OfflineReader(OfflineKey),
    Problem(Error),
    /// A problem that exists from now on, or (`false`) that is over.
    PersistentProblem(Error, bool),
    TransportFailed(std::io::Error),
    RoleLost,
    Stop,
}

/// The item with which an owner ends a channel.
pub fn channel_end(channel: u32) -> Item<'static> {
    Item::Delivery { channel, subscription: 0, active: false }
}
