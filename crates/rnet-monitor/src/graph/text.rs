//! The graph as lines: hosts, their nodes, what these publish, and who subscribes to it.

use std::fmt::Write;

use super::{NodeGraph, Topic};

pub fn draw(net: &NodeGraph<'_>) -> String {
    let mut out = String::new();
    for host in &net.hosts {
        // Where all are of one host, nobody needs its name.
        if net.hosts.len() > 1 {
            line(&mut out, 0, format_args!("host {}", host.host));
        }
        let depth = usize::from(net.hosts.len() > 1);
        for node in &host.nodes {
            line(&mut out, depth, format_args!("{node}"));
            for topic in &net.topics {
                if let Some(source) = topic.publishers.iter().find(|source| source.node == *node) {
                    let rate = source.rate.map(|rate| rate.text());
                    published(&mut out, depth + 1, topic, rate);
                }
            }
        }
    }
    for topic in net.topics.iter().filter(|topic| topic.publishers.is_empty()) {
        line(&mut out, 0, format_args!("no publisher"));
        published(&mut out, 1, topic, None);
    }
    out
}

fn published(out: &mut String, depth: usize, topic: &Topic<'_>, rate: Option<String>) {
    let lane = topic.is_urgent().then(|| "urgent".to_owned());
    let details = Some(topic.types.join(", ")).into_iter().chain(lane).chain(rate);
    line(
        out,
        depth,
        format_args!("-> {}  {}", topic.topic, details.collect::<Vec<_>>().join("  ")),
    );
    for sink in &topic.subscribers {
        let lost = (sink.lost > 0).then(|| format!("  lost {}", sink.lost));
        let problem = sink.problem.as_ref().map(|why| format!("  NO MATCH: {why}"));
        let remarks: String = lost.into_iter().chain(problem).collect();
        line(out, depth + 1, format_args!("-> {}{remarks}", sink.node));
    }
}

fn line(out: &mut String, depth: usize, text: std::fmt::Arguments<'_>) {
    let indent = 4 * depth;
    let _ = writeln!(out, "{:indent$}{text}", "");
}
