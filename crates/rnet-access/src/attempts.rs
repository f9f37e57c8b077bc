//! Limits wrong tokens, by the network that they come from.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Wrong tokens that a network may send in a row, and the time after which it may send one more.
const MAX_WRONG_TOKENS: u32 = 20;
const WRONG_TOKEN_INTERVAL: Duration = Duration::from_secs(1);
/// Wrong tokens of a network that are not counted again: pages whose token was removed keep trying it.
const REMEMBERED: usize = 8;
/// Maximum number of networks that are remembered. If there are more, the one that may soonest send the full
/// number again is forgotten.
const MAX_NETWORKS: usize = 1024;

/// The network of an address, by which clients are counted: the address itself, of IPv6 its /64 prefix, whose
/// addresses are all controlled by one network.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[derive(Debug)]
struct Network {
    /// When it may send the full number again.
    until: Instant,
    /// Hashes of the last wrong tokens.
    recent: [u64; REMEMBERED],
    next: usize,
}

/// Wrong tokens, by network.
#[derive(Debug, Default)]
pub struct WrongTokens {
    networks: HashMap<IpAddr, Network>,
    hasher: RandomState,
}

impl WrongTokens {
    /// How long the network must wait; zero if it may try.
    pub fn wait(&self, from: IpAddr, now: Instant) -> Duration {
        let known = self.networks.get(&network_of(from));
        let left = known.map(|network| network.until.saturating_duration_since(now));
        left.unwrap_or_default().saturating_sub(WRONG_TOKEN_INTERVAL * (MAX_WRONG_TOKENS - 1))
    }

    /// Counts a wrong token.
    pub fn count(&mut self, from: IpAddr, token: &str, now: Instant) {
        let (from, hash) = (network_of(from), self.hasher.hash_one(token));
        if self.networks.len() >= MAX_NETWORKS && !self.networks.contains_key(&from) {
            self.networks.retain(|_, network| network.until > now);
            let soonest = self.networks.iter().min_by_key(|(_, network)| network.until);
            let soonest = soonest.map(|(from, _)| *from);
            if let Some(soonest) = soonest.filter(|_| self.networks.len() >= MAX_NETWORKS) {
                self.networks.remove(&soonest);
            }
        }
        let new = || Network { until: now, recent: [0; REMEMBERED], next: 0 };
        let network = self.networks.entry(from).or_insert_with(new);
        if network.recent.contains(&hash) {
            return;
        }
        network.recent[network.next] = hash;
        network.next = (network.next + 1) % REMEMBERED;
        network.until = network.until.max(now) + WRONG_TOKEN_INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_waits_after_too_many_wrong_tokens() {
        let (mut wrong, now) = (WrongTokens::default(), Instant::now());
        let [one, same, other] =
            ["fd00::1", "fd00::2", "::ffff:10.0.0.1"].map(|of| of.parse().unwrap());
        for number in 0..MAX_WRONG_TOKENS {
            assert_eq!(wrong.wait(one, now), Duration::ZERO);
            wrong.count(one, &number.to_string(), now);
        }
        assert_eq!(wrong.wait(same, now), WRONG_TOKEN_INTERVAL);
        assert_eq!(wrong.wait(other, now), Duration::ZERO);
        assert_eq!(wrong.wait(same, now + WRONG_TOKEN_INTERVAL), Duration::ZERO);
    }

    #[test]
    fn pages_with_removed_tokens_do_not_lock_their_network_out() {
        let (mut wrong, now) = (WrongTokens::default(), Instant::now());
        let from = IpAddr::from([192, 0, 2, 1]);
        for number in 0..10 * MAX_WRONG_TOKENS as usize {
            wrong.count(from, ["removed", "expired", "old"][number % 3], now);
        }
        assert_eq!(wrong.wait(from, now), Duration::ZERO);
    }

    #[test]
    fn number_of_networks_is_bounded() {
        let (mut wrong, now) = (WrongTokens::default(), Instant::now());
        let blocked = IpAddr::from([192, 0, 2, 1]);
        (0..=MAX_WRONG_TOKENS).for_each(|n| wrong.count(blocked, &n.to_string(), now));
        for number in 0..4 * MAX_NETWORKS as u32 {
            wrong.count(IpAddr::from((0x0a00_0000 + number).to_be_bytes()), "x", now);
        }
        assert_eq!(wrong.networks.len(), MAX_NETWORKS);
        assert!(wrong.wait(blocked, now) > Duration::ZERO);
    }
}
