//! The address of another host: its own report, compared with the existing connections.

use std::net::IpAddr;

use crate::addresses;
use crate::config::Endpoint;
use crate::transport::Connection;

use super::super::announcements::Hello;
use super::Host;

/// The most addresses, and the most endpoints, accepted from one host.
const MAX_ADDRESSES: usize = 64;

/// The addresses that a host reports.
#[derive(Debug, Default)]
pub struct HostAddresses {
    own: Vec<IpAddr>,
    listen: Vec<Endpoint>,
}

impl HostAddresses {
    pub fn of(hello: &Hello) -> HostAddresses {
        // Two hosts may share an address of an internal network, such as that of containers.
        let ours = addresses::local_addresses();
        let own = hello.addresses.iter().filter_map(|address| address.parse().ok());
        HostAddresses {
            own: own.filter(|address| !ours.contains(address)).take(MAX_ADDRESSES).collect(),
            listen: (hello.listen.iter().filter_map(|endpoint| endpoint.parse().ok()))
                .take(MAX_ADDRESSES)
                .collect(),
        }
    }

    /// The connections to this host.
    fn connections_to<'a>(&self, all: &'a [Connection]) -> impl Iterator<Item = &'a Connection> {
        all.iter().filter(|connection| self.own.contains(&connection.peer.ip()))
    }

    /// Its address, with the port on which others reach it if known.
    fn reachable_at(&self, all: &[Connection]) -> Option<String> {
        let ip = self.connections_to(all).next()?.peer.ip();
        let there = |endpoint: &&Endpoint| {
            let host: Option<IpAddr> = endpoint.host().parse().ok();
            host.is_none_or(|host| host.is_unspecified() || host == ip)
        };
        let port = self.listen.iter().find(there).map(Endpoint::port);
        Some(match (port, ip) {
            (None, ip) => ip.to_string(),
            (Some(port), IpAddr::V4(ip)) => format!("tcp/{ip}:{port}"),
            (Some(port), IpAddr::V6(ip)) => format!("tcp/[{ip}]:{port}"),
        })
    }
}

impl Host {
    /// Its address, as far as the connections and its report show it.
    pub fn address(&self, connections: &[Connection]) -> Option<String> {
        self.addresses.reachable_at(connections)
    }

    /// Whether its system answers although its link is silent.
    pub(super) fn is_answered(&self, connections: &[Connection]) -> bool {
        let mut of_it = self.addresses.connections_to(connections).peekable();
        of_it.peek().is_some() && of_it.all(|connection| connection.answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_comes_from_connections_to_the_host() {
        let text = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let of = |addresses: &[&str], listen: &[&str]| {
            let (addresses, listen) = (text(addresses), text(listen));
            HostAddresses::of(&Hello { addresses, listen, ..Hello::default() })
        };
        let connections = ["203.0.113.9:4000", "198.51.100.7:50000", "[2001:db8::7]:50001"]
            .map(|peer| Connection { peer: peer.parse().unwrap(), answered: true });
        let two = ["192.0.2.1", "198.51.100.7"];
        let reached = |addresses: &HostAddresses| addresses.reachable_at(&connections);
        let all = of(&two, &["tcp/0.0.0.0:7450"]);
        assert_eq!(reached(&all).as_deref(), Some("tcp/198.51.100.7:7450"));
        assert_eq!(reached(&of(&two, &[])).as_deref(), Some("198.51.100.7"));
        // This host listens on another port.
        let elsewhere = of(&two, &["tcp/192.0.2.1:7450"]);
        assert_eq!(reached(&elsewhere).as_deref(), Some("198.51.100.7"));
        let six = of(&["2001:db8::7"], &["tcp/[::]:7450"]);
        assert_eq!(reached(&six).as_deref(), Some("tcp/[2001:db8::7]:7450"));
        // A host behind a router, and a host of an earlier release.
        assert_eq!(reached(&of(&["192.0.2.1"], &[])), None);
        assert_eq!(reached(&of(&[], &[])), None);
        // The number of reported addresses is bounded.
        let many: Vec<String> = (0..1000_u32).map(|n| format!("2001:db8::{n:x}")).collect();
        let many = HostAddresses::of(&Hello { addresses: many, ..Hello::default() });
        assert_eq!(many.own.len(), MAX_ADDRESSES);
    }
}
