//! What the link asks of a network.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use rnet::{DomainId, Lane};

use crate::stream::Frame;

/// A host of the domain: a random number, made anew when the host boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The link of a host, as the network knows it.
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
    /// The other end.
    pub peer: SocketAddr,
    /// Whether the system there answers: nothing had to be sent to it again. So it is where a process stands still,
    /// and is not where a cable is cut.
    pub answered: bool,
}

/// What carries frames to the links of other hosts.
///
/// Frames of one lane from one host arrive in the order in which they were sent, for as long as the connection
/// lasts. What was under way when it ended may be lost; the stream of frames finds that by its numbers.
pub trait Transport: Send + Sync + 'static {
    /// Hands a frame to the network, and waits while the network takes none. Called by the thread that sends for
    /// the lane, and by no other.
    ///
    /// # Errors
    /// If the network is closed. A host that is not there is no error.
    fn send(&self, lane: Lane, to: HostId, frame: Frame) -> io::Result<()>;

    /// Its connections, where it has some and they can be seen.
    fn connections(&self) -> Vec<Connection> {
        Vec::new()
    }

    /// Hosts of which one lane is there, which is named, and the other one is not. They are not told as up.
    fn half_connected(&self) -> Vec<(HostId, Lane)> {
        Vec::new()
    }
}

/// Who is told what the network brings. The calls of one lane come from one thread at a time, and must not
/// wait: the network stands still meanwhile.
pub trait Sink: Send + Sync + 'static {
    /// A frame came, which nobody has looked into yet.
    fn on_frame(&self, lane: Lane, from: HostId, frame: &[u8]);

    /// A link is there.
    fn on_up(&self, presence: Presence);

    /// A link is gone, or no longer heard.
    fn on_down(&self, presence: Presence);

    /// Links are there that are not understood, as they are of another domain, or speak another version of the wire; or
    /// none of this kind is there any more.
    fn on_incompatible(&self, domain: &DomainId, version: u32, is_there: bool) {
        let _ = (domain, version, is_there);
    }
}
