//! `rnet bag plot`: fields over time, in the terminal, or as a picture.

mod picture;
mod terminal;

use rnet_record::read::{Recording, SeriesError};
use serde_json::{Value, json};

use super::args::{PlotArgs, SelectArgs};
use super::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::style::NOTE;
use crate::value::tame;
use rnet_monitor::near::did_you_mean;

/// Lines of one plot.
const MAX_LINES: usize = 32;
/// Problems of a file that are told one by one.
const MAX_TOLD: usize = 10;

/// A number over time.
struct Line {
    name: String,
    /// Seconds from the start of the recording, and the value there; NaN where a message has none.
    points: Vec<(f64, f64)>,
}

pub fn run(context: &mut Context, args: &PlotArgs) -> Outcome {
    let recording = file::open(context, &args.file)?;
    let mut lines = Vec::new();
    let mut broken = !recording.found().problems.is_empty();
    for field in &args.fields {
        broken |= !read(context, &recording, args, field, &mut lines)?;
        if lines.len() > MAX_LINES {
            let why = format!("a plot has at most {MAX_LINES} lines; name elements, such as q[0]");
            return Err(Failure::Usage(why));
        }
    }
    match &args.output {
        Some(path) => {
            picture::write(path, &lines, (args.width, args.height))?;
            let points: usize = lines.iter().map(|line| line.points.len()).sum();
            context.line(format_args!("{}: {points} points", path.display()))?;
        }
        None if context.json() => {
            let lines: Vec<Value> = lines.iter().map(Line::document).collect();
            context.document(&json!({ "lines": lines }))?;
        }
        None => {
            for line in &lines {
                terminal::draw(context, line)?;
            }
        }
    }
    match broken {
        false => Ok(()),
        true => Err(Failure::Failed("what could not be read is left out".to_owned())),
    }
}

/// Reads a field, of which an array is a line for each element. False if something of it could not be read.
fn read(
    context: &Context,
    recording: &Recording,
    args: &PlotArgs,
    field: &str,
    lines: &mut Vec<Line>,
) -> Outcome<bool> {
    let (topic, path) = split(recording, field)?;
    let times = SelectArgs { topic: Vec::new(), start: args.start, end: args.end };
    let select = file::select(recording, &times)?;
    let read = recording.series(topic, &[path], select);
    let series = read.map_err(|error: SeriesError| {
        Failure::Failed(tame(&format!("{}: {error}", recording.path().display())).into_owned())
    })?;
    let already = recording.found().problems.len();
    for problem in series.problems.iter().skip(already).take(MAX_TOLD) {
        let text = format!("{}: {problem}", recording.path().display());
        context.say(format_args!("{NOTE}rnet:{NOTE:#} {}", tame(&text)));
    }
    let start_ns = recording.found().times.map_or(0, |times| times.0);
    let at = |ns: &u64| ns.saturating_sub(start_ns) as f64 / 1e9;
    let column = &series.columns[0];
    let values = column.to_f64();
    let per_row: usize = column.shape.iter().product();
    for element in 0..per_row.min(MAX_LINES + 1) {
        let index: String =
            if column.shape.is_empty() { String::new() } else { index(&column.shape, element) };
        let of_element = values.iter().skip(element).step_by(per_row).copied();
        let points = series.log_ns.iter().map(at).zip(of_element).collect();
        lines.push(Line { name: format!("{topic}.{path}{index}"), points });
    }
    Ok(series.problems.len() == already)
}

/// The indices of an element: `[1][2]`.
fn index(shape: &[usize], element: usize) -> String {
    let mut rest = element;
    let mut indices = Vec::new();
    for len in shape.iter().rev() {
        indices.push(rest % len);
        rest /= len;
    }
    indices.iter().rev().map(|index| format!("[{index}]")).collect()
}

/// The topic and the field that `/imu.linear_acceleration.x` names. Of others' topics some have dots.
fn split<'a>(recording: &Recording, given: &'a str) -> Outcome<(&'a str, &'a str)> {
    let dots = given.match_indices('.').map(|(at, _)| (&given[..at], &given[at + 1..]));
    let mut known = dots.filter(|(topic, _)| recording.channels().any(|c| c.topic == *topic));
    if let Some(longest) = known.next_back() {
        return Ok(longest);
    }
    let topics = || recording.channels().map(|channel| channel.topic.as_str());
    let fields_of = recording.channels().find(|channel| channel.topic == given);
    let why = match fields_of {
        Some(channel) => {
            let fields = channel.number_fields().map_err(|e| Failure::Failed(e.to_string()))?;
            format!("which field of {given}? It has {}", fields.join(", "))
        }
        None => {
            let topic = given.split('.').next().unwrap_or(given);
            let hint = did_you_mean(topic, topics());
            let hint = hint.unwrap_or_else(|| "see rnet bag info".to_owned());
            format!("there is no topic {topic} in {}; {hint}", recording.path().display())
        }
    };
    Err(Failure::Failed(tame(&why).into_owned()))
}

/// The lowest and the highest of some numbers, those that are none left out.
fn range(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers.filter(|number| number.is_finite()).fold(None, |range, number| {
        let (low, high) = range.unwrap_or((number, number));
        Some((low.min(number), high.max(number)))
    })
}

impl Line {
    fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|(_, value)| *value)
    }

    fn times(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|(at, _)| *at)
    }

    fn document(&self) -> Value {
        let there = self.values().filter(|value| value.is_finite()).count();
        let range = range(self.values());
        json!({
            "field": self.name,
            "points": self.points.len(),
            "numbers": there,
            "min": range.map(|range| range.0),
            "max": range.map(|range| range.1),
        })
    }

    /// The line in so many columns from `from` to `to`: of each column the first, the lowest, the highest and the last
    /// point, in the order of time, so that a picture of it is that of all points. Gaps are `None`.
    fn thinned(&self, (from, to): (f64, f64), columns: usize) -> Vec<Option<(f64, f64)>> {
        let width = ((to - from) / columns as f64).max(f64::MIN_POSITIVE);
        let column = |at: f64| ((at - from) / width) as usize;
        let mut thinned = Vec::new();
        for points in self
            .points
            .chunk_by(|a, b| column(a.0) == column(b.0) && a.1.is_finite() == b.1.is_finite())
        {
            let is_gap = !points[0].1.is_finite();
            if is_gap {
                thinned.push(None);
                continue;
            }
            let by_value = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
            let (lowest, highest) =
                ((0..points.len()).min_by(by_value), (0..points.len()).max_by(by_value));
            let kept = [Some(0), lowest, highest, Some(points.len() - 1)];
            let kept: std::collections::BTreeSet<usize> = kept.into_iter().flatten().collect();
            thinned.extend(kept.into_iter().map(|at| Some(points[at])));
        }
        thinned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: impl Iterator<Item = f64>) -> Line {
        let points = values.enumerate().map(|(n, value)| (n as f64, value)).collect();
        Line { name: "/t.x".to_owned(), points }
    }

    #[test]
    fn a_thinned_line_keeps_its_ends_its_peaks_and_its_gaps() {
        let value = |n: u32| match n {
            5_003 => 1e9,
            7_000..7_500 => f64::NAN,
            _ => f64::from(n % 10),
        };
        let line = line((0..10_000).map(value));
        let thinned = line.thinned((0.0, 10_000.0), 100);
        assert!(thinned.len() <= 4 * 102, "{}", thinned.len());
        let points: Vec<(f64, f64)> = thinned.iter().flatten().copied().collect();
        assert!(points.is_sorted_by(|a, b| a.0 < b.0) && points.contains(&(5_003.0, 1e9)));
        assert_eq!((points[0], points[points.len() - 1]), ((0.0, 0.0), (9_999.0, 9.0)));
        let gap = thinned.iter().position(Option::is_none).unwrap();
        assert_eq!(thinned[gap - 1], Some((6_999.0, 9.0)));
    }

    #[test]
    fn numbers_without_a_common_scale_are_no_picture() {
        let path = std::env::temp_dir().join("rnet-plot-that-is-none.svg");
        let refused = picture::write(&path, &[line([-1e308, 1e308].into_iter())], (300, 200));
        assert!(matches!(refused, Err(Failure::Failed(why)) if why.contains("no common scale")));
        assert!(!path.exists());
    }

    #[test]
    fn elements_have_their_indices() {
        assert_eq!((index(&[3], 2), index(&[2, 3], 4)), ("[2]".to_owned(), "[1][1]".to_owned()));
    }
}
