//! Whether the IPv4 addresses of this host have changed, or an interface of it has come up.
//!
//! Zenoh reads the interfaces of the host once in the life of a process, those that have a carrier. In mode `lan` it
//! tells others where it is reached, and asks by multicast, from what it has read then: a host that gets another
//! address, by DHCP or in another Wi-Fi network, or whose cable is plugged in later, is found by nobody before its
//! link is another process. An interface that goes down and comes back needs none.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use rnet_net::addresses::local_ipv4_addresses;

/// Between two looks. Two that agree make a change: while one address takes the place of another there is none.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Looks whether the addresses are others than at first.
pub struct AddressMonitor {
    first: BTreeSet<Ipv4Addr>,
    last: BTreeSet<Ipv4Addr>,
    /// Interfaces that were there and down as Zenoh read them.
    down_interfaces: BTreeSet<String>,
    checked_at: Instant,
}

impl AddressMonitor {
    /// Those of now, on these interfaces, or on all if none are named.
    pub fn new(interfaces: &[String]) -> AddressMonitor {
        let (first, down_interfaces) = (local_ipv4_addresses(), BTreeSet::new());
        let mut monitor = AddressMonitor {
            last: first.clone(),
            first,
            down_interfaces,
            checked_at: Instant::now(),
        };
        monitor.note_down_interfaces(interfaces);
        monitor
    }

    /// Notes those of these interfaces that are down by now, before Zenoh has read them or right after.
    pub fn note_down_interfaces(&mut self, interfaces: &[String]) {
        let known = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let known = known.filter_map(|entry| entry.file_name().into_string().ok());
        let ours = |name: &String| interfaces.is_empty() || interfaces.contains(name);
        self.down_interfaces.extend(known.filter(|name| ours(name) && !is_up(name)));
    }

    /// What has changed, in words. To be asked often; it looks when it is time to.
    pub fn poll_change(&mut self) -> Option<String> {
        if self.checked_at.elapsed() < CHECK_INTERVAL {
            return None;
        }
        self.checked_at = Instant::now();
        if let Some(name) = self.down_interfaces.iter().find(|name| is_up(name)) {
            return Some(format!("the network interface {name} is up"));
        }
        let before = std::mem::replace(&mut self.last, local_ipv4_addresses());
        let stays = self.last == before && !self.last.is_empty();
        (stays && self.last != self.first).then(|| {
            let list = |set: &BTreeSet<Ipv4Addr>| {
                let texts: Vec<String> = set.iter().map(Ipv4Addr::to_string).collect();
                if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
            };
            let (first, last) = (list(&self.first), list(&self.last));
            format!("the addresses of this host changed from {first} to {last}")
        })
    }
}

/// Whether an interface is up and has a carrier, as far as it knows.
fn is_up(name: &str) -> bool {
    let state = fs::read_to_string(format!("/sys/class/net/{name}/operstate"));
    state.is_ok_and(|state| matches!(state.trim(), "up" | "unknown"))
}
