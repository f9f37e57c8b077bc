//! The graph as a drawing. The crate `layout-rs` places it, by the methods of Graphviz.

use std::collections::BTreeMap;

use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::geometry::Point;
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::render::get_shape_size;
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;

use super::net::Net;
use crate::failure::{Failure, Outcome};

const FONT_PX: usize = 14;
const LINE_PX: usize = 1;
// Colours are RGBA.
const BLACK: u32 = 0x2020_20ff;
const RED: u32 = 0xcc00_00ff;
/// What nodes are filled with, a colour for each host.
const HOST_FILLS: [u32; 6] =
    [0xdde8_f7ff, 0xe2f2_ddff, 0xf9ea_d5ff, 0xeddf_f3ff, 0xd9f0_efff, 0xf6f1_cfff];
const TOPIC_FILL: u32 = 0xffff_ffff;

/// # Errors
/// The net is empty, of which there is no drawing.
pub fn draw(net: &Net<'_>) -> Outcome<String> {
    if net.is_empty() {
        return Err(Failure::Failed("there is nothing to draw: no node has a topic".to_owned()));
    }
    let mut graph = VisualGraph::new(Orientation::LeftToRight);
    let mut nodes = BTreeMap::new();
    for (host, fill) in net.hosts.iter().zip(HOST_FILLS.iter().cycle()) {
        for node in &host.nodes {
            nodes.insert(*node, graph.add_node(shape(ShapeKind::new_box(node), BLACK, *fill)));
        }
    }
    for topic in &net.topics {
        let lines = std::iter::once(topic.topic.to_owned()).chain(topic.details());
        let label = lines.collect::<Vec<_>>().join("\n");
        let colour = if topic.is_urgent() { RED } else { BLACK };
        let at = graph.add_node(shape(ShapeKind::new_circle(&label), colour, TOPIC_FILL));
        for source in topic.publishers.iter().filter_map(|source| nodes.get(source.node)) {
            graph.add_edge(arrow("", colour, LineStyleKind::Normal), *source, at);
        }
        for sink in &topic.subscribers {
            let Some(to) = nodes.get(sink.node) else { continue };
            let edge = match (&sink.problem, sink.lost) {
                (Some(_), _) => arrow("no match", RED, LineStyleKind::Dashed),
                (None, 0) => arrow("", colour, LineStyleKind::Normal),
                (None, lost) => arrow(&format!("lost {lost}"), colour, LineStyleKind::Normal),
            };
            graph.add_edge(edge, at, *to);
        }
    }
    let mut writer = SVGWriter::new();
    graph.do_it(false, false, false, &mut writer);
    Ok(writer.finalize())
}

fn look(line: u32, fill: u32) -> StyleAttr {
    StyleAttr::new(Color::new(line), LINE_PX, Some(Color::new(fill)), 0, FONT_PX)
}

fn shape(kind: ShapeKind, line: u32, fill: u32) -> Element {
    let towards = Orientation::LeftToRight;
    let size: Point = get_shape_size(towards, &kind, FONT_PX, false);
    Element::create(kind, look(line, fill), towards, size)
}

fn arrow(text: &str, colour: u32, line: LineStyleKind) -> Arrow {
    let look = look(colour, TOPIC_FILL);
    Arrow::new(LineEndKind::None, LineEndKind::Arrow, line, text, &look, &None, &None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::draw;
    use crate::graph::net::{Host, Net, Sink, Source, Topic};

    const NAMES: [&str; 12] =
        ["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i", "/j", "/k/<&>\"'/", "/\u{1f916}\n"];

    fn net(edges: &[(usize, usize, bool)]) -> Net<'static> {
        let topic = |at: usize| {
            let of = |wanted: bool| {
                let ours = edges.iter().filter(move |(_, to, from)| *to == at && *from == wanted);
                ours.map(|(node, ..)| NAMES[*node])
            };
            Topic {
                topic: NAMES[at],
                types: vec!["raw"],
                lane: None,
                rate: None,
                publishers: of(true).map(|node| Source { node, rate: None }).collect(),
                subscribers: of(false).map(|node| Sink { node, lost: 0, problem: None }).collect(),
            }
        };
        let hosts = vec![Host { host: "robot", nodes: NAMES.to_vec() }];
        Net { hosts, topics: (0..NAMES.len()).map(topic).collect() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Circles, loops, nodes without a topic, several edges between two: the placer takes them all.
        #[test]
        fn any_net_is_drawn(edges in prop::collection::vec((0..12_usize, 0..12_usize, any::<bool>()), 0..60)) {
            let svg = draw(&net(&edges)).unwrap();
            prop_assert!(svg.ends_with("</svg>"));
            prop_assert!(!svg.contains("<&>"), "{svg}");
        }
    }
}
