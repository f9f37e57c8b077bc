//! `rnet topic list`.

use rnet::inspect::Snapshot;
use serde_json::json;

use super::{tell_problems, type_names};
use crate::args::TopicListArgs;
use crate::context::Context;
use crate::failure::Outcome;

pub fn run(context: &mut Context, args: TopicListArgs) -> Outcome {
    let mut domain = context.domain()?;
    let snapshot = domain.snapshot()?;
    tell_problems(context, &snapshot);
    if context.json() {
        let topics: Vec<_> = snapshot
            .topics()
            .into_iter()
            .map(|topic| {
                let sent = snapshot.publishers.iter().filter(|p| p.topic == topic);
                json!({
                    "topic": topic,
                    "types": type_names(&snapshot, topic),
                    "publishers": publishers(&snapshot, topic),
                    "subscribers": subscribers(&snapshot, topic),
                    "sent": sent.map(|p| p.sent).sum::<u64>(),
                })
            })
            .collect();
        return context.document(&json!({"domain": domain.id(), "topics": topics}));
    }
    if args.verbose {
        return verbose(context, &snapshot);
    }
    for topic in snapshot.topics() {
        if args.show_types {
            context.line(format_args!("{topic} [{}]", type_names(&snapshot, topic).join(", ")))?;
        } else {
            context.line(format_args!("{topic}"))?;
        }
    }
    Ok(())
}

fn publishers(snapshot: &Snapshot, topic: &str) -> usize {
    snapshot.publishers.iter().filter(|p| p.topic == topic).count()
}

fn subscribers(snapshot: &Snapshot, topic: &str) -> usize {
    snapshot.subscription_count(topic)
}

/// As ROS 2 prints it: published first, then subscribed.
fn verbose(context: &mut Context, snapshot: &Snapshot) -> Outcome {
    let sides = [
        ("Published", "publisher", publishers as fn(&Snapshot, &str) -> usize),
        ("Subscribed", "subscriber", subscribers),
    ];
    for (i, (title, word, count)) in sides.into_iter().enumerate() {
        if i > 0 {
            context.line(format_args!(""))?;
        }
        context.line(format_args!("{title} topics:"))?;
        for topic in snapshot.topics() {
            let n = count(snapshot, topic);
            if n > 0 {
                let types = type_names(snapshot, topic).join(", ");
                let s = if n == 1 { "" } else { "s" };
                context.line(format_args!(" * {topic} [{types}] {n} {word}{s}"))?;
            }
        }
    }
    Ok(())
}
