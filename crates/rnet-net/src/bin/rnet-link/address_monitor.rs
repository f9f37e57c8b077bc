//! Detects changes of this host's IPv4 addresses, and interfaces that have come up.
//!
//! Zenoh reads the interfaces of the host once per process, and only those with a carrier. In mode `lan`,
//! it announces its addresses and scouts by multicast from this list. So if a host gets another address, by
//! DHCP or in another Wi-Fi network, or if its cable is plugged in later, other hosts find it only after
//! its link has restarted. An interface that goes down and comes back needs no restart.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use rnet_net::addresses::local_ipv4_addresses;

/// The interval between two checks. A change counts after two equal checks: while one address replaces
/// another, none exists.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Checks whether the addresses differ from the first ones.
pub struct AddressMonitor {
    first: BTreeSet<Ipv4Addr>,
    last: BTreeSet<Ipv4Addr>,
    /// Interfaces that were present but down when Zenoh read them.
    down_interfaces: BTreeSet<String>,
    checked_at: Instant,
}

impl AddressMonitor {
    /// Records the current addresses on these interfaces, or on all if none are named.
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

    /// Records which of these interfaces are down now. Call it before Zenoh has read them or right after.
    pub fn note_down_interfaces(&mut self, interfaces: &[String]) {
        let known = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let known = known.filter_map(|entry| entry.file_name().into_string().ok());
        let ours = |name: &String| interfaces.is_empty() || interfaces.contains(name);
        self.down_interfaces.extend(known.filter(|name| ours(name) && !is_up(name)));
    }

    /// Describes a change. Call it often; it checks at its own interval.
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

/// Whether an interface is up and has a carrier, as far as the system reports it.
fn is_up(name: &str) -> bool {
    let state = fs::read_to_string(format!("/sys/class/net/{name}/operstate"));
    state.is_ok_and(|state| matches!(state.trim(), "up" | "unknown"))
}
