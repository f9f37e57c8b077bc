//! The stages as a drawing: for each edge two bars, of the half of the messages that is fastest and of all but one in 100,
//! each stage a colour; the chain likewise, with its parts in the order of the way.
//!
//! A bar is as long as its stages are together, each with its own quantile: where several are slow at different times, that
//! is more than the quantile of the whole.

use std::fmt::Write;

use rnet_format::units;
use rnet_format::xml::escaped;

use super::view::uncertainty_text;
use super::{Chain, Edge, Stage, Times, Uncertainty};

const WIDTH_PX: f64 = 960.0;
const MARGIN_PX: f64 = 16.0;
const LABEL_PX: f64 = 48.0;
const BAR_PX: f64 = 22.0;
const GAP_PX: f64 = 6.0;
const TITLE_PX: f64 = 24.0;
/// A narrower piece has no room for its name.
const MIN_TEXT_PX: f64 = 64.0;
/// Colours that people who see few colours tell apart, by Okabe and Ito; light enough for black letters.
const COLOURS: [&str; 6] = ["#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#e69f00", "#009e73"];

/// One of the quantiles of a stage, in ns.
type Quantile = fn(&Times) -> u64;

/// A piece of a bar.
struct Segment<'a> {
    name: String,
    times: &'a Times,
    /// How far from the truth they may be.
    uncertain: Uncertainty,
    colour: &'static str,
}

/// The drawing.
pub fn svg(edges: &[Edge], chain: Option<&Chain>) -> String {
    let mut bars: Vec<(String, Vec<Segment<'_>>)> = Vec::new();
    if let Some(chain) = chain {
        bars.push((title_of(chain), chain_segments(chain)));
    }
    for edge in edges {
        let title = format!(
            "{}: {} to {}, {} messages{}",
            edge.topic,
            edge.publisher,
            edge.subscriber,
            edge.traced,
            clock_uncertainty_text(edge.uncertain)
        );
        let piece = |stage: &Stage| {
            let (name, colour) = (stage.name().to_owned(), COLOURS[*stage as usize]);
            let network = *stage == Stage::Network;
            let uncertain = if network { edge.uncertain } else { Uncertainty::NONE };
            edge.stages.get(stage).map(|times| Segment { name, times, uncertain, colour })
        };
        bars.push((title, Stage::ALL.iter().filter_map(piece).collect()));
    }
    let height =
        2.0 * MARGIN_PX + bars.len() as f64 * (TITLE_PX + 2.0 * (BAR_PX + GAP_PX) + GAP_PX);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH_PX} {height}\" width=\"{WIDTH_PX}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut y = MARGIN_PX;
    for (title, pieces) in &bars {
        let baseline = y + TITLE_PX - 8.0;
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN_PX}\" y=\"{baseline}\" font-weight=\"bold\">{}</text>",
            escaped(title)
        );
        y += TITLE_PX;
        let quantiles: [(&str, Quantile); 2] =
            [("p50", |times| times.p50_ns), ("p99", |times| times.p99_ns)];
        let longest = pieces.iter().map(|piece| piece.times.p99_ns).sum::<u64>().max(1);
        for (name, of) in quantiles {
            bar(&mut svg, y, name, pieces, of, longest);
            y += BAR_PX + GAP_PX;
        }
        y += GAP_PX;
    }
    svg + "</svg>\n"
}

fn bar(
    svg: &mut String,
    y: f64,
    quantile: &str,
    pieces: &[Segment<'_>],
    of: Quantile,
    longest_ns: u64,
) {
    let scale = (WIDTH_PX - 2.0 * MARGIN_PX - LABEL_PX) / longest_ns as f64;
    let baseline = y + BAR_PX - 7.0;
    let _ = writeln!(svg, "<text x=\"{MARGIN_PX}\" y=\"{baseline}\">{quantile}</text>");
    let mut x = MARGIN_PX + LABEL_PX;
    for piece in pieces {
        let ns = of(piece.times);
        let width = ns as f64 * scale;
        let (name, time) = (escaped(&piece.name), units::latency(ns));
        let about =
            uncertainty_text(piece.uncertain).map_or_else(String::new, |about| format!(" {about}"));
        let _ = writeln!(
            svg,
            "<g><title>{name}: {quantile} {time}{about} of {} messages</title><rect x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{width:.1}\" height=\"{BAR_PX}\" fill=\"{}\" stroke=\"#ffffff\"/>",
            piece.times.count, piece.colour
        );
        if width >= MIN_TEXT_PX {
            let room = (width / 7.0) as usize;
            let text: String = format!("{} {time}", piece.name).chars().take(room).collect();
            let at = x + 4.0;
            let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{baseline}\">{}</text>", escaped(&text));
        }
        whisker(svg, (x + width, y), piece.uncertain, scale);
        svg.push_str("</g>\n");
        x += width;
    }
}

/// From where to where the end of a piece may be in truth: a line with a stroke at each end, as far as the drawing goes.
fn whisker(svg: &mut String, (x, y): (f64, f64), uncertain: Uncertainty, scale: f64) {
    let Uncertainty::Ns(ns @ 1..) = uncertain else { return };
    let by = ns as f64 * scale;
    let from = (x - by).max(MARGIN_PX + LABEL_PX);
    let to = (x + by).min(WIDTH_PX - MARGIN_PX);
    let middle = y + BAR_PX / 2.0;
    let (top, bottom) = (middle - 4.0, middle + 4.0);
    let _ = writeln!(
        svg,
        "<path d=\"M{from:.1} {middle}H{to:.1}M{from:.1} {top}V{bottom}M{to:.1} {top}V{bottom}\" \
         stroke=\"#000000\" fill=\"none\"/>"
    );
}

/// How well the clocks are known by which a way is measured, where it is between hosts.
fn clock_uncertainty_text(uncertain: Uncertainty) -> String {
    uncertainty_text(uncertain)
        .map_or_else(String::new, |about| format!(", {about} clock uncertainty"))
}

fn title_of(chain: &Chain) -> String {
    let topics: Vec<&str> = chain.hops.iter().map(|hop| hop.topic.as_str()).collect();
    format!(
        "{}, {} messages{}",
        topics.join(", "),
        chain.total.count,
        clock_uncertainty_text(chain.uncertain)
    )
}

fn chain_segments(chain: &Chain) -> Vec<Segment<'_>> {
    let of_hop = chain.hops.iter().map(|hop| {
        let sent = Segment {
            name: hop.topic.clone(),
            times: &hop.transport,
            uncertain: hop.transport_uncertain,
            colour: COLOURS[1],
        };
        let name = format!("callback of {}", hop.topic);
        [
            sent,
            Segment { name, times: &hop.work, uncertain: hop.work_uncertain, colour: COLOURS[5] },
        ]
    });
    of_hop.flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_are_no_markup_and_bars_have_their_length() {
        let times = Times { count: 2, p50_ns: 100, p99_ns: 300, max_ns: 400 };
        let edge = Edge {
            topic: "/<&>\"'\n".to_owned(),
            publisher: "/a".to_owned(),
            subscriber: "/b".to_owned(),
            traced: 2,
            untraced: 0,
            stages: BTreeMap::from([(Stage::Wake, times), (Stage::Callback, times)]),
            total: times,
            uncertain: Uncertainty::NONE,
        };
        let svg = super::svg(std::slice::from_ref(&edge), None);
        assert!(svg.contains("/&lt;&amp;&gt;&quot;'&#10;"), "{svg}");
        assert_eq!(svg.matches("<g>").count(), 4);
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
        let half = format!("width=\"{:.1}\"", (WIDTH_PX - 2.0 * MARGIN_PX - LABEL_PX) / 2.0);
        assert_eq!(svg.matches(&half).count(), 2, "{svg}");
        assert!(!svg.contains("<path") && !svg.contains('±'), "{svg}");
        // Between hosts there is a whisker at the end of each bar's network, which never leaves the drawing.
        let stages = BTreeMap::from([(Stage::Network, times), (Stage::Callback, times)]);
        let far = Edge { stages, uncertain: Uncertainty::Ns(1_000_000), ..edge };
        let svg = super::svg(&[far], None);
        assert!(svg.contains(", 2 messages, ± 1.0 ms clock uncertainty</text>"), "{svg}");
        assert!(svg.contains("network: p50 100 ns ± 1.0 ms of 2 messages"), "{svg}");
        let whole = format!("M{:.1} ", MARGIN_PX + LABEL_PX);
        assert_eq!((svg.matches("<path").count(), svg.matches(&whole).count()), (2, 4), "{svg}");
        assert!(svg.contains(&format!("H{:.1}M", WIDTH_PX - MARGIN_PX)), "{svg}");
    }

    #[test]
    fn nothing_is_a_drawing_as_well() {
        assert!(super::svg(&[], None).ends_with("</svg>\n"));
    }
}
