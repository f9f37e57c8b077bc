//! `rnet topic list`, `type` and `find`.

use std::collections::BTreeSet;

use rnet::inspect::{Snapshot, is_internal};
use serde_json::json;

use super::args::TopicListArgs;
use crate::context::Context;
use crate::failure::Outcome;
use crate::snapshot::{check_host, snapshot_with_topic, take_snapshot};
use crate::{domain, table};
use rnet_format::types;
use rnet_monitor::link::{host_of, own_host};
use rnet_monitor::type_names;

pub fn run(context: &mut Context, args: TopicListArgs) -> Outcome {
    let (domain, snapshot) = take_snapshot(context)?;
    let own = own_host(&snapshot);
    if let Some(host) = &args.host {
        check_host(&snapshot, &own, host)?;
    }
    let mut topics = snapshot.topics();
    topics.retain(|topic| args.all || !is_internal(topic));
    if topics.is_empty() {
        domain::report_none_found(context, "topics")?;
    }
    if let Some(host) = &args.host {
        topics.retain(|topic| {
            let ends = snapshot.publishers.iter().filter(|p| p.topic == *topic).map(|p| &p.node);
            let subscribers = snapshot.subscriptions.iter().filter(|s| s.topic == *topic);
            let mut ends = ends.chain(subscribers.map(|s| &s.node));
            ends.any(|node| host_of(node).0.unwrap_or(&own) == host)
        });
    }
    if context.json() {
        let topics: Vec<_> = topics
            .into_iter()
            .map(|topic| {
                let sent = snapshot.publishers.iter().filter(|p| p.topic == topic);
                json!({
                    "topic": topic,
                    "types": type_names(&snapshot, topic),
                    "hosts": hosts(&snapshot, &own, topic),
                    "publishers": publishers(&snapshot, topic),
                    "subscribers": snapshot.subscription_count(topic),
                    "sent": sent.map(|p| p.sent).sum::<u64>(),
                })
            })
            .collect();
        return context.document(&json!({"domain": domain.id(), "topics": topics}));
    }
    if args.verbose {
        let mut titles = vec!["TOPIC", "TYPE", "PUBLISHERS ", "SUBSCRIBERS "];
        let rows = topics.into_iter().map(|topic| {
            vec![
                topic.to_owned(),
                type_names(&snapshot, topic).join(", "),
                publishers(&snapshot, topic).to_string(),
                snapshot.subscription_count(topic).to_string(),
                hosts(&snapshot, &own, topic).join(", "),
            ]
        });
        let mut rows: Vec<_> = rows.collect();
        // If all publishers are on one host, its name is omitted.
        match snapshot.remote.is_empty() {
            true => rows.iter_mut().for_each(|row| row.truncate(titles.len())),
            false => titles.push("HOST"),
        }
        return table::print(context, &titles, &rows);
    }
    for topic in topics {
        if args.show_types {
            context.line(format_args!("{topic} [{}]", type_names(&snapshot, topic).join(", ")))?;
        } else {
            context.line(format_args!("{topic}"))?;
        }
    }
    Ok(())
}

/// The hosts of a topic's publishers.
fn hosts<'a>(snapshot: &'a Snapshot, own: &'a str, topic: &str) -> Vec<&'a str> {
    let publishers = snapshot.publishers.iter().filter(|p| p.topic == topic);
    let hosts: BTreeSet<&str> = publishers.map(|p| host_of(&p.node).0.unwrap_or(own)).collect();
    hosts.into_iter().collect()
}

fn publishers(snapshot: &Snapshot, topic: &str) -> usize {
    snapshot.publishers.iter().filter(|p| p.topic == topic).count()
}

/// The names of a topic's types: several if its endpoints disagree.
pub fn type_of(context: &mut Context, topic: &str) -> Outcome {
    let (_, snapshot) = snapshot_with_topic(context, topic)?;
    let types = type_names(&snapshot, topic);
    if context.json() {
        return context.document(&json!({"topic": topic, "types": types}));
    }
    types.into_iter().try_for_each(|name| context.line(format_args!("{name}")))
}

/// The topics with this type.
pub fn find_by_type(context: &mut Context, name: &str) -> Outcome {
    let (domain, snapshot) = take_snapshot(context)?;
    let topics = snapshot.topics().into_iter().filter(|topic| !is_internal(topic));
    let typed: Vec<(&str, Vec<&str>)> =
        topics.map(|topic| (topic, type_names(&snapshot, topic))).collect();
    let mut known: Vec<&str> = typed.iter().flat_map(|(_, types)| types).copied().collect();
    known.sort_unstable();
    known.dedup();
    let none = format!("no topic in domain {} has the type", domain.id());
    let name = types::find(name, known.into_iter(), &none)?;
    let topics = typed.iter().filter(|(_, types)| types.contains(&name)).map(|(topic, _)| *topic);
    if context.json() {
        return context.document(&json!({"type": name, "topics": topics.collect::<Vec<_>>()}));
    }
    topics.into_iter().try_for_each(|topic| context.line(format_args!("{topic}")))
}
