//! Who is there, asked for a moment: what `rnet doctor` says where no host is heard by multicast.

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

/// What was heard by multicast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveredHosts {
    /// The groups in which hosts of the domain ask, with their ports.
    pub groups: Vec<String>,
    /// Hosts whose question has come.
    pub asked_by: BTreeSet<IpAddr>,
    /// Hosts that have answered ours.
    pub answered_by: BTreeSet<IpAddr>,
}

/// Asks the hosts of a domain by multicast who is there, as links do, and listens for `limit`, on these interfaces (all
/// but the loopback if none is named).
///
/// # Errors
/// Of the system, if no socket can be had.
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

/// A socket that hears what is asked in a group, beside those of the link.
fn listen(group: SocketAddrV4, interfaces: &[String]) -> io::Result<UdpSocket> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &group)?;
    for index in interface_indexes(interfaces) {
        // One that is down hears nothing.
        let any = Ipv4Addr::UNSPECIFIED;
        let _ = set_ip_add_membership_with_ifindex(&socket, group.ip(), &any, index);
    }
    Ok(UdpSocket::from(socket))
}

/// Of one look: a flood does not hold it up.
const MAX_PACKETS: usize = 1000;

/// From where packets of this kind have come.
fn received(socket: &UdpSocket, kind: u8) -> impl Iterator<Item = IpAddr> {
    let mut packet = [0; 64];
    std::iter::from_fn(move || {
        // One that is longer than the packet is cut: the first byte tells.
        let (len, from) = socket.recv_from(&mut packet).ok()?;
        Some((len > 0 && packet[0] & 0x1f == kind & 0x1f, from.ip()))
    })
    .take(MAX_PACKETS)
    .filter_map(|(is_it, from)| is_it.then_some(from))
}
