//! The picture of `rnet top` in the guide: a screen of fixed figures as SVG, and the test that it is what the code draws.

use std::fmt::Write;
use std::path::Path;

use crate::{Figures, Finding, HostRow, Latency, Level, NodeRow, TopicRow};
use anstyle::{AnsiColor, Color, Effects, Style};
use rnet::LossCounts;

use super::canvas::Canvas;
use super::model::Model;
use super::screen::{self, tests as screen_tests};
use rnet_format::xml::escaped;

const COLUMNS: usize = 92;
const LINES: usize = 20;
/// A character, and the margin around all of them, in pixels.
const WIDTH_PX: f64 = 8.4;
const HEIGHT_PX: f64 = 18.0;
const MARGIN_PX: f64 = 12.0;
const BACKGROUND: &str = "#14181f";
const FOREGROUND: &str = "#d8dee9";

/// A screen as SVG. Each word has its place and its width, so that it is the same in each font.
fn svg(screen: &Canvas) -> String {
    let (width, height) = (
        screen.width as f64 * WIDTH_PX + 2.0 * MARGIN_PX,
        screen.height as f64 * HEIGHT_PX + 2.0 * MARGIN_PX,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"14\">\n<title>rnet top</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for y in 0..screen.height {
        let mut x = 0;
        for run in screen.row(y).chunk_by(|a, b| background_of(a.1) == background_of(b.1)) {
            draw_background(&mut out, run[0].1, (x, x + run.len()), y);
            x += run.len();
        }
        let mut x = 0;
        for run in screen.row(y).chunk_by(same_word) {
            draw_word(&mut out, run, x, y);
            x += run.len();
        }
    }
    out + "</svg>\n"
}

/// Whether two characters belong to one word, or to one gap, in one style.
fn same_word(a: &(char, Style), b: &(char, Style)) -> bool {
    (a.0 == ' ', a.1) == (b.0 == ' ', b.1)
}

/// Whether paper and ink change places, and the ink.
fn background_of(style: Style) -> (bool, Option<Color>) {
    (style.get_effects().contains(Effects::INVERT), style.get_fg_color())
}

/// Left, top and width of a part of a line, in pixels.
fn text_box(x: (usize, usize), y: usize) -> (f64, f64, f64) {
    (
        x.0 as f64 * WIDTH_PX + MARGIN_PX,
        y as f64 * HEIGHT_PX + MARGIN_PX,
        (x.1 - x.0) as f64 * WIDTH_PX,
    )
}

/// What is reversed has paper in the colour of its ink.
fn draw_background(out: &mut String, style: Style, x: (usize, usize), y: usize) {
    if let (true, colour) = background_of(style) {
        let (left, top, width) = text_box(x, y);
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.0}\" width=\"{width:.1}\" height=\"{HEIGHT_PX:.0}\" fill=\"{}\"/>",
            colour_hex(colour)
        );
    }
}

fn draw_word(out: &mut String, run: &[(char, Style)], x: usize, y: usize) {
    let style = run[0].1;
    let text: String = run.iter().map(|(c, _)| c).collect();
    if text.trim().is_empty() {
        return;
    }
    let has = |effect, set: &'static str| match style.get_effects().contains(effect) {
        true => set,
        false => "",
    };
    let (left, top, width) = text_box((x, x + run.len()), y);
    let (is_reversed, colour) = background_of(style);
    let _ = writeln!(
        out,
        "<text x=\"{left:.1}\" y=\"{:.0}\" textLength=\"{width:.1}\" fill=\"{}\"{}{}{}>{}</text>",
        top + 13.0,
        if is_reversed { BACKGROUND } else { colour_hex(colour) },
        has(Effects::BOLD, " font-weight=\"bold\""),
        has(Effects::DIMMED, " opacity=\"0.6\""),
        has(Effects::UNDERLINE, " text-decoration=\"underline\""),
        escaped(&text),
    );
}

fn colour_hex(colour: Option<Color>) -> &'static str {
    match colour {
        None => FOREGROUND,
        Some(Color::Ansi(AnsiColor::Red)) => "#ff6b6b",
        Some(Color::Ansi(AnsiColor::Yellow)) => "#f0c674",
        Some(other) => panic!("no colour is chosen for {other:?}"),
    }
}

/// The nodes and topics of the demo, with a logger that is too slow for the images.
fn model() -> Model {
    let topic = |name, rate_hz, message_len: f64, us: [u64; 3], ends: [usize; 2]| {
        let [p50_ns, p99_ns, max_ns] = us.map(|us| Some(us * 1000));
        let row = screen_tests::topic(name, rate_hz);
        TopicRow {
            bytes_per_s: rate_hz * message_len,
            latency: Latency { p50_ns, p99_ns, max_ns, counts: Vec::new() },
            publishers: vec![row.publishers[0].clone(); ends[0]],
            subscribers: vec![row.subscribers[0].clone(); ends[1]],
            ..row
        }
    };
    let mut topics = vec![
        topic("/battery/state", 20.0, 46.0, [53, 172, 190], [1, 2]),
        topic("/camera/image", 30.0, 921_736.0, [37, 229, 311], [1, 1]),
        topic("/camera/shutter", 30.0, 16.0, [45, 147, 152], [1, 1]),
        topic("/operator/drive", 20.0, 38.0, [45, 131, 140], [1, 2]),
        topic("/robot/estimate", 1000.0, 312.0, [25, 90, 188], [1, 2]),
        topic("/robot/force", 9997.0, 64.0, [37, 118, 402], [1, 2]),
        topic("/robot/state", 1000.0, 296.0, [57, 164, 311], [1, 4]),
        topic("/robot/torque", 1000.0, 104.0, [41, 127, 221], [1, 2]),
        topic("/safety/stop", 0.0, 0.0, [0, 0, 0], [1, 4]),
    ];
    topics[1].lost = LossCounts { overrun: 12, ..LossCounts::default() };
    topics[1].behind.messages = 10;
    topics[8].latency = Latency::default();
    let names = [
        "battery",
        "camera",
        "controller",
        "estimator",
        "force",
        "logger",
        "operator",
        "safety",
        "simulation",
        "watcher",
    ];
    let nodes: Vec<NodeRow> =
        names.into_iter().map(|name| screen_tests::node(&format!("/{name}"))).collect();
    let problem = Finding {
        level: Level::Problem,
        check: "loss",
        what: format!(
            "12 messages of /camera/image were lost in 1.0 s; so far: {}",
            topics[1].lost
        ),
        advice: None,
    };
    let mut model = Model::new("0");
    let hosts: Vec<HostRow> = Vec::new();
    model.update(Figures { interval_s: 1.0, nodes, topics, hosts, insecure: None }, vec![problem]);
    model
}

#[test]
fn the_picture_of_the_guide_is_what_is_drawn() {
    let mut canvas = Canvas::new(COLUMNS, LINES);
    screen::draw(&mut canvas, &mut model());
    let drawn = svg(&canvas);
    let written = match std::env::var_os("SCREENSHOTS") {
        Some(folder) => {
            std::fs::write(Path::new(&folder).join("top.svg"), &drawn).unwrap();
            drawn.clone()
        }
        None => {
            let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images/top.svg");
            std::fs::read_to_string(committed).unwrap()
        }
    };
    assert!(
        written == drawn,
        "docs/images/top.svg is not what rnet top draws; SCREENSHOTS=$PWD/docs/images cargo test -p rnet-monitor picture \
         renews it. It is to be:\n{drawn}"
    );
}
