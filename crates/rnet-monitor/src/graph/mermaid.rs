//! The graph as a flowchart of Mermaid: <https://mermaid.js.org/syntax/flowchart.html>.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::NodeGraph;

/// In a quoted text of Mermaid, characters with a meaning are entities.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '<' | '>' | '#' | '&' | '`' => format!("#{};", u32::from(c)),
        c => c.to_string(),
    });
    escaped.collect()
}

pub fn draw(net: &NodeGraph<'_>) -> String {
    let mut out = String::from("flowchart LR\n");
    // Names have characters that ids have not.
    let nodes = net.hosts.iter().flat_map(|host| &host.nodes);
    let ids: BTreeMap<&str, usize> = nodes.enumerate().map(|(i, node)| (*node, i)).collect();
    for (i, host) in net.hosts.iter().enumerate() {
        let _ = writeln!(out, "    subgraph h{i}[\"{}\"]", quoted(host.host));
        for node in &host.nodes {
            let _ = writeln!(out, "        n{}[\"{}\"]", ids[node], quoted(node));
        }
        out.push_str("    end\n");
    }
    for (i, topic) in net.topics.iter().enumerate() {
        let lines = std::iter::once(topic.topic.to_owned()).chain(topic.details());
        let label = lines.map(|line| quoted(&line)).collect::<Vec<_>>().join("<br/>");
        let class = if topic.is_urgent() { ":::urgent" } else { "" };
        let _ = writeln!(out, "    t{i}([\"{label}\"]){class}");
        for source in topic.publishers.iter().filter_map(|source| ids.get(source.node)) {
            let _ = writeln!(out, "    n{source} --> t{i}");
        }
        for sink in &topic.subscribers {
            let Some(id) = ids.get(sink.node) else { continue };
            let _ = match (&sink.problem, sink.lost) {
                (Some(why), _) => writeln!(out, "    t{i} -. \"{}\" .-> n{id}", quoted(why)),
                (None, 0) => writeln!(out, "    t{i} --> n{id}"),
                (None, lost) => writeln!(out, "    t{i} -- \"lost {lost}\" --> n{id}"),
            };
        }
    }
    out.push_str("    classDef urgent stroke:#c00,stroke-width:2px\n");
    out
}
