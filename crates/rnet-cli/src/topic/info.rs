//! `rnet topic info`.

use rnet::inspect::TypeComparison;
use rnet_monitor::endpoints::{publisher_lines, subscription_lines};
use serde_json::json;

use super::args::TopicInfoArgs;
use crate::context::Context;
use crate::failure::Outcome;
use crate::snapshot::snapshot_with_topic;
use crate::style::PROBLEM;
use crate::table;
use rnet_format::text::escape_controls;
use rnet_monitor::link::{host_of, own_host};
use rnet_monitor::type_names;

pub fn run(context: &mut Context, args: TopicInfoArgs) -> Outcome {
    let topic = args.topic.as_str();
    let (_, all) = snapshot_with_topic(context, topic)?;
    let mut snapshot = all.clone();
    snapshot.publishers.retain(|p| p.topic == topic);
    snapshot.subscriptions.retain(|s| s.topic == topic);
    snapshot.forwarders.retain(|s| s.topic == topic);
    let types = type_names(&snapshot, topic);
    let comparisons = snapshot.compare_types(topic);
    // If all publishers are on one host, its name is omitted.
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
        let lines = publisher_lines(publisher, own, |word| context.styled(PROBLEM, word));
        print_endpoint(context, &lines)?;
    }
    context.line(format_args!("Subscription count: {subscribers}\n"))?;
    for subscription in snapshot.subscriptions.iter().chain(&snapshot.forwarders) {
        let (lines, rows) = subscription_lines(subscription, &snapshot, own);
        print_endpoint(context, &lines)?;
        let titles = ["FROM", "RECEIVED ", "SKIPPED ", "LOST", "BEHIND", "ALSO"];
        let also = rows.iter().any(|row| !row[5].is_empty());
        table::print(context, &titles[..5 + usize::from(also)], &rows)?;
        context.line(format_args!(""))?;
    }
    print_comparisons(context, &comparisons)
}

/// Prints the pairs whose types differ, compatible or not.
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
            // Field names are checked; defaults are untrusted text of the peer.
            let change = change.to_string();
            context.line(format_args!("    {word}{}", escape_controls(&change)))?;
        }
    }
    Ok(())
}

fn print_endpoint(context: &mut Context, lines: &[String]) -> Outcome {
    let Some((heading, lines)) = lines.split_first() else { return Ok(()) };
    context.heading(heading)?;
    lines.iter().try_for_each(|line| context.line(format_args!("{line}")))
}
