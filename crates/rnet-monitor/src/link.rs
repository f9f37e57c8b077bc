//! The status of the link, which it publishes on a topic of this host.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::Message;
use rnet::inspect::{Observation, Observer, PublisherInfo, Snapshot};
use rnet::msgs::link_status::{Cause, Certificate, Direction, Peer, State};
use rnet::msgs::{LinkStatus, Timestamp, duration_to_ns, timestamp_to_ns};

use crate::findings::Findings;
use rnet_format::text::{count_text, escape_controls};
use rnet_keys::EXPIRY_WARNING;

/// The topic of the link's status.
pub const STATUS_TOPIC: &str = "/_rnet/link";
/// A link publishes its status each second; without a status for this long it is stuck.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(5);
/// A connected host identifies itself within a fraction of a second.
const CONNECTING_LIMIT: Duration = Duration::from_secs(5);
/// A message that waits longer before it crosses the link is stale for its receivers.
const MAX_QUEUE_AGE: Duration = Duration::from_secs(1);
const TYPE: &str = "rnet.msgs.LinkStatus";

/// The last status of the domain's link; if one takes over from another, that of the later one.
pub fn last_status(snapshot: &Snapshot) -> Option<LinkStatus> {
    let publishers = snapshot
        .publishers
        .iter()
        .filter(|p| p.topic == STATUS_TOPIC && p.via.is_none() && p.type_desc.name() == Some(TYPE));
    let words = publishers.filter_map(last_message::<LinkStatus>).map(|(status, _)| status);
    words.max_by_key(|status| status.term)
}

/// The last message of a publisher that sends rarely, and its time.
pub(crate) fn last_message<M: Message + Default>(publisher: &PublisherInfo) -> Option<(M, u64)> {
    let mut observer = Observer::open(publisher.path.clone(), publisher.id, true).ok()?;
    let (mut bytes, mut last) = (Vec::new(), None);
    loop {
        match observer.poll(&mut bytes) {
            Observation::Message(stamp) => {
                let said = M::decode(bytes.as_slice()).ok();
                last = said.map(|said| (said, stamp.sent_ns)).or(last);
            }
            // A long message that was overwritten: later ones exist.
            Observation::Missed(_) => {}
            Observation::Nothing | Observation::Corrupt(_) | Observation::Shortage(_) => {
                return last;
            }
        }
    }
}

/// Time since a moment.
pub fn elapsed_since(moment: Option<&Timestamp>) -> Option<Duration> {
    let then = Duration::from_nanos(timestamp_to_ns(moment?)?.try_into().ok()?);
    SystemTime::now().duration_since(UNIX_EPOCH).ok()?.checked_sub(then)
}

/// Time since the last status, if the link is stuck.
pub fn silence(status: &LinkStatus) -> Option<Duration> {
    elapsed_since(status.timestamp.as_ref()).filter(|silent| *silent > SILENCE_LIMIT)
}

/// The name of this host, from its link or else from the system.
pub fn own_host(snapshot: &Snapshot) -> String {
    own_host_of(last_status(snapshot).as_ref())
}

/// The same for a known last status.
pub(crate) fn own_host_of(status: Option<&LinkStatus>) -> String {
    let of_system = || {
        let set = std::env::var("RNET_HOST").ok().filter(|name| !name.is_empty());
        let name = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        set.or_else(name).map_or_else(|| "-".to_owned(), |name| name.trim().to_owned())
    };
    status
        .map(|status| status.host.clone())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(of_system)
}

/// The host and the node of a displayed node name: `@host/node` behind a proxy.
pub fn host_of(node: &str) -> (Option<&str>, &str) {
    let parts = node.strip_prefix('@').and_then(|rest| rest.split_at_checked(rest.find('/')?));
    parts.map_or((None, node), |(host, name)| (Some(host), name))
}

/// One of several hosts.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it is this host: the names of its nodes have no host.
    pub is_own: bool,
}

impl Host<'_> {
    /// Whether a node, by its displayed name, belongs to this host.
    pub fn has(&self, node: &str) -> bool {
        match host_of(node).0 {
            Some(host) => host == self.name,
            None => self.is_own,
        }
    }
}

/// Description of a link that reaches other hosts without keys.
pub const INSECURE: &str =
    "the link is neither encrypted nor authenticated: anyone who reaches its ports can take part";

const CHECK: &str = "network";
/// The most missing rights that `rnet doctor` lists.
const MAX_MISSING_RIGHTS: usize = 4;

/// Seconds until a certificate expires; negative if it has expired, `None` if it does not name a time.
pub fn expires_in_s(certificate: &Certificate) -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(certificate.expires.as_ref()?.seconds.saturating_sub(now.as_secs().try_into().ok()?))
}

/// The certificates that expire soon or have expired: of this host and of connected ones, as text, and whether
/// they have expired.
pub fn expiring(status: &LinkStatus) -> Vec<(String, bool)> {
    let own = status.certificate.iter().map(|one| (format!("this host ({})", status.host), one));
    let others = status
        .peers
        .iter()
        .filter_map(|peer| Some((format!("host {}", peer.host), peer.certificate.as_ref()?)));
    let remark = |(host, certificate): (String, &Certificate)| {
        let left_s = expires_in_s(certificate)?;
        let end = match u64::try_from(left_s) {
            Err(_) => "has expired".to_owned(),
            Ok(left_s) if left_s >= EXPIRY_WARNING.as_secs() => return None,
            Ok(left_s) => format!("expires in {}", count_text(left_s / 86_400, "day")),
        };
        Some((format!("the certificate of {} {end}", escape_controls(&host)), left_s < 0))
    };
    own.chain(others).filter_map(remark).collect()
}

/// What prevents that a certificate expires.
const RENEW: &str = "on the authority's machine, run rnet keys add-host with the host's name and its rights, and copy the \
     new keys file to it";

/// What certificates do not allow, each once.
pub fn missing_rights(peers: &[Peer]) -> BTreeSet<&str> {
    let topics = peers.iter().flat_map(|peer| &peer.topics);
    let missing = topics.filter(|topic| topic.held_back() == Cause::Rights);
    missing.map(|topic| topic.held_back_text.as_str()).collect()
}

/// Reports a configured network without its program. The error of [`rnet::link::find_program`] has the remedy.
pub fn report_missing_program(findings: &mut Findings, why: String) {
    if let Some(asked_by) = rnet::link::configured_by() {
        let what = format!(
            "a network is configured ({}), but the program rnet-link was not found",
            escape_controls(&asked_by)
        );
        findings.problem(CHECK, what, why);
    }
}

/// Checks that the link itself is running: the last status of a stuck link may be outdated.
pub fn check_alive(findings: &mut Findings, status: &LinkStatus) {
    let (host, pid) = (escape_controls(&status.host), status.pid);
    match silence(status) {
        None => findings
            .ok(CHECK, format!("process {pid} links this host as {host}, in term {}", status.term)),
        Some(silent) => findings.problem(
            CHECK,
            format!(
                "the link, process {pid}, hangs or is stopped: it has sent no status for {} s",
                silent.as_secs()
            ),
            format!("kill {pid}: a standby takes over, or the next node starts another link"),
        ),
    }
}

/// Reports that the link of a domain with nodes was killed, without a successor.
pub fn report_killed(findings: &mut Findings, pid: u32) {
    findings.problem(
        CHECK,
        format!("the link, process {pid}, was killed, and no other link runs: other hosts are unreachable"),
        "a running node starts another within a second; rnet link start starts one now and reports what \
         prevents it",
    );
}

/// Checks the link's status of its hosts and of itself.
pub fn check_peers(findings: &mut Findings, status: &LinkStatus) {
    if status.insecure {
        findings.note_with(CHECK, INSECURE, "keep its ports on a private network");
    }
    for (text, is_over) in expiring(status) {
        match is_over {
            true => findings.problem(CHECK, text, RENEW),
            false => findings.note_with(CHECK, text, RENEW),
        }
    }
    let missing = missing_rights(&status.peers);
    for text in missing.iter().take(MAX_MISSING_RIGHTS) {
        findings.note(CHECK, escape_controls(text).into_owned());
    }
    if let Some(more @ 1..) = missing.len().checked_sub(MAX_MISSING_RIGHTS) {
        let more = count_text(more as u64, "more right");
        findings.note(CHECK, format!("{more} missing: rnet link status --all lists them"));
    }
    for peer in &status.peers {
        let name = match (peer.host.is_empty(), peer.address.is_empty()) {
            (true, true) => peer.id.clone(),
            (true, false) => peer.address.clone(),
            (false, true) => peer.host.clone(),
            (false, false) => format!("{} ({})", peer.host, peer.address),
        };
        let (name, text) = (escape_controls(&name), escape_controls(&peer.text));
        match peer.state() {
            State::Connected if peer.version != rnet::VERSION && !peer.version.is_empty() => {
                findings.note(
                    CHECK,
                    format!(
                        "host {name} is connected with version {}; this host has {}",
                        escape_controls(&peer.version),
                        rnet::VERSION
                    ),
                )
            }
            State::Connected => {
                findings.ok(CHECK, format!("host {name} is connected"));
                if !text.is_empty() {
                    let advice = "run rnet link status and rnet doctor on that host for its view";
                    findings.note_with(CHECK, format!("host {name}: {text}"), advice);
                }
                report_denied(findings, &escape_controls(&peer.host), peer);
                report_old_messages(findings, &escape_controls(&peer.host), peer);
            }
            State::Refused => findings.problem(
                CHECK,
                format!("host {name} is refused: {text}"),
                "fix the given reason; otherwise run the same version of rnet on both hosts",
            ),
            State::Lost => {
                let what = format!("host {name} was connected and no longer responds: {text}");
                findings.problem(
                    CHECK,
                    what.trim_end_matches(": "),
                    "check that the host runs, and check the cable",
                );
            }
            State::Connecting => check_connecting(findings, &name, &text, peer),
            State::Unspecified => {}
        }
    }
    for problem in &status.problems {
        findings.problem(
            CHECK,
            escape_controls(problem).into_owned(),
            "rnet link status shows more",
        );
    }
}

/// Checks a host whose link is visible, but has not identified itself.
fn check_connecting(findings: &mut Findings, name: &str, text: &str, peer: &Peer) {
    let Some(since) = elapsed_since(peer.since.as_ref()).filter(|since| *since > CONNECTING_LIMIT)
    else {
        return;
    };
    let id = if name.is_empty() { escape_controls(&peer.id) } else { name.into() };
    let why = if text.is_empty() { "it has not identified itself" } else { text };
    let seconds = since.as_secs();
    findings.problem(
        CHECK,
        format!("host {id} has been visible for {seconds} s, but the two hosts do not receive each other: \
                 {why}"),
        "check whether a firewall blocks one of the two ports (the link uses the configured port and the \
         next one), whether the link of that host hangs (run rnet doctor there), and whether both hosts run \
         the same release",
    );
}

/// Reports topics that a rule of this host does not let cross.
fn report_denied(findings: &mut Findings, host: &str, peer: &Peer) {
    for topic in peer.topics.iter().filter(|topic| topic.held_back() == Cause::Rule) {
        let way = match topic.direction() {
            Direction::In => "comes from",
            Direction::Out | Direction::Unspecified => "goes to",
        };
        let (name, rule) = (escape_controls(&topic.name), escape_controls(&topic.held_back_text));
        findings.note(CHECK, format!("nothing of {name} {way} host {host}: {rule} forbids it"));
    }
}

/// Reports topics whose messages wait too long before they cross.
fn report_old_messages(findings: &mut Findings, host: &str, peer: &Peer) {
    for topic in &peer.topics {
        let waited = topic.waited.as_ref().and_then(duration_to_ns).unwrap_or_default();
        let waited = Duration::from_nanos(waited.try_into().unwrap_or_default());
        if waited >= MAX_QUEUE_AGE {
            let name = escape_controls(&topic.name);
            let seconds = waited.as_secs_f64();
            findings.note_with(
                CHECK,
                format!("messages of {name} wait {seconds:.1} s before the link sends them to host {host}"),
                format!(
                    "if only the newest matters, set newest_only = true for {name} under [[network.topic]] \
                     in robot.toml; otherwise send less, or less often"
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use rnet::msgs::duration_from_ns;
    use rnet::msgs::link_status::Topic;

    use super::*;

    #[test]
    fn reports_stale_topics_with_advice() {
        let topic = |name: &str, ns: i64| {
            let waited = (ns > 0).then(|| duration_from_ns(ns));
            Topic { name: name.to_owned(), waited, ..Topic::default() }
        };
        let topics = vec![
            topic("/image\u{1b}", 12_340_000_000),
            topic("/scan", 999_000_000),
            topic("/imu", 0),
            topic("/wrong", -5),
        ];
        let peer = Peer { host: "laptop".to_owned(), topics, ..Peer::default() };
        let mut findings = Findings::default();
        report_old_messages(&mut findings, "laptop", &peer);
        let [found] = &findings.0[..] else { panic!("{findings:?}") };
        assert_eq!(
            found.what,
            "messages of /image\\u{1b} wait 12.3 s before the link sends them to host laptop"
        );
        let advice = found.advice.as_deref().unwrap();
        assert!(advice.contains("newest_only = true for /image\\u{1b} under"), "{advice}");
    }
}
