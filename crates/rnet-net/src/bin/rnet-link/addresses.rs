//! The IPv4 addresses of this host, and whether they have changed.
//!
//! Zenoh reads the interfaces of the host once in the life of a process. In mode `lan` it tells others where it is
//! reached, and asks by multicast, from what it has read then: a host that gets another address, by DHCP or in
//! another Wi-Fi network, is found by nobody before its link is another process.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Between two looks. Two that agree make a change: while one address takes the place of another there is none.
const LOOK: Duration = Duration::from_millis(200);

/// Looks whether the addresses are others than at first.
pub struct Addresses {
    first: BTreeSet<Ipv4Addr>,
    last: BTreeSet<Ipv4Addr>,
    looked: Instant,
}

impl Addresses {
    /// Those of now.
    pub fn now() -> Addresses {
        let first = addresses();
        Addresses { last: first.clone(), first, looked: Instant::now() }
    }

    /// What has changed, in words. To be asked often; it looks when it is time to.
    pub fn changed(&mut self) -> Option<String> {
        if self.looked.elapsed() < LOOK {
            return None;
        }
        self.looked = Instant::now();
        let before = std::mem::replace(&mut self.last, addresses());
        let stays = self.last == before && !self.last.is_empty();
        (stays && self.last != self.first).then(|| {
            let list = |set: &BTreeSet<Ipv4Addr>| {
                let texts: Vec<String> = set.iter().map(Ipv4Addr::to_string).collect();
                if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
            };
            format!("from {} to {}", list(&self.first), list(&self.last))
        })
    }
}

/// The addresses of this host, but for those of the loopback. Empty where they cannot be read.
fn addresses() -> BTreeSet<Ipv4Addr> {
    parse(&fs::read_to_string("/proc/self/net/fib_trie").unwrap_or_default())
}

/// Addresses are the leaves with a route of the host itself: the line after that of the address says so.
fn parse(table: &str) -> BTreeSet<Ipv4Addr> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_without_networks_and_the_loopback() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.77.0.0\n        /24 link UNICAST\n     \
                     |-- 10.77.0.2\n        /32 host LOCAL\n     |-- 10.77.0.255\n        /32 link BROADCAST\n     \
                     |-- 127.0.0.1\n        /32 host LOCAL\n";
        assert_eq!(parse(table), BTreeSet::from([Ipv4Addr::new(10, 77, 0, 2)]));
    }
}
