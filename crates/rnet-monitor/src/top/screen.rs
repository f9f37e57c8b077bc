//! How `rnet top` is drawn. It fits on 80 × 24 characters.

use crate::{Endpoint, Finding, Level, NodeRow, TopicRow};
use anstyle::{AnsiColor, Style};

use super::canvas::{Area, Canvas, StyledLine};
use super::model::{Model, Tab};
use super::rows;
use rnet_format::text::escape_controls;

/// Rows of the list of problems below another list, with its border.
const PROBLEM_LINES: usize = 5;
/// Columns that a name has at least.
const MIN_NAME: usize = 8;
/// Rows of the rates of a topic.
const BAR_ROWS: usize = 3;
/// Bars of the histogram of latencies.
const MAX_BARS: usize = 8;
const BAR_CHARS: usize = 40;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();

/// Draws the screen.
pub fn draw(canvas: &mut Canvas, model: &mut Model) {
    let below = if model.tab == Tab::Problems { 0 } else { PROBLEM_LINES };
    let foot = canvas.height.saturating_sub(1);
    let body = Area { top: 1, bottom: foot.saturating_sub(below).max(4).min(foot) };
    canvas.draw(0, &title(model));
    if model.figures.is_none() {
        canvas.draw(body.top, &StyledLine::raw("measuring the first interval"));
    } else if model.shows_details && draw_details(canvas, model, body) {
        // It is drawn.
    } else {
        draw_list(canvas, model, body);
    }
    if below > 0 {
        draw_problems(canvas, model, Area { top: body.bottom, bottom: foot });
    }
    canvas.draw(foot, &keys(model));
}

fn title(model: &Model) -> StyledLine {
    let count = |tab| match (tab, &model.figures) {
        (Tab::Problems, _) => model.problems.iter().filter(|f| f.level == Level::Problem).count(),
        (_, None) => 0,
        (Tab::Topics, Some(figures)) => figures.topics.len(),
        (Tab::Nodes, Some(figures)) => figures.nodes.len(),
        (Tab::Hosts, Some(figures)) => figures.hosts.len(),
    };
    let mut parts = vec![(format!("domain {}  ", model.domain), BOLD)];
    for (at, tab) in Tab::ALL.into_iter().enumerate() {
        let text = format!(" {} {tab:?} {} ", at + 1, count(tab));
        let bad = tab == Tab::Problems && count(tab) > 0;
        let style = if bad { RED } else { Style::new() };
        parts.push((text, if tab == model.tab { style.invert() } else { style }));
    }
    if model.is_paused {
        parts.push(("  paused".to_owned(), YELLOW));
    }
    StyledLine(parts)
}

fn keys(model: &Model) -> StyledLine {
    if model.is_filtering {
        return StyledLine::raw(format!(
            "filter: {}_  (Enter keeps it, Esc clears it)",
            model.filter
        ));
    }
    let keys = match model.shows_details {
        true => "Esc back  up/down scroll  Space pause  q quit",
        false => "Tab next  / filter  s sort  Enter open  Space pause  q quit",
    };
    let filter = match model.filter.is_empty() {
        true => String::new(),
        false => format!("  [{}]", model.filter),
    };
    let memory = model.blackbox.as_ref().map(|memory| format!("  {}", rows::black_box(memory)));
    StyledLine(vec![
        (keys.to_owned(), DIM),
        (filter, Style::new()),
        (memory.unwrap_or_default(), DIM),
    ])
}

fn draw_list(canvas: &mut Canvas, model: &mut Model, area: Area) {
    let (topic_column, node_column) = model.sort.columns();
    let hosts = model.figures.iter().flat_map(|figures| &figures.hosts);
    let (titles, sorted, cells): (&[&str], _, Vec<Vec<String>>) = match model.tab {
        Tab::Topics => {
            let rows = model.topics().into_iter().map(rows::topic).collect();
            (&rows::TOPIC_TITLES, Some(topic_column), rows)
        }
        Tab::Nodes => {
            let rows = model.nodes().into_iter().map(rows::node).collect();
            (&rows::NODE_TITLES, Some(node_column), rows)
        }
        Tab::Hosts => (&rows::HOST_TITLES, None, hosts.map(rows::host).collect()),
        Tab::Problems => return draw_all_problems(canvas, model, area),
    };
    let width = |column: usize| {
        let cells = cells.iter().filter_map(|row| row.get(column));
        let title = titles[column].trim_end().chars().count();
        cells.map(|cell| cell.chars().count()).chain([title]).max().unwrap_or(0)
    };
    // Names have what the figures leave.
    let mut widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let figures = widths[1..].iter().map(|width| width + 1).sum::<usize>();
    widths[0] = canvas.width.saturating_sub(figures).max(MIN_NAME);
    let head = titles.iter().enumerate().map(|(at, title)| {
        let style = if sorted == Some(at) { BOLD.underline() } else { BOLD };
        (align(title.trim_end(), title, widths[at]), style)
    });
    canvas.draw_cells(area.top, &head.collect::<Vec<_>>(), &widths, None);
    let (selected, shown) = (model.selected_index(), area.height().saturating_sub(1));
    // The one that is selected is in sight.
    let first = (selected + 1).saturating_sub(shown);
    for (line, (at, row)) in cells.iter().enumerate().skip(first).take(shown).enumerate() {
        let is_bad = model.tab == Tab::Topics && row[6] != "0";
        let style = if is_bad { YELLOW } else { Style::new() };
        let cells = row.iter().enumerate();
        let cells = cells.map(|(at, cell)| (align(cell, titles[at], widths[at]), style));
        let whole = (at == selected).then(|| style.invert());
        canvas.draw_cells(area.top + 1 + line, &cells.collect::<Vec<_>>(), &widths, whole);
    }
}

/// A cell of a column whose title ends with a blank stands at its right end.
fn align(cell: &str, title: &str, width: usize) -> String {
    match title.ends_with(' ') {
        true => format!("{cell:>width$}"),
        false => cell.to_owned(),
    }
}

fn finding_line(finding: &Finding) -> StyledLine {
    let (word, style) = match finding.level {
        Level::Problem => ("PROBLEM ", RED),
        Level::Note | Level::Ok => ("note ", YELLOW),
    };
    StyledLine(vec![
        (word.to_owned(), style),
        (escape_controls(&finding.what).into_owned(), Style::new()),
    ])
}

fn draw_problems(canvas: &mut Canvas, model: &Model, area: Area) {
    canvas.draw(area.top, &StyledLine::raw("─".repeat(canvas.width)));
    let lines = match (&model.figures, model.problems.is_empty()) {
        (Some(_), true) => vec![StyledLine::styled("all is well", DIM)],
        _ => model.problems.iter().map(finding_line).collect(),
    };
    for (row, line) in (area.top + 1..area.bottom).zip(&lines) {
        canvas.draw(row, line);
    }
}

fn draw_all_problems(canvas: &mut Canvas, model: &mut Model, area: Area) {
    let mut lines = Vec::new();
    for finding in &model.problems {
        lines.push(finding_line(finding));
        let advice = finding.advice.iter();
        lines.extend(advice.map(|advice| StyledLine::styled(format!("  -> {advice}"), DIM)));
    }
    if lines.is_empty() {
        lines.push(StyledLine::raw("all is well"));
    }
    draw_lines(canvas, &lines, &mut model.scroll_offset, area);
}

/// Lines that may be more than there is room for: those from `scroll_offset` on, of which the last is shown in any case.
fn draw_lines(canvas: &mut Canvas, lines: &[StyledLine], scroll_offset: &mut usize, area: Area) {
    *scroll_offset = (*scroll_offset).min(lines.len().saturating_sub(1));
    canvas.draw_wrapped(area, &lines[(*scroll_offset).min(lines.len())..]);
}

/// The page of what is selected; whether it is there still.
fn draw_details(canvas: &mut Canvas, model: &mut Model, area: Area) -> bool {
    let Some(name) = &model.selected else { return false };
    let mut scroll_offset = model.scroll_offset;
    match model.tab {
        Tab::Topics => {
            let Some(topic) = model.topics().into_iter().find(|topic| topic.topic == *name) else {
                return false;
            };
            draw_topic(canvas, model, topic, &mut scroll_offset, area);
        }
        Tab::Nodes => {
            let Some(node) = model.nodes().into_iter().find(|node| node.node == *name) else {
                return false;
            };
            draw_lines(canvas, &node_lines(node), &mut scroll_offset, area);
        }
        Tab::Hosts | Tab::Problems => return false,
    }
    model.scroll_offset = scroll_offset;
    true
}

fn draw_topic(
    canvas: &mut Canvas,
    model: &Model,
    topic: &TopicRow,
    scroll_offset: &mut usize,
    area: Area,
) {
    let latency = &topic.latency;
    let above = [
        StyledLine::styled(format!("{}  {}", topic.topic, topic.types.join(", ")), BOLD),
        StyledLine::raw(format!(
            "{}  latency p50 {}  p99 {}  max {}",
            rows::hz(topic.rate_hz),
            rows::latency(latency.p50_ns),
            rows::latency(latency.p99_ns),
            rows::latency(latency.max_ns)
        )),
        StyledLine::raw(format!("lost: {}; {} skipped", topic.lost, topic.skipped_in_interval)),
    ];
    for (row, line) in (area.top..area.bottom).zip(&above) {
        canvas.draw(row, line);
    }
    let bars_top = (area.top + above.len()).min(area.bottom);
    let below = Area { top: (bars_top + BAR_ROWS).min(area.bottom), ..area };
    let rates = model.rates(&topic.topic);
    let shown = rates.len().saturating_sub(canvas.width);
    canvas.draw_bars(Area { top: bars_top, bottom: below.top }, &rates[shown..]);
    let mut lines = bars(&latency.counts);
    let mut ends = |word: &str, ends: &[Endpoint]| {
        lines.extend(ends.iter().map(|end| {
            StyledLine::raw(format!(
                "{word} {}  {}  {}; {}, {}",
                escape_controls(&end.node),
                rows::hz(end.rate_hz),
                end.qos,
                end.lost,
                end.behind
            ))
        }));
    };
    ends("<-", &topic.publishers);
    ends("->", &topic.subscribers);
    draw_lines(canvas, &lines, scroll_offset, below);
}

/// The histogram of latencies in at most so many bars, each of as many buckets.
fn bars(counts: &[u64]) -> Vec<StyledLine> {
    let Some(first) = counts.iter().position(|count| *count > 0) else { return Vec::new() };
    let last = counts.iter().rposition(|count| *count > 0).unwrap_or(first);
    let buckets = (last - first + 1).div_ceil(MAX_BARS);
    let bars: Vec<(usize, u64)> = (first..=last)
        .step_by(buckets)
        .map(|at| (at, counts[at..(at + buckets).min(counts.len())].iter().sum()))
        .collect();
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let line = |(at, count): (usize, u64)| {
        let end = (at + buckets - 1).min(counts.len() - 1);
        let len = (count as f64 / most as f64 * BAR_CHARS as f64).ceil() as usize;
        let bound = rows::latency(Some(rnet::bucket_high(end)));
        StyledLine::raw(format!(
            "{:>9} {:<BAR_CHARS$} {count}",
            format!("≤ {bound}"),
            "▇".repeat(len)
        ))
    };
    bars.into_iter().map(line).collect()
}

fn node_lines(node: &NodeRow) -> Vec<StyledLine> {
    let row = rows::node(node);
    let mut lines = vec![
        StyledLine::styled(
            format!("{} on {}", escape_controls(&node.node), escape_controls(&node.host)),
            BOLD,
        ),
        StyledLine::raw(format!(
            "process {}, {}, for {}; starts: {}",
            row[2],
            row[3],
            rows::uptime(node),
            row[4]
        )),
        StyledLine::raw(format!(
            "CPU {}, memory {}, sends {}, receives {}",
            row[5], row[6], row[7], row[8]
        )),
        StyledLine::raw(""),
    ];
    lines.extend(node.publishes.iter().map(|topic| StyledLine::raw(format!("-> {topic}"))));
    lines.extend(node.subscribes.iter().map(|topic| StyledLine::raw(format!("<- {topic}"))));
    lines
}

#[cfg(test)]
pub(super) mod tests {
    use crate::{Figures, Latency};
    use rnet::{Backlog, LossCounts};

    use super::*;
    use crate::top::Key;

    pub fn topic(name: &str, rate_hz: f64) -> TopicRow {
        let end = |node: &str| Endpoint {
            node: node.to_owned(),
            qos: "reliable, bulk".to_owned(),
            rate_hz,
            lost: LossCounts::default(),
            behind: Backlog::default(),
        };
        TopicRow {
            topic: name.to_owned(),
            types: vec!["foxglove.Imu".to_owned()],
            lane: None,
            publishers: vec![end("/driver")],
            subscribers: vec![end("/estimator")],
            rate_hz,
            bytes_per_s: 100.0 * rate_hz,
            latency: Latency { counts: vec![0, 3, 9, 1], ..Latency::default() },
            lost: LossCounts::default(),
            lost_in_interval: 0,
            missed_in_interval: 0,
            skipped_in_interval: 0,
            behind: Backlog::default(),
            memory_bytes: 0,
        }
    }

    pub fn node(name: &str) -> NodeRow {
        NodeRow {
            node: name.to_owned(),
            host: "robot".to_owned(),
            pid: Some(42),
            state: "runs",
            cpu: Some(0.25),
            rss_bytes: Some(5_000_000),
            uptime_s: Some(61.0),
            restarts: Some(2),
            sent_hz: 10.0,
            received_hz: 0.0,
            publishes: vec!["/imu".to_owned()],
            subscribes: Vec::new(),
            is_tool: false,
        }
    }

    fn model() -> Model {
        let mut model = Model::new("lab");
        let topics = vec![topic("/imu", 1000.0), topic("/scan", 5000.0)];
        let nodes = vec![node("/driver"), node("/estimator")];
        let figures = Figures { interval_s: 1.0, nodes, topics, hosts: Vec::new(), insecure: None };
        let problem = Finding {
            level: Level::Problem,
            check: "loss",
            what: "3 messages of /imu were lost".to_owned(),
            advice: Some("look there".to_owned()),
        };
        model.update(figures, vec![problem]);
        model
    }

    fn lines(model: &mut Model) -> Vec<String> {
        let mut canvas = Canvas::new(80, 24);
        draw(&mut canvas, model);
        let row = |y| canvas.row(y).iter().map(|(c, _)| c).collect::<String>();
        (0..24).map(|y| row(y).trim_end().to_owned()).collect()
    }

    fn at(lines: &[String], text: &str) -> usize {
        let found = lines.iter().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("{text} is missing: {lines:#?}"))
    }

    #[test]
    fn the_lists_fit_and_are_sorted() {
        let mut model = model();
        let shown = lines(&mut model);
        assert!(shown[0].starts_with("domain lab   1 Topics 2  2 Nodes 2 "), "{shown:#?}");
        assert!(shown[1].starts_with("TOPIC") && shown[1].ends_with("SUB"), "{shown:#?}");
        assert!(at(&shown, "/imu ") < at(&shown, "/scan"));
        at(&shown, "PROBLEM 3 messages of /imu were lost");
        model.press(Key::Char('s'));
        let shown = lines(&mut model);
        assert!(at(&shown, "/scan") < at(&shown, "/imu "), "{shown:#?}");
        model.press(Key::Tab);
        at(&lines(&mut model), "25.0 %");
        model.press(Key::Char('4'));
        at(&lines(&mut model), "-> look there");
    }

    #[test]
    fn what_is_selected_stays_so_when_rows_change_places() {
        let mut model = model();
        model.press(Key::Down);
        assert_eq!((model.selected.as_deref(), model.selected_index()), (Some("/scan"), 1));
        model.press(Key::Char('s'));
        assert_eq!(model.selected_index(), 0);
        model.press(Key::Up);
        model.press(Key::End);
        assert_eq!(model.selected.as_deref(), Some("/imu"));
    }

    #[test]
    fn a_page_shows_the_histogram_and_the_ends_and_ends_with_its_topic() {
        let mut model = model();
        model.press(Key::Enter);
        let shown = lines(&mut model);
        assert!(at(&shown, "▇ 9") < at(&shown, "<- /driver"), "{shown:#?}");
        at(&shown, "-> /estimator  1.00 kHz  reliable, bulk");
        let nothing = Figures {
            interval_s: 1.0,
            nodes: Vec::new(),
            topics: Vec::new(),
            hosts: Vec::new(),
            insecure: None,
        };
        model.update(nothing, Vec::new());
        at(&lines(&mut model), "TOPIC");
        at(&lines(&mut model), "all is well");
    }

    #[test]
    fn all_ends_of_a_topic_and_all_problems_are_reached_on_a_small_terminal() {
        let mut model = model();
        let many = |count: u64| {
            let mut scan = topic("/scan", 10.0);
            let end =
                |at| Endpoint { node: format!("/reader{at:02}"), ..scan.subscribers[0].clone() };
            scan.subscribers = (0..64).map(end).collect();
            let figures = Figures {
                interval_s: 1.0,
                nodes: Vec::new(),
                topics: vec![scan],
                hosts: Vec::new(),
                insecure: None,
            };
            let problem = |at: u64| Finding {
                level: Level::Problem,
                check: "loss",
                what: format!("{count} messages of /t{at:02} were lost"),
                advice: Some(format!("look at /t{at:02}")),
            };
            (figures, (0..40).map(problem).collect())
        };
        let (figures, problems) = many(1);
        model.update(figures, problems);
        model.press(Key::Enter);
        at(&lines(&mut model), "<- /driver");
        for _ in 0..6 {
            model.press(Key::PageDown);
        }
        at(&lines(&mut model), "/reader62");
        model.press(Key::End);
        let shown = lines(&mut model);
        at(&shown, "-> /reader63");
        at(&shown, "/scan  foxglove.Imu");
        // It goes no further than the last line, so that one step back is seen.
        model.press(Key::Up);
        at(&lines(&mut model), "-> /reader62");
        model.press(Key::Esc);
        model.press(Key::Char('4'));
        for _ in 0..50 {
            model.press(Key::Down);
        }
        assert!(lines(&mut model)[1].contains("/t25"), "{:#?}", lines(&mut model));
        // Their words change at each look, and where one reads does not.
        let (figures, problems) = many(2);
        model.update(figures, problems);
        let shown = lines(&mut model);
        assert!(shown[1].contains("2 messages of /t25"), "{shown:#?}");
    }

    #[test]
    fn letters_of_a_filter_are_no_commands() {
        let mut model = model();
        for key in ['/', 's', 'c', 'a', 'q'] {
            model.press(Key::Char(key));
        }
        at(&lines(&mut model), "filter: scaq_");
        model.press(Key::Backspace);
        model.press(Key::Enter);
        let shown = lines(&mut model);
        assert!(
            at(&shown, "/scan") > 0 && !shown.iter().any(|l| l.contains("/imu  ")),
            "{shown:#?}"
        );
    }
}
