//! The interface between the link and a network.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rnet::{DomainId, Lane};
use rnet_keys::HostCertificate;

use crate::stream::Frame;

/// A host of the domain: a random number, new at each boot of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The link of a host, as the network identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Presence {
    /// The host.
    pub host: HostId,
    /// The term in which its link holds the role: each holder has a higher one.
    pub term: u64,
}

/// A connection of this process to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The remote address.
    pub peer: SocketAddr,
    /// Whether the system there answers, without retransmissions. It does if only the process is stopped,
    /// and does not if a cable is cut.
    pub answered: bool,
}

/// Carries frames to the links of other hosts.
///
/// Frames of one lane from one host arrive in the order in which they were sent while the connection lasts.
/// Frames in flight when it ended may be lost; the frame stream detects that by its numbers.
pub trait Transport: Send + Sync + 'static {
    /// Hands a frame to the network, and waits while the network accepts none. Only the sending thread of
    /// the lane calls this.
    ///
    /// # Errors
    /// If the network is closed. An absent host is not an error.
    fn send(&self, lane: Lane, to: HostId, frame: Frame) -> io::Result<()>;

    /// Its connections, if it has any and they are visible.
    fn connections(&self) -> Vec<Connection> {
        Vec::new()
    }

    /// The verified certificate of a host: of another one if its frames are known to be from it, or of this
    /// one. `None` for all hosts if keys do not secure the network: nothing is restricted then.
    fn identity(&self, host: HostId) -> Option<Arc<HostCertificate>> {
        let _ = host;
        None
    }

    /// The id of the certificate authority of the keys that secure the network.
    fn authority(&self) -> Option<String> {
        None
    }

    /// Hosts with only one connected lane, and that lane. They are not reported as up.
    fn half_connected(&self) -> Vec<(HostId, Lane)> {
        Vec::new()
    }
}

/// Receives the events of the network. The calls of one lane come from one thread at a time and must not
/// block: the network waits for them.
pub trait Sink: Send + Sync + 'static {
    /// An unverified frame has arrived.
    fn on_frame(&self, lane: Lane, from: HostId, frame: &[u8]);

    /// A link is present.
    fn on_up(&self, presence: Presence);

    /// A link is gone, or is not heard any more.
    fn on_down(&self, presence: Presence);

    /// A host is refused, or refuses this one, because of its keys.
    fn on_refused(&self, host: HostId, why: &str) {
        let _ = (host, why);
    }

    /// Something is wrong with the keys of this host.
    fn on_key_problem(&self, what: &str) {
        let _ = what;
    }

    /// Links of another domain or wire version are present, or the last one of this kind is gone.
    fn on_incompatible(&self, domain: &DomainId, version: u32, is_there: bool) {
        let _ = (domain, version, is_there);
    }
}
