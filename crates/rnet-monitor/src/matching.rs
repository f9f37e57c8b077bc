//! Checks which publishers and subscribers are matched, and why messages do not arrive.

mod no_common;
mod services;

use std::collections::BTreeSet;

use rnet::inspect::{ChannelInfo, EndpointPair, Snapshot, is_internal};
use rnet::{Backlog, Lane, Reliability};

use crate::commands;
use crate::findings::Findings;
use crate::link::{Host, host_of};
use crate::publishers;
use rnet_format::suggestions::{did_you_mean, similarity_reason};
use rnet_format::text::count_text;

/// A node that was found in another domain.
#[derive(Debug)]
pub struct NodeInOtherDomain {
    /// Command line options that select its domain.
    pub domain: String,
    /// Its name.
    pub node: String,
}

/// Input of the checks of nodes.
#[derive(Debug)]
pub struct DoctorInput<'a> {
    /// The domain.
    pub snapshot: &'a Snapshot,
    /// Dead nodes that were not removed yet, including tools.
    pub dead: &'a [String],
    /// Nodes in other domains.
    pub others: &'a [NodeInOtherDomain],
}

fn is_compatible(pair: EndpointPair<'_>) -> bool {
    pair.types_known() && pair.type_mismatch().is_none() && pair.qos_mismatch().is_none()
}

/// A subscription is matched with publishers of one lane only, so a topic must not have both lanes.
fn lanes_differ(snapshot: &Snapshot, topic: &str) -> bool {
    let mut lanes = snapshot.publishers.iter().filter(|p| p.topic == topic).map(|p| p.qos.lane);
    let first = lanes.next();
    lanes.any(|lane| Some(lane) != first)
}

/// Compatible pairs that are not matched.
pub fn unmatched_pairs(snapshot: &Snapshot) -> Vec<EndpointPair<'_>> {
    snapshot
        .pairs()
        .filter(|pair| !is_internal(&pair.publisher.topic))
        .filter(|pair| is_compatible(*pair) && !pair.is_matched())
        .filter(|pair| !lanes_differ(snapshot, &pair.publisher.topic))
        .collect()
}

/// Checks all topics except internal ones, or one topic.
///
/// With a `host`, only pairs with an endpoint on that host are checked.
pub fn check_topics(
    findings: &mut Findings,
    snapshot: &Snapshot,
    topic: Option<&str>,
    host: Option<Host<'_>>,
) {
    let of_host = |node: &str| host.is_none_or(|host| host.has(node));
    let publishers = snapshot.publishers.iter().map(|p| (&p.topic, &p.node));
    let ends = publishers.chain(snapshot.subscriptions.iter().map(|s| (&s.topic, &s.node)));
    let there: BTreeSet<&str> =
        ends.filter(|(_, node)| of_host(node)).map(|(topic, _)| topic.as_str()).collect();
    let is_asked =
        |t: &&str| topic.map_or(!is_internal(t), |asked| asked == *t) && there.contains(*t);
    let topics: Vec<&str> = snapshot.topics().into_iter().filter(is_asked).collect();
    if let Some(asked) = topic
        && topics.is_empty()
    {
        let advice = did_you_mean(asked, snapshot.topics().into_iter()).unwrap_or_else(|| {
            "start the node that publishes it, in this domain; rnet topic list shows the topics"
                .to_owned()
        });
        let what = format!("topic {asked} does not exist in this domain");
        findings.problem("topic_name", what, advice);
    }
    check_one_sided(findings, snapshot, &topics, topic.is_some());
    for topic in &topics {
        check_lanes(findings, snapshot, topic);
        publishers::check_types(findings, snapshot, topic);
        publishers::check_deadline_and_liveliness(findings, snapshot, topic);
    }
    commands::check_commands(findings, snapshot, topic, rnet::now_ns());
    if topic.is_none() {
        services::check_types(findings, snapshot, of_host);
    }
    let of_interest = |pair: &EndpointPair<'_>| {
        topics.contains(&pair.publisher.topic.as_str())
            && (of_host(&pair.publisher.node) || of_host(&pair.subscription.node))
    };
    let mut well = 0;
    for pair in snapshot.pairs().filter(of_interest) {
        if diagnose(findings, snapshot, pair) {
            well += 1;
        }
    }
    match well {
        0 => {}
        1 => findings.ok("match", "one pair of publisher and subscriber is matched"),
        n => findings.ok("match", format!("{n} pairs of publisher and subscriber are matched")),
    }
}

/// Reports topics that have only publishers or only subscribers, if a topic of a similar name has only the
/// others.
fn check_one_sided(findings: &mut Findings, snapshot: &Snapshot, topics: &[&str], asked: bool) {
    let published: BTreeSet<&str> = snapshot.publishers.iter().map(|p| p.topic.as_str()).collect();
    let subscribed: BTreeSet<&str> =
        snapshot.subscriptions.iter().map(|s| s.topic.as_str()).collect();
    let is_named = |topic: &&&str| asked || !is_internal(topic);
    let only_published: Vec<&str> =
        published.difference(&subscribed).filter(is_named).copied().collect();
    let only_subscribed: Vec<&str> =
        subscribed.difference(&published).filter(is_named).copied().collect();
    let mut explained = BTreeSet::new();
    for p in &only_published {
        for s in &only_subscribed {
            if !topics.contains(p) && !topics.contains(s) {
                continue;
            }
            if let Some(why) = similarity_reason(p, s) {
                explained.extend([*p, *s]);
                let who = |topic: &str| nodes_of_topic(snapshot, topic);
                findings.problem(
                    "topic_name",
                    format!(
                        "{p} has only publishers ({}) and {s} only subscribers ({}): {why}",
                        who(p),
                        who(s)
                    ),
                    "use one name on both sides",
                );
            }
        }
    }
    for topic in topics.iter().filter(|t| !explained.contains(*t)) {
        let (what, other) = if only_published.contains(topic) {
            ("no subscriber", "publisher")
        } else if only_subscribed.contains(topic) {
            ("no publisher", "subscriber")
        } else {
            continue;
        };
        let what = format!("{topic} has {what} ({other}: {})", nodes_of_topic(snapshot, topic));
        if asked {
            let advice = "start the other side in this domain with exactly this topic name";
            findings.problem("topic_name", what, advice);
        } else {
            findings.note("topic_name", what);
        }
    }
}

/// The nodes with endpoints of the topic.
fn nodes_of_topic(snapshot: &Snapshot, topic: &str) -> String {
    let publishers = snapshot.publishers.iter().filter(|p| p.topic == topic).map(|p| &p.node);
    let subscribers = snapshot.subscriptions.iter().filter(|s| s.topic == topic).map(|s| &s.node);
    let nodes: BTreeSet<&str> = publishers.chain(subscribers).map(String::as_str).collect();
    nodes.into_iter().collect::<Vec<_>>().join(", ")
}

fn check_lanes(findings: &mut Findings, snapshot: &Snapshot, topic: &str) {
    if !lanes_differ(snapshot, topic) {
        return;
    }
    let of = |lane| {
        let nodes: BTreeSet<&str> = snapshot
            .publishers
            .iter()
            .filter(|p| p.topic == topic && p.qos.lane == lane)
            .map(|p| p.node.as_str())
            .collect();
        nodes.into_iter().collect::<Vec<_>>().join(", ")
    };
    findings.problem(
        "qos",
        format!(
            "the publishers of {topic} use different lanes: urgent in {}, bulk in {}",
            of(Lane::Urgent),
            of(Lane::Bulk)
        ),
        "use one lane per topic: a subscriber uses the lane of its first publisher and refuses publishers \
         with another one",
    );
}

/// Checks one pair; returns whether it is matched.
fn diagnose(findings: &mut Findings, snapshot: &Snapshot, pair: EndpointPair<'_>) -> bool {
    let (p, s) = (pair.publisher, pair.subscription);
    let (topic, from, to) = (&p.topic, &p.node, &s.node);
    // A matched pair has read both types, whatever happened to the files since.
    if let Some(detail) = pair.type_mismatch().filter(|_| !pair.is_matched()) {
        findings.problem(
            "type",
            format!("{to} does not receive from {from} on {topic}: the types differ: {detail}"),
            format!(
                "use the same type on both sides, or a compatible one: rnet topic info {topic} lists all \
                 differences; rnet type check finds them before deployment"
            ),
        );
        return false;
    }
    if let Some(why) = pair.qos_mismatch() {
        // The text ends with the side that must change.
        let (what, advice) = why.rsplit_once(": ").unwrap_or((&why, "change one of the two"));
        let what = format!("{to} does not receive from {from} on {topic}: {what}");
        findings.problem("qos", what, advice);
        return false;
    }
    let Some(channel) = pair.channel().filter(|_| pair.is_matched()) else {
        if !pair.types_known() {
            let what = format!(
                "{to} and {from} are not matched on {topic}, and the reason is unknown because a type could not be read"
            );
            findings.note("type", what);
        } else if !lanes_differ(snapshot, topic) {
            let (what, advice) = if pair.channel().is_some() && p.detached > 0 {
                (
                    format!("{from} detached {to} on {topic} because it had not read for too long"),
                    format!("let {to} receive more often; it is attached again when it reads"),
                )
            } else {
                let what = format!("{to} and {from} are compatible on {topic}, but not matched");
                let advice = "one of the two processes is blocked, or the publisher already has 512 \
                              subscribers, the limit: check their errors, and restart the process that \
                              hangs";
                (what, advice.to_owned())
            };
            findings.problem("match", what, advice);
        }
        return false;
    };
    if channel.late_wakes > 0 {
        findings.problem(
            "late_wakes",
            format!(
                "{to} was woken late {} on {topic} from {from}: doorbells get lost",
                count_text(channel.late_wakes, "time")
            ),
            "check for a seccomp filter that denies futex(2) or membarrier(2) to one of them, and for \
             different versions of robot-net",
        );
    }
    if channel.malformed > 0 {
        findings.problem(
            "malformed",
            format!(
                "{to} could not decode {} on {topic} from {from}: the payload does not match the type declared by {from}",
                count_text(channel.malformed, "message")
            ),
            format!(
                "check what {from} sends: rnet topic echo {topic} shows the byte and the field, --raw shows \
                 all bytes"
            ),
        );
    }
    if channel.expired > 0 {
        let lifespan = p.qos.lifespan.unwrap_or_default();
        findings.note(
            "lifespan",
            format!(
                "{to} did not receive {} on {topic} from {from}, older than the lifespan {lifespan:?}",
                count_text(channel.expired, "message")
            ),
        );
    }
    if channel.deadline_missed > 0 {
        findings.note(
            "deadline",
            format!(
                "{to} received nothing on {topic} from {from} in {} of its deadline",
                count_text(channel.deadline_missed, "period")
            ),
        );
    }
    if channel.lost.total() > 0 {
        findings.note("loss", format!("{to} on {topic} from {from}: {}", channel.lost));
    }
    check_lag(findings, pair, channel);
    true
}

/// Minimum age of the oldest unread message of a lagging subscriber.
const LAG_NS: u64 = 1_000_000_000;

/// Reports a subscriber that has not read for long.
fn check_lag(findings: &mut Findings, pair: EndpointPair<'_>, channel: &ChannelInfo) {
    let (p, s) = (pair.publisher, pair.subscription);
    let behind = channel.behind;
    if behind.messages == 0 || behind.age_ns < LAG_NS {
        return;
    }
    let (to, from, topic) = (&s.node, &p.node, &p.topic);
    let what = format!("{to} lags on {topic} from {from}: it is {behind}");
    if s.qos.reliability == Reliability::Reliable && p.full > 0 {
        findings.problem(
            "lag",
            format!("{what}, and it has blocked {from}"),
            format!(
                "let {to} receive more often, or in its own thread, or as best_effort; on_full sets what \
                 {from} does meanwhile"
            ),
        );
    } else {
        findings.note("lag", what);
    }
}

/// Checks why `a` does not receive from `b`.
pub fn check_two_nodes(
    findings: &mut Findings,
    known: &DoctorInput<'_>,
    a: &str,
    b: &str,
    topic: Option<&str>,
) {
    let both = [a, b].map(|name| check_node_exists(findings, known, name));
    if both != [true, true] {
        return;
    }
    if let (Some(host), Some(_)) = (host_of(a).0, host_of(b).0) {
        let what = format!(
            "{a} and {b} are both on other hosts: their messages to each other do not pass this host"
        );
        return findings.note_with("match", what, format!("run rnet doctor on {host}"));
    }
    let snapshot = known.snapshot;
    let asked = |t: &str| topic.is_none_or(|asked| asked == t);
    let is_between = |pair: &EndpointPair<'_>, to: &str, from: &str| {
        pair.subscription.node == to && pair.publisher.node == from
    };
    let between: Vec<EndpointPair<'_>> = snapshot
        .pairs()
        .filter(|pair| is_between(pair, a, b) && asked(&pair.publisher.topic))
        .collect();
    if between.is_empty() {
        no_common::explain_no_common_topic(findings, snapshot, a, b, topic);
    }
    for pair in between {
        let p = pair.publisher;
        check_lanes(findings, snapshot, &p.topic);
        if !diagnose(findings, snapshot, pair) {
            continue;
        }
        let Some(channel) = pair.channel() else { continue };
        let receives = format!("{a} receives from {b} on {}", p.topic);
        if pair.subscription.via.is_some() {
            let what =
                format!("{receives} through the link: its host counts the received messages");
            findings.ok("match", what);
            continue;
        }
        match (p.sent, channel.received, channel.behind) {
            (0, ..) => {
                findings.note("match", format!("{receives}, but {b} has not sent anything yet"))
            }
            (_, 0, Backlog { messages: 0, .. }) => findings.note(
                "match",
                format!(
                    "{receives}; the {} messages of {b} were sent before {a} subscribed",
                    p.sent
                ),
            ),
            (_, 0, behind) => findings.problem(
                "match",
                format!("{a} is matched with {b} on {} but reads nothing: it is {behind}", p.topic),
                format!("{a} has a subscriber but does not read from it: check its code"),
            ),
            (_, received, behind) => findings.ok(
                "match",
                format!(
                    "{receives}: {received} messages received, {} skipped, {}, {behind}",
                    channel.skipped, channel.lost
                ),
            ),
        }
    }
}

/// Whether the node exists; otherwise reports where it may be.
fn check_node_exists(findings: &mut Findings, known: &DoctorInput<'_>, name: &str) -> bool {
    let remote = || known.snapshot.remote.iter().map(|node| node.node.as_str());
    if known.snapshot.node(name).is_some() || remote().any(|node| node == name) {
        return true;
    }
    let what = format!("node {name} is not in this domain");
    let here = known.snapshot.nodes.iter().map(|n| n.meta.name.as_str()).chain(remote());
    if let Some(other) = known.others.iter().find(|o| o.node == name) {
        let advice = format!(
            "it is in another domain ({}): nodes of different domains do not connect; set the same \
             RNET_DOMAIN for both",
            other.domain
        );
        findings.problem("other_domain", what, advice);
    } else if known.dead.iter().chain(&known.snapshot.died).any(|dead| dead == name) {
        let advice =
            "its process died without leaving the domain: check its last output and restart it";
        findings.problem("dead", format!("{what} any more"), advice);
    } else {
        let advice = did_you_mean(name, here)
            .unwrap_or_else(|| "start it; rnet node list shows the nodes of the domain".to_owned());
        findings.problem("node", what, advice);
    }
    false
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::findings::Level;
    use rnet::inspect::{AdmittedSubscription, PublisherInfo, SubscriptionInfo};
    use rnet::{LossCounts, ProtobufType, PublisherQos, SubscriberQos, TypeDesc};

    /// A matched publisher and subscription.
    pub fn matched() -> Snapshot {
        let publisher = PublisherInfo {
            id: 1,
            topic: "/t".to_owned(),
            node: "/mouth".to_owned(),
            via: None,
            stands_for: None,
            type_desc: TypeDesc::Raw,
            schema: None,
            type_error: None,
            qos: PublisherQos::default(),
            sent: 9,
            bytes: 9,
            readers: 1,
            admitted: vec![AdmittedSubscription { subscription: 2, start_seq: 0 }],
            full: 0,
            refused: 0,
            detached: 0,
            known_lost: LossCounts::default(),
            deadline_missed: 0,
            silent_ns: None,
            last_will_len: None,
            memory_bytes: 0,
            path: "".into(),
        };
        let channel = ChannelInfo {
            publisher: 1,
            received: 9,
            bytes: 9,
            lost: LossCounts::default(),
            malformed: 0,
            skipped: 0,
            expired: 0,
            deadline_missed: 0,
            behind: Backlog::default(),
            pinned: 0,
            asleep: false,
            max_latency_ns: 0,
            mean_latency_ns: 0,
            late_wakes: 0,
            latency: Vec::new(),
            cursor: 0,
            next_seq: 9,
        };
        let subscription = SubscriptionInfo {
            id: 2,
            topic: "/t".to_owned(),
            node: "/ear".to_owned(),
            via: None,
            endpoint_count: 1,
            forwards: None,
            type_desc: TypeDesc::Raw,
            schema: None,
            type_error: None,
            qos: SubscriberQos::default(),
            channels: vec![channel],
            past: None,
        };
        Snapshot {
            publishers: vec![publisher],
            subscriptions: vec![subscription],
            ..Snapshot::default()
        }
    }

    fn problems(snapshot: &Snapshot) -> Vec<&'static str> {
        let mut findings = Findings::default();
        check_topics(&mut findings, snapshot, None, None);
        let bad = findings.0.into_iter().filter(|f| f.level == Level::Problem);
        bad.inspect(|f| assert!(f.advice.is_some())).map(|f| f.check).collect()
    }

    #[test]
    fn reports_late_wakes_and_unmatched_pairs() {
        let mut snapshot = matched();
        assert!(problems(&snapshot).is_empty() && unmatched_pairs(&snapshot).is_empty());
        snapshot.subscriptions[0].channels[0].late_wakes = 3;
        assert_eq!(problems(&snapshot), ["late_wakes"]);
        snapshot.publishers[0].admitted.clear();
        assert_eq!(unmatched_pairs(&snapshot).len(), 1);
        snapshot.subscriptions[0].channels.clear();
        assert_eq!(unmatched_pairs(&snapshot).len(), 1);
        assert_eq!(problems(&snapshot), ["match"]);
        // An incompatible pair is unmatched for a reason, which is reported instead.
        snapshot.subscriptions[0].qos.transient_local = true;
        assert!(unmatched_pairs(&snapshot).is_empty());
        assert_eq!(problems(&snapshot), ["qos"]);
    }

    #[test]
    fn pairs_of_other_hosts_are_not_checked_here() {
        let mut snapshot = matched();
        snapshot.publishers[0].admitted.clear();
        snapshot.subscriptions[0].channels.clear();
        assert_eq!(problems(&snapshot), ["match"]);
        snapshot.publishers[0].via = Some("/_rnet/link".to_owned());
        assert_eq!(problems(&snapshot), ["match"], "the subscriber is on this host");
        snapshot.subscriptions[0].via = Some("/_rnet/link".to_owned());
        assert_eq!(problems(&snapshot), [""; 0]);
        // Not even if they are incompatible.
        snapshot.subscriptions[0].qos.transient_local = true;
        assert_eq!(problems(&snapshot), [""; 0]);
        assert!(unmatched_pairs(&snapshot).is_empty());
        snapshot.publishers[0].via = None;
        assert_eq!(problems(&snapshot), ["qos"]);
    }

    #[test]
    fn lagging_subscriber_is_problem_once_it_blocks_publisher() {
        let mut snapshot = matched();
        let lags = |snapshot: &Snapshot| {
            let mut findings = Findings::default();
            check_topics(&mut findings, snapshot, None, None);
            findings.0.into_iter().find(|f| f.check == "lag").map(|f| (f.level, f.what))
        };
        snapshot.subscriptions[0].channels[0].behind = Backlog { messages: 9, age_ns: LAG_NS - 1 };
        assert_eq!(lags(&snapshot), None);
        snapshot.subscriptions[0].channels[0].behind.age_ns = 2 * LAG_NS;
        let what = "/ear lags on /t from /mouth: it is 9 messages behind, the oldest 2000 ms old";
        assert_eq!(lags(&snapshot), Some((Level::Note, what.to_owned())));
        snapshot.subscriptions[0].qos.reliability = Reliability::Reliable;
        snapshot.publishers[0].qos.reliability = Reliability::Reliable;
        assert_eq!(lags(&snapshot).map(|(level, _)| level), Some(Level::Note));
        snapshot.publishers[0].full = 1;
        assert_eq!(problems(&snapshot), ["lag"]);
    }

    #[test]
    fn unread_type_is_not_a_problem() {
        let mut snapshot = matched();
        let named = |schema: &str| {
            TypeDesc::Protobuf(ProtobufType { name: "demo.Level".into(), schema: schema.into() })
        };
        snapshot.publishers[0].type_desc = named("0");
        snapshot.subscriptions[0].type_desc = named("1");
        let found = snapshot.compare_types("/t").remove(0);
        assert!(found.compatible && !found.compared && found.changes.is_empty());
        assert_eq!(problems(&snapshot), [""; 0]);
        // Unmatched for an unknown reason.
        let channels = std::mem::take(&mut snapshot.subscriptions[0].channels);
        assert!(unmatched_pairs(&snapshot).is_empty());
        assert_eq!(problems(&snapshot), [""; 0]);
        // An unreadable type prevents matching; a matched pair was able to read it before.
        snapshot.publishers[0].type_error = Some("no type at all".to_owned());
        let found = snapshot.compare_types("/t").remove(0);
        assert!(!found.compatible && found.compared && found.changes[0].breaking);
        assert!(found.changes[0].publisher.ends_with("which cannot be read: no type at all"));
        assert_eq!(problems(&snapshot), ["type"]);
        snapshot.subscriptions[0].channels = channels;
        assert_eq!(problems(&snapshot), [""; 0]);
    }

    #[test]
    fn reports_other_direction_only_if_matched() {
        let mut snapshot = matched();
        let notes = |snapshot: &Snapshot| {
            let mut findings = Findings::default();
            no_common::explain_no_common_topic(&mut findings, snapshot, "/mouth", "/ear", None);
            findings.0.into_iter().filter(|f| f.level == Level::Note).map(|f| f.what).collect()
        };
        let all: Vec<String> = notes(&snapshot);
        assert_eq!(all, ["the other direction works: /ear receives from /mouth"]);
        // Their types or their quality of service differ, or one of them hangs.
        snapshot.publishers[0].admitted.clear();
        let all: Vec<String> = notes(&snapshot);
        assert_eq!(all, [""; 0]);
    }
}
