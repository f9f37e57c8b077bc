//! Hosts in network namespaces, each with its own clock: on each, a process with its link, and one for each
//! actor.

use std::path::Path;
use std::sync::Arc;

use rnet::{DomainId, LossCounts};
use rnet_net::config::{Config, Endpoint};
use rnet_net::link::{Link, LinkOptions};
use rnet_net::zenoh::{ZenohNet, ZenohOptions};
use rnet_net::{HostId, Presence};

use crate::common::{self, Child, Net, eventually};
use crate::conformance::transport::{Handle, Transport};
use crate::conformance::{HOSTS, PATIENT, room_len_bytes};
use crate::hosts::clock_uncertainty;
use crate::namespaces::net::{self, Host};

const PORT: u16 = 7450;
/// The time-out of a behavior: each host and each actor is a process that has to start.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(180);

/// One domain on as many hosts as a behavior has actors, each actor on another host than the previous one.
pub struct Apart {
    links: Vec<Child>,
    hosts: Vec<Host>,
    names: Vec<String>,
    domains: Vec<Net>,
    // Last: it kills the remaining processes on its hosts.
    _net: net::Net,
}

impl Apart {
    fn child(&self, host: usize, role: &str) -> Child {
        let program = std::env::current_exe().expect("cannot find this binary");
        let command = self.hosts[host].command(program);
        Child::start(Child::order(command, &self.domains[host], role))
    }

    /// How many frames and messages each host has received, if nothing is in flight.
    fn at_rest(&mut self) -> Option<Vec<u64>> {
        // All are asked before one is asked again.
        self.links.iter_mut().for_each(|link| link.say("rest"));
        let replies = self.links.iter_mut().map(Child::hear);
        // Each answer is read.
        let replies: Vec<Option<u64>> =
            replies.map(|line| serde_json::from_str(&line).expect("a number or null")).collect();
        replies.into_iter().collect()
    }
}

impl Transport for Apart {
    fn new(test: &str) -> Self {
        Self::open(test).expect("cannot create hosts")
    }

    fn open(test: &str) -> Option<Self> {
        let mut net = net::Net::new(test)?;
        let hosts: Vec<Host> = (0..HOSTS).map(|_| net.host()).collect();
        let domains = hosts.iter().map(|_| Net::for_long(test, LIMIT)).collect();
        let mut apart = Apart { links: Vec::new(), hosts, names: Vec::new(), domains, _net: net };
        for host in 0..HOSTS {
            let earlier = apart.hosts[..host].iter().map(|host| format!(" {}", host.address()));
            let role = format!("link {host}{}", earlier.collect::<String>());
            let mut link = apart.child(host, &role);
            link.expect("ready");
            apart.links.push(link);
        }
        Some(apart)
    }

    fn actor(&mut self, name: &str) -> Handle {
        let host = self.names.len() % HOSTS;
        self.names.push(name.to_owned());
        Handle::process(self.child(host, &format!("actor {name}")))
    }

    fn node_name(&self, name: &str) -> String {
        let host = self.names.iter().position(|other| other == name).expect("it plays") % HOSTS;
        format!("@host{host}/{name}")
    }

    fn settle(&mut self) {
        let mut before = None;
        eventually("nothing is in flight", || {
            let now = self.at_rest();
            let settled = now.is_some() && now == before;
            before = now;
            settled
        });
    }

    fn let_clocks_pass(&mut self) {
        self.links[0].say("clocks");
        let uncertainty_ns: u64 = self.links[0].hear().parse().expect("a number");
        std::thread::sleep(std::time::Duration::from_nanos(2 * uncertainty_ns)); // sleep: clock uncertainty
    }

    fn room_len_bytes(&self) -> u64 {
        room_len_bytes()
    }

    fn has_others_between(&self) -> bool {
        true
    }

    fn overruns(&self, lost: &LossCounts) -> u64 {
        lost.overrun + lost.link
    }
}

/// The link of a host, in its own process: its number, and the addresses that it connects to.
pub fn link(words: &str) {
    let mut words = words.split(' ');
    let number: u64 = words.next().and_then(|word| word.parse().ok()).expect("a number");
    let endpoint = |address: &str| -> Endpoint {
        format!("tcp/{address}:{PORT}").parse().expect("an endpoint")
    };
    let mut config = Config::from_toml(PATIENT, Path::new("robot.toml")).expect("a configuration");
    config.host = format!("host{number}");
    let network = ZenohOptions {
        listen: vec![endpoint("0.0.0.0")],
        connect: words.map(endpoint).collect(),
        lost_after: config.lost_after,
        lan: None,
    };
    let domain = Net::of_parent();
    let options = LinkOptions {
        node: domain.builder("/_rnet/link"),
        presence: Presence { host: HostId(number + 1), term: 1 },
        config,
        holds_role: Arc::new(|| true),
    };
    let id = DomainId::default();
    let open = |presence, sink| {
        ZenohNet::open(&network, presence, &id, sink).map_err(std::io::Error::other)
    };
    let link = Link::open(options, open).expect("a link");
    common::tell("ready");
    for order in common::orders() {
        match order.as_str() {
            "rest" => {
                common::tell(
                    &serde_json::to_string(&link.quiescent_count()).expect("a number or null"),
                );
            }
            "clocks" => {
                let uncertainty = clock_uncertainty(&domain.node("clocks"), HOSTS - 1);
                common::tell(&uncertainty.as_nanos().to_string());
            }
            other => panic!("unknown command: {other}"),
        }
    }
}
