//! What the threads of a link tell its control thread.

use rnet::{EndpointEvent, Error, Lane, NodeEvent};

use crate::transport::{HostId, Presence};
use crate::wire::{Document, Item, Want};

use super::backlog::Waits;

/// A publisher of this host, and the host that wants it.
pub type OfflineKey = (HostId, u64);

/// What happens to a link.
pub enum Event {
    /// Endpoints of this host.
    Local(EndpointEvent),
    /// Nodes of this host.
    Node(NodeEvent),
    Up(Presence),
    Down(Presence),
    /// What the link of another host has said, which is counted as waiting until it is looked at.
    Said(Box<Event>, Waits),
    /// A host that does not keep to the protocol, and what it did.
    Refused(HostId, String),
    /// The link of a host has begun anew; its session.
    Session(HostId, u64),
    Document(HostId, Document, Vec<u8>),
    NeedType(HostId, u128),
    Type(HostId, u128, Vec<u8>),
    Want(HostId, Lane, Want),
    /// The other side ends a channel: as owner, or because it wants no more.
    Unwant(HostId, Lane, u32),
    /// The subscription of the other host gets, or no longer gets, what a channel carries; 0 says that the
    /// channel has begun.
    Flowing(HostId, Lane, u32, u64, bool),
    /// A subscription of this host waits to be admitted to the proxy of this endpoint, has come, or has gone.
    Asked(HostId, u64),
    /// A publisher of this host is gone, and its channel with it.
    ChannelEnded(HostId, Lane, u32),
    /// The reader of a publisher, which was wanted again, can be had, or there is none.
    Offline(OfflineKey),
    Fault(Error),
    /// What is wrong from now on, or (`false`) no longer.
    Lasting(Error, bool),
    TransportFailed(std::io::Error),
    RoleLost,
    Stop,
}

/// What its owner says at the end of a channel.
pub fn ended(channel: u32) -> Item<'static> {
    Item::Flowing { channel, subscription: 0, yes: false }
}
