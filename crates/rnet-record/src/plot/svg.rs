//! A chart as an SVG file.

use std::fmt::Write;
use std::path::Path;

use super::{Series, range};
use rnet_format::xml::escaped;
use rnet_format::{Failure, Outcome};

/// Colours that people who see few colours tell apart, by Okabe and Ito.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
/// Lengths in pixels.
const MARGIN_PX: f64 = 12.0;
const TITLE_PX: f64 = 30.0;
const X_LABELS_PX: f64 = 40.0;
const Y_LABELS_PX: f64 = 84.0;
const LEGEND_ROW_PX: f64 = 20.0;
const LEGEND_LINE_PX: f64 = 16.0;
const GAP_PX: f64 = 8.0;
/// A character of the font, at most: the fonts of viewers differ.
const CHARACTER_PX: f64 = 7.5;
/// The part of the width that the legend has at most.
const LEGEND_SHARE: f64 = 0.4;
/// Distances of ticks.
const X_TICK_PX: f64 = 90.0;
const Y_TICK_PX: f64 = 45.0;
/// Where a range has no length it gets one, as a part of its size.
const MIN_RANGE: f64 = 1e-6;

/// Checks that the name of a new file ends in .svg.
///
/// # Errors
/// `Usage` for another name.
pub fn check_name(path: &Path) -> Outcome {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => Ok(()),
        _ => Err(Failure::Usage(format!(
            "{}: plots are SVG files: use a name that ends in .svg",
            path.display()
        ))),
    }
}

/// The content of a file.
///
/// # Errors
/// `Usage` for a name that does not end in .svg; `Failed` for numbers without a common scale.
pub fn draw_svg(path: &Path, title: &str, lines: &[Series], size: (u32, u32)) -> Outcome<String> {
    check_name(path)?;
    let times = padded_range(range(lines.iter().flat_map(Series::times)));
    let values = padded_range(range(lines.iter().flat_map(Series::values)));
    if !(values.1 - values.0).is_finite() {
        return Err(Failure::Failed(format!(
            "cannot write {}: the range from {:e} to {:e} is too large for one scale",
            path.display(),
            values.0,
            values.1
        )));
    }
    let (width, height) = (f64::from(size.0), f64::from(size.1));
    let labels = legend_labels(lines, width * LEGEND_SHARE);
    let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let legend_px = LEGEND_LINE_PX + 2.0 * GAP_PX + longest as f64 * CHARACTER_PX;
    let chart = Chart {
        x: Axis { range: times, from_px: Y_LABELS_PX, to_px: width - legend_px - MARGIN_PX },
        y: Axis { range: values, from_px: height - X_LABELS_PX, to_px: TITLE_PX + MARGIN_PX },
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"'DejaVu Sans', Verdana, sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    text(
        &mut svg,
        (width / 2.0, TITLE_PX - GAP_PX),
        "text-anchor=\"middle\" font-size=\"17\"",
        title,
    );
    chart.draw_axes(&mut svg, &common_unit(lines));
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        chart.draw_line(&mut svg, line, colour);
    }
    let x = width - legend_px;
    for (at, (label, colour)) in labels.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let y = TITLE_PX + MARGIN_PX + GAP_PX + at as f64 * LEGEND_ROW_PX;
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {y:.1}h{LEGEND_LINE_PX}\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        text(&mut svg, (x + LEGEND_LINE_PX + GAP_PX, y + 4.0), "", label);
    }
    Ok(svg + "</svg>\n")
}

/// The labels of the lines, cut at the start to a width in pixels: fields differ at the end.
fn legend_labels(lines: &[Series], most_px: f64) -> Vec<String> {
    let most = (((most_px - LEGEND_LINE_PX - 2.0 * GAP_PX) / CHARACTER_PX) as usize).max(2);
    let cut = |label: String| match label.chars().count().saturating_sub(most) {
        0 => label,
        over => format!("…{}", label.chars().skip(over + 1).collect::<String>()),
    };
    lines.iter().map(|line| cut(line.label())).collect()
}

/// The unit of the y axis, if all lines have the same one.
fn common_unit(lines: &[Series]) -> String {
    let unit = lines.first().and_then(|line| line.unit.clone());
    let is_common = lines.iter().all(|line| line.unit == unit);
    unit.filter(|_| is_common).map(|unit| format!("[{unit}]")).unwrap_or_default()
}

/// Writes a text. `style` has further attributes.
fn text(svg: &mut String, (x, y): (f64, f64), style: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escaped(text));
}

/// An axis: a range of numbers, and the pixels that they are drawn on.
struct Axis {
    range: (f64, f64),
    from_px: f64,
    to_px: f64,
}

impl Axis {
    fn px(&self, number: f64) -> f64 {
        let part = (number - self.range.0) / (self.range.1 - self.range.0);
        self.from_px + part * (self.to_px - self.from_px)
    }

    /// Round numbers within the range, about so many pixels apart, with their labels.
    fn ticks(&self, distance_px: f64) -> Vec<(f64, String)> {
        let (low, high) = self.range;
        let wanted = ((self.to_px - self.from_px).abs() / distance_px).max(1.0);
        let least = (high - low) / wanted;
        let power = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| *step >= least).unwrap_or(10.0 * power);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        // Large numbers and tiny steps are not written out.
        let is_plain = low.abs().max(high.abs()) < 1e7 && decimals <= 6;
        // As many digits as tell two ticks apart.
        let digits = (low.abs().max(high.abs()) / step).log10().ceil().clamp(1.0, 16.0) as usize;
        let label = |number: f64| match is_plain {
            true => format!("{number:.decimals$}"),
            false => format!("{number:.digits$e}"),
        };
        let first = (low / step).ceil();
        let steps = ((high / step).floor() - first).clamp(0.0, 1000.0) as u32;
        // `+ 0.0` turns a -0 into 0.
        let numbers = (0..=steps).map(|n| (first + f64::from(n)) * step + 0.0);
        numbers.map(|number| (number, label(number))).collect()
    }
}

struct Chart {
    x: Axis,
    y: Axis,
}

impl Chart {
    fn draw_axes(&self, svg: &mut String, unit: &str) {
        let (left, right) = (self.x.from_px, self.x.to_px);
        let (top, bottom) = (self.y.to_px, self.y.from_px);
        let mut grid = String::new();
        for (number, label) in self.x.ticks(X_TICK_PX) {
            let x = self.x.px(number);
            let _ = write!(grid, "M{x:.1} {top:.1}V{bottom:.1}");
            text(svg, (x, bottom + 15.0), "text-anchor=\"middle\"", &label);
        }
        for (number, label) in self.y.ticks(Y_TICK_PX) {
            let y = self.y.px(number);
            let _ = write!(grid, "M{left:.1} {y:.1}H{right:.1}");
            text(svg, (left - 5.0, y + 4.0), "text-anchor=\"end\"", &label);
        }
        let _ = writeln!(svg, "<path d=\"{grid}\" stroke=\"#dddddd\" fill=\"none\"/>");
        let _ = writeln!(
            svg,
            "<path d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\" stroke=\"#000000\" fill=\"none\"/>"
        );
        let middle = (left + right) / 2.0;
        text(
            svg,
            (middle, bottom + 33.0),
            "text-anchor=\"middle\"",
            "seconds since the start of the recording",
        );
        text(svg, (MARGIN_PX, top - 4.0), "", unit);
    }

    fn draw_line(&self, svg: &mut String, line: &Series, colour: &str) {
        let columns = (self.x.to_px - self.x.from_px).max(1.0) as usize;
        let thinned = line.thinned(self.x.range, columns);
        for part in thinned.split(Option::is_none).filter(|part| !part.is_empty()) {
            let mut points = String::new();
            for (at, value) in part.iter().flatten() {
                let _ = write!(points, "{:.1},{:.1} ", self.x.px(*at), self.y.px(*value));
            }
            let points = points.trim_end();
            // Round ends show a line of one point, too.
            let _ = writeln!(
                svg,
                "<polyline points=\"{points}\" stroke=\"{colour}\" fill=\"none\" stroke-linecap=\"round\"/>"
            );
        }
    }
}

/// A range that can be drawn: of some length, and with a margin above and below.
fn padded_range(range: Option<(f64, f64)>) -> (f64, f64) {
    let (low, high) = range.unwrap_or((0.0, 1.0));
    let least = low.abs().max(high.abs()).max(MIN_RANGE) * MIN_RANGE;
    match high - low > least {
        true => (low, high),
        false => (low - least.max(0.5), high + least.max(0.5)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_range() {
        let ticks = |range, to_px| {
            let axis = Axis { range, from_px: 0.0, to_px };
            axis.ticks(50.0).into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks((0.0, 10.0), 300.0), "0 2 4 6 8 10");
        assert_eq!(ticks((-0.31, 0.52), 250.0), "-0.2 0.0 0.2 0.4");
        assert_eq!(ticks((3.0, 3.000_02), 150.0), "3.00000 3.00001 3.00002");
        assert_eq!(ticks((0.0, 4e9), 120.0), "0.0e0 2.0e9 4.0e9");
        assert_eq!(ticks((1e9, 1e9 + 2000.0), 100.0), "1.0000000e9 1.0000010e9 1.0000020e9");
        // Pixels of the y axis fall, and one tick is enough for a small picture.
        assert_eq!(Axis { range: (0.0, 1.0), from_px: 20.0, to_px: 0.0 }.ticks(45.0).len(), 2);
    }

    #[test]
    fn names_are_no_markup() {
        let line = Series { name: "/<a>&\"\u{1}".to_owned(), unit: None, points: vec![(0.0, 1.0)] };
        let svg = draw_svg(Path::new("a.svg"), "x<y", &[line], (600, 300)).unwrap();
        assert!(svg.contains("/&lt;a&gt;&amp;&quot;\u{fffd}") && svg.contains("x&lt;y"), "{svg}");
        assert!(svg.contains("<polyline") && !svg.contains("NaN"), "{svg}");
    }
}
