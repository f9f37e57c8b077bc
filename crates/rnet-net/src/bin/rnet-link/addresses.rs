//! Whether the IPv4 addresses of this host have changed.
//!
//! Zenoh reads the interfaces of the host once in the life of a process. In mode `lan` it tells others where it is
//! reached, and asks by multicast, from what it has read then: a host that gets another address, by DHCP or in
//! another Wi-Fi network, is found by nobody before its link is another process.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use rnet_net::addresses::ipv4;

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
        let first = ipv4();
        Addresses { last: first.clone(), first, looked: Instant::now() }
    }

    /// What has changed, in words. To be asked often; it looks when it is time to.
    pub fn changed(&mut self) -> Option<String> {
        if self.looked.elapsed() < LOOK {
            return None;
        }
        self.looked = Instant::now();
        let before = std::mem::replace(&mut self.last, ipv4());
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
