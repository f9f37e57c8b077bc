//! Hosts of one process: a domain and a link each, joined by an in-memory network or Zenoh.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "zenoh")]
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rnet::bridge::{Home, serve_state};
use rnet::msgs::{LinkStatus, duration_to_ns};
use rnet::{DomainId, Node};
use rnet_keys::{KeysFile, Right};
use rnet_net::config::{Config, OfflineLimits};
use rnet_net::in_memory_transport::MemoryNet;
use rnet_net::link::{Link, LinkFailure, LinkOptions};
use rnet_net::secure::SecureNetwork;
#[cfg(feature = "zenoh")]
use rnet_net::zenoh::{ZenohNet, ZenohOptions};
use rnet_net::{HostId, Presence, Sink, Transport};

use crate::certified::Certificates;
use crate::common::{Child, LONG, Net, eventually};

pub struct Hosts {
    links: Vec<Option<Link>>,
    net: Arc<MemoryNet>,
    /// The certificates of the hosts; without any, nothing is restricted.
    pub certificates: Certificates,
    /// Where they listen if Zenoh joins them. The lock keeps other tests with Zenoh out meanwhile, because
    /// its sessions have many threads.
    #[cfg(feature = "zenoh")]
    zenoh: Option<(Vec<std::net::Ipv4Addr>, MutexGuard<'static, ()>)>,
    offline: OfflineLimits,
    /// The keys file of each host, if they have keys.
    keys: Vec<PathBuf>,
    terms: Vec<u64>,
    names: Vec<String>,
    // Last: the directories are removed after their users.
    domains: Vec<Net>,
}

impl Hosts {
    /// `count` hosts, named `host0` and so on.
    pub fn new(test: &str, count: usize) -> Hosts {
        Hosts::with_config(test, &vec![""; count])
    }

    /// The same for a test that runs longer than others.
    pub fn for_long(test: &str, count: usize, limit: Duration) -> Hosts {
        let domains = (0..count).map(|_| Net::for_long(test, limit)).collect();
        Hosts::in_domains(domains, &vec![""; count])
    }

    /// `count` hosts, of which only the first ones have a link.
    pub fn partly_linked(test: &str, count: usize, linked: usize) -> Hosts {
        let mut hosts = Hosts::unlinked((0..count).map(|_| Net::new(test)).collect());
        hosts.start_all(&vec![""; linked]);
        hosts
    }

    /// `count` hosts that no pause of a busy machine makes count as lost: a cut ends nothing.
    pub fn patient(test: &str, count: usize) -> Hosts {
        let mut hosts = Hosts::unlinked((0..count).map(|_| Net::new(test)).collect());
        hosts.net = MemoryNet::with_lease(Duration::from_secs(3600));
        hosts.start_all(&vec!["[network]\nlost_after_ms = 30000"; count]);
        hosts
    }

    /// Two hosts with these limits of data kept for an absent one.
    pub fn with_offline(test: &str, offline: OfflineLimits) -> Hosts {
        let mut hosts = Hosts::unlinked((0..2).map(|_| Net::new(test)).collect());
        hosts.offline = offline;
        hosts.start_all(&[""; 2]);
        hosts
    }

    /// A host for each of these configurations.
    pub fn with_config(test: &str, configs: &[&str]) -> Hosts {
        Hosts::in_domains(configs.iter().map(|_| Net::new(test)).collect(), configs)
    }

    /// The same, joined by Zenoh: each host connects to the earlier ones.
    #[cfg(feature = "zenoh")]
    pub fn over_zenoh(test: &str, configs: &[&str], keys: &[PathBuf]) -> Hosts {
        use std::sync::atomic::{AtomicU8, Ordering};
        static NEXT: AtomicU8 = AtomicU8::new(1);
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hosts = Hosts::unlinked(configs.iter().map(|_| Net::new(test)).collect());
        // All of 127.0.0.0/8 is this machine: no other test listens on these.
        let [.., high, low] = std::process::id().to_be_bytes();
        let address = |_: &&str| {
            std::net::Ipv4Addr::new(127, NEXT.fetch_add(1, Ordering::Relaxed), high, low)
        };
        hosts.zenoh = Some((configs.iter().map(address).collect(), alone));
        hosts.set_keys(keys);
        hosts.start_all(configs);
        hosts
    }

    /// Hosts with these keys, which also name them.
    pub fn with_keys(test: &str, keys: &[PathBuf]) -> Hosts {
        let mut hosts = Hosts::unlinked(keys.iter().map(|_| Net::new(test)).collect());
        hosts.set_keys(keys);
        hosts.start_all(&vec![""; keys.len()]);
        hosts
    }

    fn set_keys(&mut self, keys: &[PathBuf]) {
        self.keys = keys.to_vec();
        for (host, keys) in keys.iter().enumerate() {
            let name = KeysFile::load(keys).unwrap().certificate().name.clone();
            self.rename(host, &name);
        }
    }

    /// A host for each of these lists of rights, which its certificate has.
    pub fn with_rights(test: &str, rights: &[&[(Right, &str)]]) -> Hosts {
        let mut hosts = Hosts::unlinked(rights.iter().map(|_| Net::new(test)).collect());
        for (host, rights) in rights.iter().enumerate() {
            hosts.certify(host, rights);
        }
        hosts.start_all(&vec![""; rights.len()]);
        hosts
    }

    /// Gives a host a certificate with these rights.
    pub fn certify(&self, host: usize, rights: &[(Right, &str)]) {
        self.certificates.issue(HostId(host as u64 + 1), &self.names[host], rights);
    }

    fn in_domains(domains: Vec<Net>, configs: &[&str]) -> Hosts {
        let mut hosts = Hosts::unlinked(domains);
        hosts.start_all(configs);
        hosts
    }

    fn unlinked(domains: Vec<Net>) -> Hosts {
        Hosts {
            links: domains.iter().map(|_| None).collect(),
            net: MemoryNet::new(),
            certificates: Certificates::default(),
            #[cfg(feature = "zenoh")]
            zenoh: None,
            offline: OfflineLimits::default(),
            keys: Vec::new(),
            terms: vec![0; domains.len()],
            names: (0..domains.len()).map(|host| format!("host{host}")).collect(),
            domains,
        }
    }

    fn start_all(&mut self, configs: &[&str]) {
        for (host, config) in configs.iter().enumerate() {
            self.start(host, config);
        }
    }

    /// Starts the link of a host, in the next term.
    pub fn start(&mut self, host: usize, config: &str) {
        self.terms[host] += 1;
        let presence = Presence { host: HostId(host as u64 + 1), term: self.terms[host] };
        let mut config = Config::from_toml(config, Path::new("robot.toml")).unwrap();
        config.host.clone_from(&self.names[host]);
        config.offline = self.offline;
        let name = format!("/_rnet/link{}", self.terms[host]);
        let options = LinkOptions {
            node: self.domains[host].builder(&name),
            presence,
            config,
            holds_role: Arc::new(|| true),
        };
        let net = self.net.clone();
        let keys = self.keys.get(host).map(PathBuf::as_path);
        #[cfg(feature = "zenoh")]
        if let Some((addresses, _)) = &self.zenoh {
            let endpoint = |at: &std::net::Ipv4Addr| format!("tcp/{at}:7450").parse().unwrap();
            let network = ZenohOptions {
                listen: vec![endpoint(&addresses[host])],
                connect: addresses[..host].iter().map(endpoint).collect(),
                lost_after: options.config.lost_after,
                lan: None,
            };
            let open = |presence, sink| {
                let domain = DomainId::default();
                ZenohNet::open(&network, presence, &domain, sink).map_err(io::Error::other)
            };
            self.links[host] = Some(open_link(options, keys, open));
            return;
        }
        let certificates = self.certificates.clone();
        let open = |presence, sink| Ok(certificates.secure(net.join(presence, sink)));
        self.links[host] = Some(open_link(options, keys, open));
    }

    /// The home of a host's state, as `rnet-link` has it.
    pub fn home(&self, host: usize) -> Home {
        let node = self.domains[host].builder("/_rnet/state").tool().open().unwrap();
        let link = self.links[host].as_ref();
        serve_state(&node, &self.names[host], link.map(Link::state_access)).unwrap()
    }

    /// Sets the name of a host for its next start.
    pub fn rename(&mut self, host: usize, name: &str) {
        name.clone_into(&mut self.names[host]);
    }

    /// Stops the link of a host.
    pub fn stop(&mut self, host: usize) {
        self.links[host] = None;
    }

    /// Why the link of a host has stopped by itself, if it has.
    pub fn ended(&self, host: usize) -> Option<LinkFailure> {
        self.links[host].as_ref()?.wait(Duration::ZERO)
    }

    /// The network, for additional hosts.
    pub fn net(&self) -> &Arc<MemoryNet> {
        &self.net
    }

    pub fn node(&self, host: usize, name: &str) -> Node {
        self.domains[host].node(name)
    }

    pub fn domain(&self, host: usize) -> &Net {
        &self.domains[host]
    }

    /// Waits until nothing is in flight between the hosts.
    pub fn settle(&self) {
        let mut before = None;
        eventually("nothing is in flight", || {
            let links = self.links.iter().flatten();
            let now: Option<Vec<u64>> = links.map(Link::quiescent_count).collect();
            let settled = now.is_some() && now == before;
            before = now;
            settled
        });
    }

    /// The uncertainty of the other hosts' clocks, as this host knows them.
    pub fn clock_uncertainty(&self, host: usize) -> Duration {
        clock_uncertainty(&self.node(host, "clocks"), self.links.len() - 1)
    }

    #[track_caller]
    pub fn child(&self, host: usize, role: &str) -> Child {
        Child::spawn(&self.domains[host], role)
    }

    pub fn cut(&self, a: usize, b: usize) {
        self.net.cut(HostId(a as u64 + 1), HostId(b as u64 + 1));
    }

    /// Blocks the direction from `a` to `b`.
    pub fn cut_one_way(&self, a: usize, b: usize) {
        self.net.cut_one_way(HostId(a as u64 + 1), HostId(b as u64 + 1));
    }

    /// Ends the connection of two hosts, which is made again.
    pub fn reset(&self, a: usize, b: usize) {
        self.net.reset(HostId(a as u64 + 1), HostId(b as u64 + 1));
    }

    pub fn heal(&self, a: usize, b: usize) {
        self.net.heal(HostId(a as u64 + 1), HostId(b as u64 + 1));
    }
}

/// Opens a link over the network that `connect` joins, with keys if there are some.
fn open_link<T: Transport>(
    options: LinkOptions,
    keys: Option<&Path>,
    connect: impl FnOnce(Presence, Arc<dyn Sink>) -> io::Result<Arc<T>>,
) -> Link {
    let link = match keys {
        None => Link::open(options, connect),
        Some(keys) => Link::open(options, |own, sink| {
            SecureNetwork::open(keys, own, &DomainId::default(), sink, |sink| connect(own, sink))
        }),
    };
    link.unwrap()
}

/// The uncertainty of the clocks of `others` other hosts, as the host of this node knows them.
pub fn clock_uncertainty(node: &Node, others: usize) -> Duration {
    let mut statuses =
        node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    loop {
        let status = statuses.recv_timeout(LONG).unwrap();
        let known: Option<Vec<_>> =
            status.peers.iter().map(|peer| peer.clock_offset_uncertainty.as_ref()).collect();
        let known = known.filter(|known| known.len() == others);
        if let Some(largest) = known.into_iter().flatten().filter_map(duration_to_ns).max() {
            return Duration::from_nanos(largest.unsigned_abs());
        }
    }
}
