//! A short search for present hosts: `rnet doctor` uses it if no host is heard by multicast.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use rnet::{DomainId, Lane};
use rustix::net::sockopt::{set_ip_add_membership_with_ifindex, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

use super::scouting::{HELLO, SCOUT, SCOUT_INTERVAL, interface_indexes, send_scout};
use super::session_config::multicast_group;
use crate::addresses;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The result of multicast discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveredHosts {
    /// The groups in which hosts of the domain scout, with their ports.
    pub groups: Vec<String>,
    /// Hosts whose scouts were received.
    pub asked_by: BTreeSet<IpAddr>,
    /// Hosts that have answered this host's scouts.
    pub answered_by: BTreeSet<IpAddr>,
}

/// Scouts for the hosts of a domain by multicast, as links do, and listens for `limit` on these interfaces
/// (all but the loopback if none is named).
///
/// # Errors
/// The error of the system, if no socket can be opened.
pub fn discover_hosts(
    domain: &DomainId,
    interfaces: &[String],
    limit: Duration,
) -> io::Result<DiscoveredHosts> {
    let groups = [Lane::Urgent, Lane::Bulk].map(|lane| multicast_group(domain, lane));
    let listening: Vec<UdpSocket> =
        groups.iter().map(|group| listen(*group, interfaces)).collect::<io::Result<_>>()?;
    let asking = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    asking.set_nonblocking(true)?;
    let own: BTreeSet<IpAddr> =
        addresses::local_ipv4_addresses().into_iter().map(IpAddr::from).collect();
    let mut found = DiscoveredHosts {
        groups: groups.iter().map(ToString::to_string).collect(),
        ..DiscoveredHosts::default()
    };
    let is_other = |from: &IpAddr| !own.contains(from) && !from.is_loopback();
    let (end, mut asked) = (Instant::now() + limit, None);
    while Instant::now() < end {
        if asked.is_none_or(|at: Instant| at.elapsed() >= SCOUT_INTERVAL) {
            asked = Some(Instant::now());
            groups.iter().for_each(|group| send_scout(&asking, *group, interfaces));
        }
        let questions = listening.iter().flat_map(|socket| received(socket, SCOUT[0]));
        found.asked_by.extend(questions.filter(is_other));
        found.answered_by.extend(received(&asking, HELLO).filter(is_other));
        thread::sleep(POLL_INTERVAL);
    }
    Ok(found)
}

/// A socket that receives the scouts of a group, beside those of the link.
fn listen(group: SocketAddrV4, interfaces: &[String]) -> io::Result<UdpSocket> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &group)?;
    for index in interface_indexes(interfaces) {
        // An interface that is down receives nothing.
        let any = Ipv4Addr::UNSPECIFIED;
        let _ = set_ip_add_membership_with_ifindex(&socket, group.ip(), &any, index);
    }
    Ok(UdpSocket::from(socket))
}

/// The most packets per pass: a flood does not delay it.
const MAX_PACKETS: usize = 1000;

/// The senders of the received packets of this kind.
fn received(socket: &UdpSocket, kind: u8) -> impl Iterator<Item = IpAddr> {
    let mut packet = [0; 64];
    std::iter::from_fn(move || {
        // A longer packet is truncated: its first byte is enough.
        let (len, from) = socket.recv_from(&mut packet).ok()?;
        Some((len > 0 && packet[0] & 0x1f == kind & 0x1f, from.ip()))
    })
    .take(MAX_PACKETS)
    .filter_map(|(is_it, from)| is_it.then_some(from))
}
