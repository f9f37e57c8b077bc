//! The addresses of this host, except loopback addresses.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of this host that others may reach; empty if they cannot be read.
pub fn local_addresses() -> BTreeSet<IpAddr> {
    let six = fs::read_to_string("/proc/self/net/if_inet6").unwrap_or_default();
    local_ipv4_addresses()
        .into_iter()
        .map(IpAddr::from)
        .chain(parse_v6(&six).map(IpAddr::from))
        .collect()
}

/// The IPv4 addresses.
pub fn local_ipv4_addresses() -> BTreeSet<Ipv4Addr> {
    parse_v4(&fs::read_to_string("/proc/self/net/fib_trie").unwrap_or_default())
}

/// The addresses are the leaves with a route of the host itself, which the line after the address states.
fn parse_v4(table: &str) -> BTreeSet<Ipv4Addr> {
    let mut last = None;
    let mut found = BTreeSet::new();
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(last.filter(|address: &Ipv4Addr| !address.is_loopback()));
        }
    }
    found
}

/// A line has the address, the interface number, the prefix length, the scope, flags and the name. Scope 0
/// is that of addresses with more than link scope.
fn parse_v6(table: &str) -> impl Iterator<Item = Ipv6Addr> {
    table.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (address, scope) = (words.next()?, words.nth(2)?);
        (scope == "00").then_some(Ipv6Addr::from(u128::from_str_radix(address, 16).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_without_networks_and_loopback() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.77.0.0\n        /24 link UNICAST\n     \
                     |-- 10.77.0.2\n        /32 host LOCAL\n     |-- 10.77.0.255\n        /32 link BROADCAST\n     \
                     |-- 127.0.0.1\n        /32 host LOCAL\n";
        assert_eq!(parse_v4(table), BTreeSet::from([Ipv4Addr::new(10, 77, 0, 2)]));
        let table = "fe80000000000000e4b1e2fffe1b2c3d 02 40 20 80     eth0\n\
                     20010db8000000000000000000000002 02 40 00 80     eth0\n\
                     00000000000000000000000000000001 01 80 10 80       lo\n";
        assert_eq!(
            parse_v6(table).collect::<Vec<_>>(),
            ["2001:db8::2".parse::<Ipv6Addr>().unwrap()]
        );
    }
}
