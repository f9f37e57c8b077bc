//! The picture of `rnet top` in the guide: a screen of fixed figures as SVG, and the test that it is what the code draws.

use std::fmt::Write;
use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use rnet::LossCounts;
use rnet_monitor::{Figures, Finding, HostRow, Latency, Level, NodeRow, TopicRow};

use super::model::Model;
use super::screen::{self, tests};

const COLUMNS: u16 = 92;
const LINES: u16 = 20;
/// A character, and the margin around all of them, in pixels.
const WIDTH_PX: f32 = 8.4;
const HEIGHT_PX: f32 = 18.0;
const MARGIN_PX: f32 = 12.0;
const PAPER: &str = "#14181f";
const INK: &str = "#d8dee9";

/// A screen as SVG. Each word has its place and its width, so that it is the same in each font.
fn svg(screen: &Buffer) -> String {
    let area = screen.area;
    let (width, height) = (
        f32::from(area.width) * WIDTH_PX + 2.0 * MARGIN_PX,
        f32::from(area.height) * HEIGHT_PX + 2.0 * MARGIN_PX,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"14\">\n<title>rnet top</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    for y in 0..area.height {
        for x in runs(screen, y, on_one_paper) {
            turned(&mut out, screen, x, y);
        }
        for x in runs(screen, y, alike) {
            word(&mut out, screen, x, y);
        }
    }
    out + "</svg>\n"
}

/// The parts of a line whose characters are the same in some way: from a column to before another.
fn runs(screen: &Buffer, y: u16, same: fn(&Cell, &Cell) -> bool) -> Vec<(u16, u16)> {
    let (mut found, mut x) = (Vec::new(), 0);
    while x < screen.area.width {
        let is_of_it = |at: &u16| same(&screen[(*at, y)], &screen[(x, y)]);
        let end = x + (x..screen.area.width).take_while(is_of_it).count() as u16;
        found.push((x, end));
        x = end;
    }
    found
}

/// Whether two characters belong to one word, or to one gap, in one style.
fn alike(a: &Cell, b: &Cell) -> bool {
    (a.symbol() == " ", a.fg, a.modifier) == (b.symbol() == " ", b.fg, b.modifier)
}

fn on_one_paper(a: &Cell, b: &Cell) -> bool {
    let paper = |cell: &Cell| (cell.modifier.contains(Modifier::REVERSED), cell.fg);
    paper(a) == paper(b)
}

/// Left, top and width of a part of a line, in pixels.
fn place(x: (u16, u16), y: u16) -> (f32, f32, f32) {
    (
        f32::from(x.0) * WIDTH_PX + MARGIN_PX,
        f32::from(y) * HEIGHT_PX + MARGIN_PX,
        f32::from(x.1 - x.0) * WIDTH_PX,
    )
}

/// What is reversed has paper in the colour of its ink.
fn turned(out: &mut String, screen: &Buffer, x: (u16, u16), y: u16) {
    let cell = &screen[(x.0, y)];
    if cell.modifier.contains(Modifier::REVERSED) {
        let (left, top, width) = place(x, y);
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.0}\" width=\"{width:.1}\" height=\"{HEIGHT_PX:.0}\" fill=\"{}\"/>",
            ink(cell.fg)
        );
    }
}

fn word(out: &mut String, screen: &Buffer, x: (u16, u16), y: u16) {
    let cell = &screen[(x.0, y)];
    let text: String = (x.0..x.1).map(|x| screen[(x, y)].symbol()).collect();
    if text.trim().is_empty() {
        return;
    }
    let has = |modifier, set: &'static str| match cell.modifier.contains(modifier) {
        true => set,
        false => "",
    };
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (left, top, width) = place(x, y);
    let _ = writeln!(
        out,
        "<text x=\"{left:.1}\" y=\"{:.0}\" textLength=\"{width:.1}\" fill=\"{}\"{}{}{}>{escaped}</text>",
        top + 13.0,
        if cell.modifier.contains(Modifier::REVERSED) { PAPER } else { ink(cell.fg) },
        has(Modifier::BOLD, " font-weight=\"bold\""),
        has(Modifier::DIM, " opacity=\"0.6\""),
        has(Modifier::UNDERLINED, " text-decoration=\"underline\""),
    );
}

fn ink(colour: Color) -> &'static str {
    match colour {
        Color::Reset => INK,
        Color::Red => "#ff6b6b",
        Color::Yellow => "#f0c674",
        other => panic!("no colour is chosen for {other:?}"),
    }
}

/// The nodes and topics of the demo, with a logger that is too slow for the images.
fn model() -> Model {
    let topic = |name, rate_hz, message_len: f64, us: [u64; 3], ends: [usize; 2]| {
        let [p50_ns, p99_ns, max_ns] = us.map(|us| Some(us * 1000));
        let row = tests::topic(name, rate_hz);
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
        names.into_iter().map(|name| tests::node(&format!("/{name}"))).collect();
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
    let mut terminal = Terminal::new(TestBackend::new(COLUMNS, LINES)).unwrap();
    terminal.draw(|frame| screen::draw(frame, &mut model())).unwrap();
    let drawn = svg(terminal.backend().buffer());
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
        "docs/images/top.svg is not what rnet top draws; SCREENSHOTS=$PWD/docs/images cargo test -p rnet-cli picture \
         renews it. It is to be:\n{drawn}"
    );
}
