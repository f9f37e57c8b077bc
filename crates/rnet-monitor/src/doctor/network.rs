//! Other hosts: what is configured, whether the link runs, and why a host is not reachable.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use rnet::inspect::Location;
use rnet::msgs::LinkStatus;
use rnet::msgs::link_status::{Peer, State};

use crate::Findings;
use crate::link::{self, Host};
use crate::link_program::{self, Settings, settings};
use rnet_format::suggestions::did_you_mean;
use rnet_format::text::escape_controls;

const CHECK: &str = "network";
/// Timeout of a connection attempt to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of addresses of a name that are tried.
const MAX_ADDRESSES: usize = 4;

/// Removes all other hosts from the status of the link.
pub fn limit_to_host(findings: &mut Findings, status: &mut Option<LinkStatus>, host: Host<'_>) {
    let name = host.name;
    let peers = || status.iter().flat_map(|status| &status.peers).map(|peer| peer.host.as_str());
    if !host.is_own && !peers().any(|peer| peer == name) {
        let known = peers().filter(|peer| !peer.is_empty());
        let advice = did_you_mean(name, known).unwrap_or_else(|| {
            "use the name that rnet link status shows on that host; the findings below tell what prevents the \
             connection".to_owned()
        });
        findings.problem(CHECK, format!("host {name} is not known to the link"), advice);
    }
    if let Some(status) = status {
        status.peers.retain(|peer| peer.host == name);
    }
}

/// Checks the network, if one is configured.
pub fn network(findings: &mut Findings, location: &Location, status: Option<&LinkStatus>) {
    let program = match rnet::link::find_program(None) {
        Ok(program) => program,
        Err(why) => return link::report_missing_program(findings, why),
    };
    let settings = match settings(program.clone(), None, None) {
        Ok(settings) => settings,
        Err(why) => {
            return findings.problem(
                CHECK,
                escape_controls(&why).into_owned(),
                "correct the setting; until then, no host is linked",
            );
        }
    };
    if settings.version != rnet::VERSION {
        let (link, own) = (&settings.version, rnet::VERSION);
        let what = format!("rnet-link has version {link}, but this program has version {own}");
        findings.problem(
            CHECK,
            what,
            "install both from the same package, or set RNET_LINK to the path of a matching rnet-link",
        );
    }
    if settings.mode == "off" {
        match status {
            Some(status) => findings.note(
                CHECK,
                format!(
                    "the network is off here ({}), but process {} links this host",
                    settings.mode_from, status.pid
                ),
            ),
            None => findings.note(CHECK, format!("the network is off ({})", settings.mode_from)),
        }
    } else {
        configured(findings, &settings);
    }
    if let Some(why) = settings.refused.as_ref().filter(|_| status.is_none()) {
        findings.problem(CHECK, escape_controls(why), "until this is corrected, no host is linked");
    }
    let id = location.id();
    match status {
        Some(status) => {
            connected_peers(findings, &settings, status, id.as_str());
            let is_up = |peer: &Peer| peer.state() == State::Connected;
            if status.mode == "lan" && !status.peers.iter().any(is_up) {
                multicast(findings, id.as_str());
            }
        }
        None if settings.mode != "off" && settings.refused.is_none() => {
            let what = format!("the network is configured, but no link is running in domain {id}");
            let advice =
                "start a node or run rnet link start; if the link exits, run rnet link to see why";
            let is_named = std::env::var_os("RNET_LINK").is_some_and(|named| !named.is_empty());
            let path = std::env::var_os("PATH").filter(|_| !is_named);
            let more = path.and_then(|path| path_advice(&program, &path)).unwrap_or_default();
            findings.problem(CHECK, what, format!("{advice}{more}"));
        }
        None => {}
    }
}

/// Nodes in other folders than this command find the program in PATH only.
fn path_advice(program: &Path, path: &OsStr) -> Option<String> {
    let mut in_path = std::env::split_paths(path).map(|dir| dir.join("rnet-link"));
    (!in_path.any(|file| file.is_file())).then(|| {
        let (program, dir) = (program.display(), program.parent().unwrap_or(program).display());
        format!(
            ". A node whose program is not in {dir} does not find rnet-link: add that folder to PATH, or set \
             RNET_LINK={program}"
        )
    })
}

fn configured(findings: &mut Findings, settings: &Settings) {
    findings.ok(CHECK, format!("the network is {:?} ({})", settings.mode, settings.mode_from));
    if settings.mode == "lan" {
        findings.note(
            CHECK,
            "mode \"lan\": anyone on the LAN can join this domain, receive its topics and publish to them",
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
            let what = format!("network interface {} does not exist", escape_controls(interface));
            let advice = format!("set network.interfaces to one of {}", there.join(", "));
            findings.problem(CHECK, what, advice);
        } else if is_down(interface) {
            let interface = escape_controls(interface);
            let what = format!("network interface {interface} is down or has no cable");
            let advice = format!("connect the cable, or run: ip link set {interface} up");
            findings.problem(CHECK, what, advice);
        }
    }
}

/// Whether an interface cannot send. Some, such as tunnels, have an unknown state and count as up.
fn is_down(interface: &str) -> bool {
    let path = Path::new("/sys/class/net").join(interface).join("operstate");
    let state = std::fs::read_to_string(path).unwrap_or_default();
    matches!(state.trim(), "down" | "lowerlayerdown" | "notpresent" | "dormant")
}

fn connected_peers<'a>(
    findings: &mut Findings,
    settings: &'a Settings,
    status: &'a LinkStatus,
    domain: &str,
) {
    link::check_alive(findings, status);
    for endpoint in &status.listen {
        let [lower, upper] = try_both_lanes(&reachable_address(endpoint));
        let (endpoint, closed) =
            (escape_controls(endpoint), lower.as_ref().err().or(upper.as_ref().err()));
        let Some(why) = closed else {
            findings.ok(CHECK, format!("the link can be reached on {endpoint}"));
            continue;
        };
        let which = if lower.is_err() { "there" } else { "on the next higher port" };
        findings.problem(
            CHECK,
            format!("the link listens on {endpoint}, but cannot be reached {which}: {why}"),
            "check whether a firewall on this host blocks the port (nft list ruleset)",
        );
    }
    link::check_peers(findings, status);
    // The running link may have other settings than this directory and environment specify.
    let more = |own: &'a [String], of_here: &'a [String]| {
        own.iter().filter(move |one| !of_here.contains(one))
    };
    interfaces(findings, more(&status.interfaces, &settings.interfaces));
    for endpoint in settings.connect.iter().chain(more(&status.connect, &settings.connect)) {
        // The address of a host that opened the connection may be unknown.
        let is_up = |peer: &Peer| {
            peer.state() == State::Connected && endpoint_matches(endpoint, &peer.address)
        };
        if !status.peers.iter().any(is_up) {
            not_connected(findings, endpoint, domain);
        }
    }
}

/// Whether this endpoint may belong to a host with this address.
fn endpoint_matches(endpoint: &str, address: &str) -> bool {
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

/// Reports a configured endpoint that is not connected.
fn not_connected(findings: &mut Findings, endpoint: &str, domain: &str) {
    let shown = escape_controls(endpoint);
    match try_both_lanes(endpoint) {
        [Ok(()), Ok(())] => findings.note_with(
            CHECK,
            format!(
                "{shown} answers. If its host is missing in rnet link status, its link is in another domain \
                 than {domain}, or something other than an rnet link answers"
            ),
            "on that host, the first line of rnet doctor shows the domain, and ss -ltnp shows which process \
             uses the port",
        ),
        [Ok(()), Err(why)] => findings.problem(
            CHECK,
            format!("{shown} answers, but the next higher port does not: {why}"),
            "the link needs both ports: open the higher one for all topics except urgent ones; or something \
             other than an rnet link answers",
        ),
        [Err(why), Ok(())] => findings.problem(
            CHECK,
            format!("cannot reach {shown}: {why}; the next higher port answers"),
            "the link needs both ports: open the lower one for urgent topics; or the port in network.connect \
             is too low by one (rnet link status on that host shows the port)",
        ),
        [Err(why), Err(_)] => {
            let advice = match why.as_str() {
                "connection refused" => {
                    "start the link on that host (a node with network.listen, or rnet link), or correct the port"
                }
                "no answer" => {
                    "check that the host is on (ping it) and that no firewall drops the two ports (nft list \
                     ruleset on that host)"
                }
                "no route" => "connect both hosts to one network, or correct the address",
                _ => "correct the address in network.connect",
            };
            findings.problem(CHECK, format!("cannot reach {shown}: {why}"), advice);
        }
    }
}

/// The address at which this host reaches its own listener.
fn reachable_address(endpoint: &str) -> String {
    endpoint.replace("/0.0.0.0:", "/127.0.0.1:").replace("/[::]:", "/[::1]:")
}

/// Tries the port of the urgent lane and the next port, which is that of the bulk lane.
fn try_both_lanes(endpoint: &str) -> [Result<(), String>; 2] {
    let (host, port) = endpoint.rsplit_once(':').unwrap_or((endpoint, ""));
    let above = port.parse::<u16>().ok().and_then(|port| port.checked_add(1));
    let above = above.map(|port| format!("{host}:{port}"));
    std::thread::scope(|scope| {
        // In parallel: both time out if packets are dropped.
        let above = scope.spawn(move || above.map_or(Ok(()), |above| try_connect(&above)));
        let below = try_connect(endpoint);
        [below, above.join().unwrap_or(Ok(()))]
    })
}

/// Checks whether multicast works, for mode `lan` without a connected host.
fn multicast(findings: &mut Findings, domain: &str) {
    let Some(probe) = rnet::link::find_program(None)
        .ok()
        .and_then(|link| link_program::probe_multicast(link, domain))
    else {
        return;
    };
    let list = |hosts: &[String]| escape_controls(&hosts.join(", ")).into_owned();
    let (asked, answered) = (list(&probe.asked_by), list(&probe.answered_by));
    let groups = list(&probe.groups);
    let named =
        "configure addresses instead: network.listen on one host, network.connect on the other";
    match (asked.is_empty(), answered.is_empty()) {
        (true, true) => findings.note_with(
            CHECK,
            format!(
                "no other host of domain {domain} was found by multicast ({groups}): none is on, they use \
                 another domain, or the network blocks multicast"
            ),
            format!(
                "run rnet doctor on the other host: its first line shows its domain. If it is this domain, the \
                 network blocks multicast, as do Wi-Fi access points with client isolation, many switches and \
                 firewalls (nft list ruleset); then {named}"
            ),
        ),
        (false, true) => findings.problem(
            CHECK,
            format!("{asked} sends multicast queries, but does not answer those of this host"),
            format!("check whether a firewall on either host drops UDP ({groups}); or {named}"),
        ),
        (_, false) => findings.problem(
            CHECK,
            format!("{answered} answers multicast, but no link is connected"),
            format!(
                "links use TCP, on any port in mode lan: check whether a firewall drops it; or {named}"
            ),
        ),
    }
}

/// Opens and closes a TCP connection.
fn try_connect(endpoint: &str) -> Result<(), String> {
    let address = endpoint.strip_prefix("tcp/").ok_or("it is not a TCP endpoint")?;
    let found =
        address.to_socket_addrs().map_err(|e| format!("its name cannot be resolved ({e})"))?;
    let mut last = "its name has no address".to_owned();
    for address in found.take(MAX_ADDRESSES) {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_program_outside_of_path_is_named() {
        let own = std::env::current_exe().unwrap();
        let dir = std::env::temp_dir().join(format!("rnet-path-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let advice = || path_advice(&own, dir.as_os_str());
        let text = advice().unwrap();
        assert!(text.ends_with(&format!("RNET_LINK={}", own.display())), "{text}");
        std::fs::write(dir.join("rnet-link"), "").unwrap();
        assert_eq!(advice(), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
