//! What the link says of itself, on a topic that stays on the host.

use prost::Message;
use rnet::inspect::{Observer, Seen, Snapshot};
use rnet::msgs::LinkStatus;
use rnet::msgs::link_status::{Cause, Direction, Peer, State};

use crate::findings::Findings;
use crate::text::tame;

/// The topic of the link's status.
pub const TOPIC: &str = "/_rnet/link";
const TYPE: &str = "rnet.msgs.LinkStatus";

/// The last word of the domain's link; of two, while one takes over, that of the later.
pub fn last(snapshot: &Snapshot) -> Option<LinkStatus> {
    let publishers = snapshot
        .publishers
        .iter()
        .filter(|p| p.topic == TOPIC && p.via.is_none() && p.type_desc.name() == Some(TYPE));
    let words = publishers.filter_map(|publisher| {
        let mut observer = Observer::open(publisher.path.clone(), publisher.id, true).ok()?;
        let (mut bytes, mut last) = (Vec::new(), None);
        // It says no more than one in a second, and what its log holds is soon read.
        while let Seen::Message(_) = observer.poll(&mut bytes) {
            last = LinkStatus::decode(bytes.as_slice()).ok().or(last);
        }
        last
    });
    words.max_by_key(|status| status.term)
}

/// The name of this host: as its link has it, else as the system.
pub fn own_host(snapshot: &Snapshot) -> String {
    let of_system = || {
        let set = std::env::var("RNET_HOST").ok().filter(|name| !name.is_empty());
        let name = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        set.or_else(name).map_or_else(|| "-".to_owned(), |name| name.trim().to_owned())
    };
    last(snapshot)
        .map(|status| status.host)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(of_system)
}

/// The host and the node of a name as nodes are shown: `@host/node` behind a proxy.
pub fn host_of(node: &str) -> (Option<&str>, &str) {
    let parts = node.strip_prefix('@').and_then(|rest| rest.split_at_checked(rest.find('/')?));
    parts.map_or((None, node), |(host, name)| (Some(host), name))
}

const CHECK: &str = "network";

/// What the link says of the hosts that it knows, and of itself.
pub fn peers(findings: &mut Findings, status: &LinkStatus) {
    for peer in &status.peers {
        let name = match (peer.host.is_empty(), peer.address.is_empty()) {
            (true, _) => peer.address.clone(),
            (false, true) => peer.host.clone(),
            (false, false) => format!("{} ({})", peer.host, peer.address),
        };
        let (name, text) = (tame(&name), tame(&peer.text));
        match peer.state() {
            State::Connected if peer.version != rnet::VERSION && !peer.version.is_empty() => {
                findings.note(
                    CHECK,
                    format!(
                        "host {name} is connected, of version {}; this is {}",
                        tame(&peer.version),
                        rnet::VERSION
                    ),
                )
            }
            State::Connected => {
                findings.ok(CHECK, format!("host {name} is connected"));
                denied(findings, &tame(&peer.host), peer);
            }
            State::Refused => findings.problem(
                CHECK,
                format!("host {name} is refused: {text}"),
                "run one version of rnet on both hosts, and one configuration",
            ),
            State::Lost => {
                let what = format!("host {name} was connected and is not heard any more: {text}");
                findings.problem(
                    CHECK,
                    what.trim_end_matches(": "),
                    "look whether it runs, and at the cable",
                );
            }
            State::Connecting | State::Unspecified => {}
        }
    }
    for problem in &status.problems {
        findings.problem(CHECK, tame(problem).into_owned(), "rnet link status shows more");
    }
}

/// Topics that a rule of this host keeps from crossing.
fn denied(findings: &mut Findings, host: &str, peer: &Peer) {
    for topic in peer.topics.iter().filter(|topic| topic.held_back() == Cause::Rule) {
        let way = match topic.direction() {
            Direction::In => "comes from",
            Direction::Out | Direction::Unspecified => "goes to",
        };
        let (name, rule) = (tame(&topic.name), tame(&topic.held_back_text));
        findings.note(CHECK, format!("nothing of {name} {way} host {host}: {rule} forbids it"));
    }
}
