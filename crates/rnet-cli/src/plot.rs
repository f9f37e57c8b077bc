//! Lines over an axis, as an SVG.

use std::fmt::Write;

/// Size of the picture, and of the margins in which its numbers stand.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 45.0;
/// Numbers beside an axis, about.
const TICKS: f64 = 6.0;
/// One for each line, told apart also by those who see no red; then from the first again.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// A plot.
pub struct Plot {
    pub title: String,
    /// What the axis below has.
    pub x: String,
    pub lines: Vec<Line>,
}

/// Points that are connected. One that is not finite interrupts the line.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// The numbers of an axis.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// One on which all of these are.
    fn of(values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = match high - low {
            _ if low > high => (0.0, 1.0),
            // A line that is level stands in the middle.
            span if span <= f64::EPSILON * high.abs() => {
                let margin = if high == 0.0 { 1.0 } else { high.abs() * 0.1 };
                (low - margin, high + margin)
            }
            _ => (low, high),
        };
        let rough = (high - low) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        Axis { low, high, step }
    }

    fn part(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn ticks(&self) -> Vec<f64> {
        let first = (self.low / self.step).ceil() as i64;
        let last = (self.high / self.step).floor() as i64;
        (first..=last).map(|n| n as f64 * self.step).collect()
    }

    fn number(&self, value: f64) -> String {
        let places = (-self.step.log10().floor()).max(0.0) as usize;
        match self.step.abs() >= 1e6 || places > 6 {
            true => format!("{value:.2e}"),
            false => format!("{value:.places$}"),
        }
    }
}

impl Plot {
    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let (x, y) = (Axis::of(points().map(|p| p.0)), Axis::of(points().map(|p| p.1)));
        let place = |point: (f64, f64)| {
            let (across, up) = (x.part(point.0), y.part(point.1));
            (LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM))
        };
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n",
            escaped(&self.title)
        );
        // Writing into a text does not fail.
        for tick in x.ticks() {
            let (at, _) = place((tick, y.low));
            let (end, under, text) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM + 18.0, x.number(tick));
            let _ = writeln!(
                out,
                "<path d=\"M{at:.1} {TOP}V{end}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{under}\" text-anchor=\"middle\">{text}</text>"
            );
        }
        for tick in y.ticks() {
            let (_, at) = place((x.low, tick));
            let (end, before, text) = (WIDTH - RIGHT, LEFT - 8.0, y.number(tick));
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {at:.1}H{end}\" stroke=\"#ddd\"/><text x=\"{before}\" y=\"{at:.1}\" dy=\"4\" text-anchor=\"end\">{text}</text>"
            );
        }
        let (right, low) = (WIDTH - RIGHT, HEIGHT - 8.0);
        let _ = writeln!(
            out,
            "<text x=\"{right}\" y=\"{low}\" text-anchor=\"end\">{}</text>",
            escaped(&self.x)
        );
        for (n, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[n % COLOURS.len()];
            let mut path = String::new();
            let mut word = 'M';
            for point in &line.points {
                if !(point.0.is_finite() && point.1.is_finite()) {
                    word = 'M';
                    continue;
                }
                let (x, y) = place(*point);
                let _ = write!(path, "{word}{x:.1} {y:.1}");
                word = 'L';
            }
            // A line that lies below another is seen beside it.
            let width = if n == 0 { 3.5 } else { 1.5 };
            let _ = writeln!(
                out,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
            );
            let (at, name) = (LEFT + 160.0 * n as f64, escaped(&line.name));
            let (bar, beside) = (at + 24.0, at + 30.0);
            let _ = writeln!(
                out,
                "<path d=\"M{at} 37H{bar}\" stroke=\"{colour}\" stroke-width=\"{width}\"/><text x=\"{beside}\" y=\"41\">{name}</text>"
            );
        }
        out + "</svg>\n"
    }
}

/// Text for XML. What XML 1.0 cannot hold at all is a question mark.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\n' => out += "&#10;",
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        let axis = |values: &[f64]| Axis::of(values.iter().copied());
        let texts = |axis: Axis| axis.ticks().iter().map(|t| axis.number(*t)).collect::<Vec<_>>();
        assert_eq!(texts(axis(&[0.0, 1.0])).join(" "), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(texts(axis(&[-3.0, 27.0])).join(" "), "0 5 10 15 20 25");
        assert_eq!(texts(axis(&[])).len(), 6);
        assert!(texts(axis(&[5.0, 5.0, f64::NAN])).contains(&"5.0".to_owned()));
        assert!(!texts(axis(&[1e300, -1e300])).is_empty());
    }

    #[test]
    fn lines_are_interrupted_where_there_is_no_number() {
        let points = vec![(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0)];
        let line = Line { name: "a<b".into(), points };
        let svg = Plot { title: "/t x".into(), x: "s".into(), lines: vec![line] }.svg();
        assert!(svg.contains("d=\"M90.0 375.0L373.3 50.0M940.0 375.0\""), "{svg}");
        assert!(svg.contains(">a&lt;b</text>") && svg.ends_with("</svg>\n"), "{svg}");
    }
}
