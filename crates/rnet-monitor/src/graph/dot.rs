//! The graph in the language of Graphviz: <https://graphviz.org/doc/info/lang.html>.

use std::fmt::Write;

use super::NodeGraph;

/// A string of DOT, in which these three have a meaning.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

pub fn draw(net: &NodeGraph<'_>) -> String {
    let mut out =
        String::from("digraph rnet {\n    rankdir=LR;\n    node [fontname=\"sans-serif\"];\n");
    // Writing to a String does not fail.
    for (i, host) in net.hosts.iter().enumerate() {
        let _ = writeln!(out, "    subgraph cluster_{i} {{\n        label={};", quoted(host.host));
        for node in &host.nodes {
            let _ = writeln!(out, "        {} [shape=box];", quoted(node));
        }
        out.push_str("    }\n");
    }
    for topic in &net.topics {
        // A topic and a node may have one name.
        let id = quoted(&format!("topic {}", topic.topic));
        let lines: Vec<String> =
            std::iter::once(topic.topic.to_owned()).chain(topic.details()).collect();
        let label = quoted(&lines.join("\n"));
        let colour = if topic.is_urgent() { ", color=red" } else { "" };
        let _ = writeln!(out, "    {id} [shape=ellipse, label={label}{colour}];");
        for source in &topic.publishers {
            let _ = writeln!(out, "    {} -> {id};", quoted(source.node));
        }
        for sink in &topic.subscribers {
            let label = match (&sink.problem, sink.lost) {
                (Some(why), _) => format!(" [style=dashed, color=red, label={}]", quoted(why)),
                (None, 0) => String::new(),
                (None, lost) => format!(" [label=\"lost {lost}\"]"),
            };
            let _ = writeln!(out, "    {id} -> {}{label};", quoted(sink.node));
        }
    }
    out.push_str("}\n");
    out
}
