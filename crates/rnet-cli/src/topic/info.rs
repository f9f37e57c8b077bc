//! `rnet topic info`.

use rnet::inspect::{ChannelInfo, PublisherInfo, Snapshot, SubscriptionInfo, TypeComparison};
use std::time::Duration;

use rnet::{Durability, Lane, Liveliness, OnFull, Reliability, TypeDesc, Wait};
use serde_json::json;

use super::args::TopicInfoArgs;
use super::{snapshot_with_topic, type_name, type_names};
use crate::context::Context;
use crate::failure::Outcome;
use crate::style::PROBLEM;
use crate::table;
use rnet_format::text::escape_controls;
use rnet_format::types::layout;
use rnet_monitor::link::{host_of, own_host};

pub fn run(context: &mut Context, args: TopicInfoArgs) -> Outcome {
    let topic = args.topic.as_str();
    let (_, all) = snapshot_with_topic(context, topic)?;
    let mut snapshot = all.clone();
    snapshot.publishers.retain(|p| p.topic == topic);
    snapshot.subscriptions.retain(|s| s.topic == topic);
    snapshot.forwarders.retain(|s| s.topic == topic);
    let types = type_names(&snapshot, topic);
    let comparisons = snapshot.compare_types(topic);
    // Where all are of one host, nobody needs its name.
    let nodes = snapshot.publishers.iter().map(|p| &p.node);
    let mut nodes = nodes.chain(snapshot.subscriptions.iter().map(|s| &s.node));
    let own = nodes.any(|node| host_of(node).0.is_some()).then(|| own_host(&all));
    let own = own.as_deref();
    if context.json() {
        let document = json!({
            "topic": topic,
            "types": types,
            "publishers": snapshot.publishers,
            "subscribers": snapshot.subscriptions,
            "comparisons": comparisons,
        });
        return context.document(&document);
    }
    context.line(format_args!("Type: {}", types.join(", ")))?;
    let (publishers, subscribers) = (snapshot.publishers.len(), snapshot.subscription_count(topic));
    if !args.verbose {
        context.line(format_args!("Publisher count: {publishers}"))?;
        context.line(format_args!("Subscription count: {subscribers}"))?;
        return print_comparisons(context, &comparisons);
    }
    context.line(format_args!("\nPublisher count: {publishers}\n"))?;
    for publisher in &snapshot.publishers {
        print_publisher(context, publisher, own)?;
    }
    context.line(format_args!("Subscription count: {subscribers}\n"))?;
    for subscription in snapshot.subscriptions.iter().chain(&snapshot.forwarders) {
        print_subscription(context, subscription, &snapshot, own)?;
    }
    print_comparisons(context, &comparisons)
}

/// The pairs whose types differ, whether they understand each other or not.
fn print_comparisons(context: &mut Context, comparisons: &[TypeComparison]) -> Outcome {
    let differ: Vec<&TypeComparison> =
        comparisons.iter().filter(|c| !c.changes.is_empty() || !c.compared).collect();
    if differ.is_empty() {
        return Ok(());
    }
    context.heading("Type differences:")?;
    for comparison in differ {
        let TypeComparison { publisher_node, subscriber_node, changes, .. } = comparison;
        let word = match comparison {
            TypeComparison { compared: false, .. } => "not compared: a type could not be read",
            TypeComparison { compatible: true, .. } => "compatible",
            _ => &context.styled(PROBLEM, "INCOMPATIBLE: no messages are delivered"),
        };
        context.line(format_args!("  {publisher_node} -> {subscriber_node}: {word}"))?;
        for change in changes {
            let word = if change.breaking { "breaking " } else { "" };
            // Names of fields are checked; defaults are texts of the peer.
            let change = change.to_string();
            context.line(format_args!("    {word}{}", escape_controls(&change)))?;
        }
    }
    Ok(())
}

fn print_publisher(context: &mut Context, p: &PublisherInfo, own: Option<&str>) -> Outcome {
    print_endpoint_header(context, &p.node, own, "PUBLISHER", p.id, &p.type_desc)?;
    if let Some(via) = &p.via {
        context.line(format_args!("Proxy: in {via}"))?;
    }
    context.line(format_args!("QoS profile:"))?;
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
    context.line(format_args!("  Reliability: {reliability}"))?;
    context.line(format_args!("  Durability: {durability}"))?;
    context.line(format_args!("  Lane: {}", lane_name(p.qos.lane)))?;
    if let Some(lifespan) = p.qos.lifespan {
        context.line(format_args!("  Lifespan: {lifespan:?}"))?;
    }
    print_deadline_and_liveliness(context, p.qos.deadline, p.qos.liveliness)?;
    context.line(format_args!(
        "  Log: {}, pool up to {}, large messages kept: {}",
        table::bytes(p.qos.log_len_bytes as f64),
        table::bytes(p.qos.pool_limit_bytes as f64),
        p.qos.large_depth
    ))?;
    context.line(format_args!(
        "Sent: {} messages, {}; served subscribers: {}; shared memory: {}",
        p.sent,
        table::bytes(p.bytes as f64),
        p.readers,
        table::bytes(p.memory_bytes as f64)
    ))?;
    if p.known_lost.total() > 0 {
        context.line(format_args!("Known missing: {}", p.known_lost))?;
    }
    if let Some(len) = p.last_will_len {
        context.line(format_args!("Last will: {len} bytes"))?;
    }
    if p.deadline_missed > 0 {
        context.line(format_args!("Deadline missed: {} times", p.deadline_missed))?;
    }
    if let Some(silent_ns) = p.silent_ns {
        let word = if p.is_alive() { "yes" } else { &context.styled(PROBLEM, "NO") };
        let silent = Duration::from_millis(silent_ns / 1_000_000);
        context.line(format_args!("Alive: {word}, last asserted {silent:?} ago"))?;
    }
    if p.full + p.refused + p.detached > 0 {
        context.line(format_args!(
            "Blocked on a full log: {} times; refused: {} messages; detached: {} subscribers",
            p.full, p.refused, p.detached
        ))?;
    }
    context.line(format_args!(""))
}

fn print_subscription(
    context: &mut Context,
    s: &SubscriptionInfo,
    all: &Snapshot,
    own: Option<&str>,
) -> Outcome {
    let kind =
        if s.forwards.is_some() { "FORWARDER (of the link, not counted)" } else { "SUBSCRIPTION" };
    print_endpoint_header(context, &s.node, own, kind, s.id, &s.type_desc)?;
    if let Some(via) = &s.via {
        context.line(format_args!("Proxy: in {via}, for {} subscriptions", s.endpoint_count))?;
    }
    context.line(format_args!("QoS profile:"))?;
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
    context.line(format_args!("  Reliability: {reliability}"))?;
    context.line(format_args!("  History (Depth): {history}"))?;
    context.line(format_args!("  Durability: {durability}"))?;
    context
        .line(format_args!("  Lane: {}", s.qos.lane.map_or("same as the publisher", lane_name)))?;
    context.line(format_args!("  Wait: {wait}"))?;
    print_deadline_and_liveliness(context, s.qos.deadline, s.qos.liveliness)?;
    let from = |c: &ChannelInfo| all.publishers.iter().find(|p| p.id == c.publisher);
    let named = |c| (from(c).map_or("a publisher that left", |p| p.node.as_str()), c);
    let gone = s.past.iter().map(|past| ("publishers that left", past));
    let gone = gone.filter(|(_, past)| past.received + past.skipped + past.lost.total() > 0);
    let rows: Vec<_> = s.channels.iter().map(named).chain(gone).map(channel_row).collect();
    let titles = ["FROM", "RECEIVED ", "SKIPPED ", "LOST", "BEHIND", "ALSO"];
    let also = rows.iter().any(|row| !row[5].is_empty());
    table::print(context, &titles[..5 + usize::from(also)], &rows)?;
    context.line(format_args!(""))
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
fn print_deadline_and_liveliness(
    context: &mut Context,
    deadline: Option<Duration>,
    liveliness: Liveliness,
) -> Outcome {
    if let Some(deadline) = deadline {
        context.line(format_args!("  Deadline: {deadline:?}"))?;
    }
    match liveliness {
        Liveliness::Automatic => Ok(()),
        Liveliness::ManualByTopic { lease } => {
            context.line(format_args!("  Liveliness: MANUAL_BY_TOPIC (lease {lease:?})"))
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
fn print_endpoint_header(
    context: &mut Context,
    node: &str,
    own: Option<&str>,
    kind: &str,
    id: u64,
    desc: &TypeDesc,
) -> Outcome {
    context.heading(&format!("Node name: {node}"))?;
    if let Some(host) = own.map(|own| host_of(node).0.unwrap_or(own)) {
        context.line(format_args!("Host: {host}"))?;
    }
    context.line(format_args!("Topic type: {}", type_name(desc)))?;
    context.line(format_args!("Endpoint type: {kind}"))?;
    context.line(format_args!("GID: {id:016x}"))?;
    if let Some(plain) = desc.as_plain() {
        let (size, align) = (plain.size, plain.align);
        let data = if plain.tail { ", followed by data" } else { "" };
        context.line(format_args!("Type layout: {size} bytes, aligned to {align}{data}"))?;
        layout(plain).iter().try_for_each(|line| context.line(format_args!("{line}")))?;
    }
    if let Some(named) = desc.as_protobuf() {
        context.line(format_args!("Type hash: {}", named.schema))?;
    }
    Ok(())
}
