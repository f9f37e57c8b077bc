//! Other hosts: what is configured, whether the link runs, and why a host is not reached.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use rnet::inspect::Location;
use rnet::msgs::LinkStatus;
use rnet::msgs::link_status::{Peer, State};

use crate::link::LinkOptions;
use crate::link::program::{self, Settings, settings};
use crate::value::tame;
use rnet_monitor::Findings;
use rnet_monitor::link::{self, Host};
use rnet_monitor::near::did_you_mean;

const CHECK: &str = "network";
/// For how long an address is tried.
const CONNECT: Duration = Duration::from_secs(2);
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 4;

/// Leaves this host of those that the link knows.
pub fn only(findings: &mut Findings, status: &mut Option<LinkStatus>, host: Host<'_>) {
    let name = host.name;
    let peers = || status.iter().flat_map(|status| &status.peers).map(|peer| peer.host.as_str());
    if !host.is_own && !peers().any(|peer| peer == name) {
        let known = peers().filter(|peer| !peer.is_empty());
        let advice = did_you_mean(name, known).unwrap_or_else(|| {
            "the name is the one that rnet link status shows there; what keeps this host from it is below".to_owned()
        });
        findings.problem(CHECK, format!("the link knows no host {name}"), advice);
    }
    if let Some(status) = status {
        status.peers.retain(|peer| peer.host == name);
    }
}

/// Looks at the network, if there is to be one.
pub fn network(findings: &mut Findings, location: &Location, status: Option<&LinkStatus>) {
    let asked_by = rnet::link_asked_by();
    let settings = match rnet::link_program(None) {
        Ok(program) => settings(program, &LinkOptions::default()),
        Err(why) => {
            // Where nobody wants a network nothing is missing.
            if let Some(asked_by) = asked_by {
                let what =
                    format!("a network is configured ({asked_by}), and rnet-link is not there");
                findings.problem(CHECK, what, why);
            }
            return;
        }
    };
    let settings = match settings {
        Ok(settings) => settings,
        Err(why) => {
            return findings.problem(
                CHECK,
                tame(&why).into_owned(),
                "correct the setting; no host is linked before",
            );
        }
    };
    if settings.version != rnet::VERSION {
        let (link, own) = (&settings.version, rnet::VERSION);
        let what = format!("rnet-link is of version {link}, and this is {own}");
        findings.problem(
            CHECK,
            what,
            "install both from one package; RNET_LINK names another rnet-link",
        );
    }
    if settings.mode == "off" {
        match status {
            Some(status) => findings.note(
                CHECK,
                format!(
                    "the network is off here ({}), and process {} links this host",
                    settings.mode_from, status.pid
                ),
            ),
            None => findings.note(CHECK, format!("the network is off ({})", settings.mode_from)),
        }
    } else {
        configured(findings, &settings);
    }
    if let Some(why) = settings.refused.as_ref().filter(|_| status.is_none()) {
        findings.problem(CHECK, tame(why), "no host is linked before");
    }
    let id = location.id();
    match status {
        Some(status) => {
            linked(findings, &settings, status, id.as_str());
            let is_up = |peer: &Peer| peer.state() == State::Connected;
            if status.mode == "lan" && !status.peers.iter().any(is_up) {
                multicast(findings, id.as_str());
            }
        }
        None if settings.mode != "off" && settings.refused.is_none() => {
            let what = format!("the network is configured, and no link runs in domain {id}");
            let advice = "open a node, or rnet link start; rnet link shows why it ends";
            findings.problem(CHECK, what, advice);
        }
        None => {}
    }
}

fn configured(findings: &mut Findings, settings: &Settings) {
    findings.ok(CHECK, format!("the network is {:?} ({})", settings.mode, settings.mode_from));
    if settings.mode == "lan" {
        findings.note(
            CHECK,
            "\"lan\": anyone on the LAN can join this domain, hear its topics and publish on them",
        );
    }
    interfaces(findings, &settings.interfaces);
}

fn interfaces<'a>(findings: &mut Findings, names: impl IntoIterator<Item = &'a String>) {
    for interface in names {
        if !Path::new("/sys/class/net").join(interface).exists() {
            let there = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
            let there = there.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut there: Vec<String> = there.filter(|name| name != "lo").collect();
            there.sort_unstable();
            let what = format!("there is no network interface {}", tame(interface));
            let advice = format!("network.interfaces may name {}", there.join(", "));
            findings.problem(CHECK, what, advice);
        } else if is_down(interface) {
            let interface = tame(interface);
            let what = format!("the network interface {interface} is down, or has no cable");
            let advice = format!("plug it in, or: ip link set {interface} up");
            findings.problem(CHECK, what, advice);
        }
    }
}

/// Whether nothing can be sent on an interface. Of some, as a tunnel, the system does not know.
fn is_down(interface: &str) -> bool {
    let path = Path::new("/sys/class/net").join(interface).join("operstate");
    let state = std::fs::read_to_string(path).unwrap_or_default();
    matches!(state.trim(), "down" | "lowerlayerdown" | "notpresent" | "dormant")
}

fn linked<'a>(
    findings: &mut Findings,
    settings: &'a Settings,
    status: &'a LinkStatus,
    domain: &str,
) {
    link::moves(findings, status);
    for endpoint in &status.listen {
        let [lower, upper] = both_lanes(&reachable(endpoint));
        let (endpoint, closed) = (tame(endpoint), lower.as_ref().err().or(upper.as_ref().err()));
        let Some(why) = closed else {
            findings.ok(CHECK, format!("the link can be reached on {endpoint}"));
            continue;
        };
        let which = if lower.is_err() { "there" } else { "on the port above" };
        findings.problem(
            CHECK,
            format!("the link listens on {endpoint}, and cannot be reached {which}: {why}"),
            "look whether a firewall of this host closes the port (nft list ruleset)",
        );
    }
    link::peers(findings, status);
    // The link may run with other settings than those of this directory and environment.
    let more = |own: &'a [String], of_here: &'a [String]| {
        own.iter().filter(move |one| !of_here.contains(one))
    };
    interfaces(findings, more(&status.interfaces, &settings.interfaces));
    for endpoint in settings.connect.iter().chain(more(&status.connect, &settings.connect)) {
        // The address of a host that has connected by itself may not be known.
        let is_up =
            |peer: &Peer| peer.state() == State::Connected && leads_to(endpoint, &peer.address);
        if !status.peers.iter().any(is_up) {
            not_connected(findings, endpoint, domain);
        }
    }
}

/// Whether this endpoint may be that of a host with this address.
fn leads_to(endpoint: &str, address: &str) -> bool {
    if address.is_empty() || endpoint == address {
        return true;
    }
    let found = endpoint.strip_prefix("tcp/").and_then(|text| text.to_socket_addrs().ok());
    let is_it = |found: SocketAddr| match address.strip_prefix("tcp/") {
        Some(address) => address.parse() == Ok(found),
        None => address.parse() == Ok(found.ip()),
    };
    found.into_iter().flatten().take(MAX_ADDRESSES).any(is_it)
}

/// An endpoint of the configuration to which there is no connection.
fn not_connected(findings: &mut Findings, endpoint: &str, domain: &str) {
    let shown = tame(endpoint);
    match both_lanes(endpoint) {
        [Ok(()), Ok(())] => findings.note_with(
            CHECK,
            format!(
                "{shown} answers. If its host is in no list of rnet link status, its link is of another domain than \
                 {domain}, or what answers is no link"
            ),
            "the first line of rnet doctor there is its domain; ss -ltnp there shows who has the port",
        ),
        [Ok(()), Err(why)] => findings.problem(
            CHECK,
            format!("{shown} answers, and the port above it does not: {why}"),
            "the link takes both: open the one above for all topics but the urgent ones, or what answers is no link",
        ),
        [Err(why), Ok(())] => findings.problem(
            CHECK,
            format!("{shown} is not reached: {why}; the port above it answers"),
            "the link takes both: open the lower one for the urgent topics; or the port in network.connect is one too \
             low (rnet link status there says on which it listens)",
        ),
        [Err(why), Err(_)] => {
            let advice = match why.as_str() {
                "connection refused" => {
                    "start the link there (a node with network.listen, or rnet link), or correct the port"
                }
                "no answer" => {
                    "look whether the host is on (ping it), and whether a firewall drops the two ports (nft list \
                     ruleset there)"
                }
                "no route" => "connect both hosts to one network, or correct the address",
                _ => "correct the address in network.connect",
            };
            findings.problem(CHECK, format!("{shown} is not reached: {why}"), advice);
        }
    }
}

/// An address by which this host reaches its own listener.
fn reachable(endpoint: &str) -> String {
    endpoint.replace("/0.0.0.0:", "/127.0.0.1:").replace("/[::]:", "/[::1]:")
}

/// Tries the port of the urgent lane, and the one above it, which the bulk lane takes.
fn both_lanes(endpoint: &str) -> [Result<(), String>; 2] {
    let (host, port) = endpoint.rsplit_once(':').unwrap_or((endpoint, ""));
    let above = port.parse::<u16>().ok().and_then(|port| port.checked_add(1));
    let above = above.map(|port| format!("{host}:{port}"));
    std::thread::scope(|scope| {
        // At once: who drops packets has both wait.
        let above = scope.spawn(move || above.map_or(Ok(()), |above| try_connect(&above)));
        let below = try_connect(endpoint);
        [below, above.join().unwrap_or(Ok(()))]
    })
}

/// No other host is connected in mode `lan`: whether multicast comes and goes.
fn multicast(findings: &mut Findings, domain: &str) {
    let Some(heard) = rnet::link_program(None).ok().and_then(|link| program::hear(link, domain))
    else {
        return;
    };
    let list = |hosts: &[String]| tame(&hosts.join(", ")).into_owned();
    let (asked, answered) = (list(&heard.asked_by), list(&heard.answered_by));
    let groups = list(&heard.groups);
    let named = "name addresses instead: network.listen on one host, network.connect on the other";
    match (asked.is_empty(), answered.is_empty()) {
        (true, true) => findings.note_with(
            CHECK,
            format!(
                "no other host of domain {domain} is heard by multicast ({groups}): none is on, it is of another \
                 domain, or the network lets no multicast through"
            ),
            format!(
                "rnet doctor on the other host tells which: its first line names its domain, and if it is this one, \
                 nothing lets multicast through, as Wi-Fi access points that keep their clients apart, many switches \
                 and firewalls (nft list ruleset); then {named}"
            ),
        ),
        (false, true) => findings.problem(
            CHECK,
            format!("{asked} asks by multicast who is there, and does not answer to this host"),
            format!("look whether a firewall there drops UDP ({groups}), and here; or {named}"),
        ),
        (_, false) => findings.problem(
            CHECK,
            format!("{answered} answers to multicast, and no link is connected"),
            format!(
                "the links talk over TCP, on any port in mode lan: look whether a firewall drops it; or {named}"
            ),
        ),
    }
}

/// Opens a TCP connection and closes it.
fn try_connect(endpoint: &str) -> Result<(), String> {
    let address = endpoint.strip_prefix("tcp/").ok_or("it is no TCP endpoint")?;
    let found = address.to_socket_addrs().map_err(|e| format!("its name is not known ({e})"))?;
    let mut last = "its name has no address".to_owned();
    for address in found.take(MAX_ADDRESSES) {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(_) => return Ok(()),
            Err(error) => {
                last = match error.kind() {
                    ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                    ErrorKind::TimedOut | ErrorKind::WouldBlock => "no answer".to_owned(),
                    ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                        "no route".to_owned()
                    }
                    _ => error.to_string(),
                }
            }
        }
    }
    Err(last)
}
