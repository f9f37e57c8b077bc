//! Publishers and subscriptions in lines. The first line of each is its heading.

use std::time::Duration;

use rnet::inspect::{ChannelInfo, PublisherInfo, Snapshot, SubscriptionInfo};
use rnet::{Durability, Lane, Liveliness, OnFull, Reliability, TypeDesc, Wait};
use rnet_format::types::layout;
use rnet_format::units;

use crate::link::host_of;
use crate::type_name;

/// A publisher in lines; `own` is the name of this host, where hosts are to be named. `bad` styles what is wrong.
#[must_use]
pub fn publisher_lines(
    p: &PublisherInfo,
    own: Option<&str>,
    bad: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut lines = header_lines(&p.node, own, "PUBLISHER", p.id, &p.type_desc);
    if let Some(via) = &p.via {
        lines.push(format!("Proxy: in {via}"));
    }
    lines.push("QoS profile:".to_owned());
    let reliability = match (p.qos.reliability, p.qos.on_full) {
        (Reliability::BestEffort, _) => "BEST_EFFORT".to_owned(),
        (Reliability::Reliable, OnFull::Wait(t)) => format!("RELIABLE (when full: wait {t:?})"),
        (Reliability::Reliable, OnFull::Refuse) => "RELIABLE (when full: refuse)".to_owned(),
        (Reliability::Reliable, OnFull::Detach { stall }) => {
            format!("RELIABLE (when full: detach after a stall of {stall:?})")
        }
    };
    let durability = match p.qos.durability {
        Durability::Volatile => "VOLATILE".to_owned(),
        Durability::TransientLocal { depth } => format!("TRANSIENT_LOCAL (depth {depth})"),
    };
    lines.push(format!("  Reliability: {reliability}"));
    lines.push(format!("  Durability: {durability}"));
    lines.push(format!("  Lane: {}", lane_name(p.qos.lane)));
    if let Some(lifespan) = p.qos.lifespan {
        lines.push(format!("  Lifespan: {lifespan:?}"));
    }
    add_deadline_and_liveliness(&mut lines, p.qos.deadline, p.qos.liveliness);
    lines.push(format!(
        "  Log: {}, pool up to {}, large messages kept: {}",
        units::bytes(p.qos.log_len_bytes as f64),
        units::bytes(p.qos.pool_limit_bytes as f64),
        p.qos.large_depth
    ));
    lines.push(format!(
        "Sent: {} messages, {}; served subscribers: {}; shared memory: {}",
        p.sent,
        units::bytes(p.bytes as f64),
        p.readers,
        units::bytes(p.memory_bytes as f64)
    ));
    if p.known_lost.total() > 0 {
        lines.push(format!("Known missing: {}", p.known_lost));
    }
    if let Some(len) = p.last_will_len {
        lines.push(format!("Last will: {len} bytes"));
    }
    if p.deadline_missed > 0 {
        lines.push(format!("Deadline missed: {} times", p.deadline_missed));
    }
    if let Some(silent_ns) = p.silent_ns {
        let word = if p.is_alive() { "yes".to_owned() } else { bad("NO") };
        let silent = Duration::from_millis(silent_ns / 1_000_000);
        lines.push(format!("Alive: {word}, last asserted {silent:?} ago"));
    }
    if p.full + p.refused + p.detached > 0 {
        lines.push(format!(
            "Blocked on a full log: {} times; refused: {} messages; detached: {} subscribers",
            p.full, p.refused, p.detached
        ));
    }
    lines.push(String::new());
    lines
}

/// A subscription: lines, and the cells of what it received by publisher.
#[must_use]
pub fn subscription_lines(
    s: &SubscriptionInfo,
    all: &Snapshot,
    own: Option<&str>,
) -> (Vec<String>, Vec<Vec<String>>) {
    let kind =
        if s.forwards.is_some() { "FORWARDER (of the link, not counted)" } else { "SUBSCRIPTION" };
    let mut lines = header_lines(&s.node, own, kind, s.id, &s.type_desc);
    if let Some(via) = &s.via {
        lines.push(format!("Proxy: in {via}, for {} subscriptions", s.endpoint_count));
    }
    lines.push("QoS profile:".to_owned());
    let reliability = match s.qos.reliability {
        Reliability::BestEffort => "BEST_EFFORT",
        Reliability::Reliable => "RELIABLE",
    };
    let durability = if s.qos.transient_local { "TRANSIENT_LOCAL" } else { "VOLATILE" };
    let history = match s.qos.depth() {
        Some(depth) => format!("KEEP_LAST ({depth})"),
        None => "KEEP_ALL (limited by the log)".to_owned(),
    };
    let wait = match s.qos.wait {
        Wait::Spin => "spin",
        Wait::Adaptive => "adaptive",
        Wait::Block => "block",
    };
    lines.push(format!("  Reliability: {reliability}"));
    lines.push(format!("  History (Depth): {history}"));
    lines.push(format!("  Durability: {durability}"));
    lines.push(format!("  Lane: {}", s.qos.lane.map_or("same as the publisher", lane_name)));
    lines.push(format!("  Wait: {wait}"));
    add_deadline_and_liveliness(&mut lines, s.qos.deadline, s.qos.liveliness);
    let from = |c: &ChannelInfo| all.publishers.iter().find(|p| p.id == c.publisher);
    let named = |c| (from(c).map_or("a publisher that left", |p| p.node.as_str()), c);
    let gone = s.past.iter().map(|past| ("publishers that left", past));
    let gone = gone.filter(|(_, past)| past.received + past.skipped + past.lost.total() > 0);
    let rows = s.channels.iter().map(named).chain(gone).map(channel_row).collect();
    (lines, rows)
}

fn channel_row((from, c): (&str, &ChannelInfo)) -> Vec<String> {
    let also = [
        (c.expired, "expired"),
        (c.malformed, "malformed"),
        (c.deadline_missed, "deadlines missed"),
    ];
    let also = also.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"));
    // `2 lost (overrun 2)`, below a title that says lost.
    let (lost, behind) = (c.lost.to_string(), c.behind.to_string());
    vec![
        from.to_owned(),
        c.received.to_string(),
        c.skipped.to_string(),
        lost.replacen(" lost", "", 1),
        behind.replacen(" messages behind", "", 1).replacen(" message behind", "", 1),
        also.collect::<Vec<_>>().join(", "),
    ]
}

/// Deadline and liveliness, where they are not the defaults.
fn add_deadline_and_liveliness(
    lines: &mut Vec<String>,
    deadline: Option<Duration>,
    liveliness: Liveliness,
) {
    if let Some(deadline) = deadline {
        lines.push(format!("  Deadline: {deadline:?}"));
    }
    match liveliness {
        Liveliness::Automatic => {}
        Liveliness::ManualByTopic { lease } => {
            lines.push(format!("  Liveliness: MANUAL_BY_TOPIC (lease {lease:?})"));
        }
    }
}

fn lane_name(lane: Lane) -> &'static str {
    match lane {
        Lane::Bulk => "bulk",
        Lane::Urgent => "urgent",
    }
}

/// The part that both kinds of endpoint have, in the order of ROS 2.
fn header_lines(
    node: &str,
    own: Option<&str>,
    kind: &str,
    id: u64,
    desc: &TypeDesc,
) -> Vec<String> {
    let mut lines = vec![format!("Node name: {node}")];
    if let Some(host) = own.map(|own| host_of(node).0.unwrap_or(own)) {
        lines.push(format!("Host: {host}"));
    }
    lines.push(format!("Topic type: {}", type_name(desc)));
    lines.push(format!("Endpoint type: {kind}"));
    lines.push(format!("GID: {id:016x}"));
    if let Some(plain) = desc.as_plain() {
        let (size, align) = (plain.size, plain.align);
        let data = if plain.tail { ", followed by data" } else { "" };
        lines.push(format!("Type layout: {size} bytes, aligned to {align}{data}"));
        lines.extend(layout(plain));
    }
    if let Some(named) = desc.as_protobuf() {
        lines.push(format!("Type hash: {}", named.schema));
    }
    lines
}
