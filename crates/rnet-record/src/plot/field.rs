//! Fields of a recording over time.

use std::path::PathBuf;

use rnet::MessageType;
use rnet_format::suggestions::did_you_mean;
use rnet_format::text::escape_controls;
use rnet_format::{Failure, Outcome};
use serde_json::{Value, json};

use super::{Series, range, unit_of};
use crate::read::{Recording, Select, SeriesError};

/// Maximum number of series in one plot.
pub const MAX_SERIES: usize = 32;
/// Problems of a file that are told one by one.
const MAX_REPORTED: usize = 10;

/// Reads a field, of which an array is a line for each element. False if something of it could not be read.
///
/// # Errors
/// The recording has no such topic, or the type no such field.
pub fn read_field(
    recording: &Recording,
    select: Select,
    field: &str,
    lines: &mut Vec<Series>,
    on_problem: &mut dyn FnMut(&str),
) -> Outcome<bool> {
    let (topic, path) = split(recording, field)?;
    let read = recording.series(topic, &[path], select);
    let series = read.map_err(|error: SeriesError| {
        Failure::Failed(
            escape_controls(&format!("{}: {error}", recording.path().display())).into_owned(),
        )
    })?;
    let already = recording.info().problems.len();
    for problem in series.problems.iter().skip(already).take(MAX_REPORTED) {
        on_problem(&format!("{}: {problem}", recording.path().display()));
    }
    let start_ns = recording.info().times.map_or(0, |times| times.0);
    let at = |ns: &u64| ns.saturating_sub(start_ns) as f64 / 1e9;
    let column = &series.columns[0];
    let values = column.to_f64();
    let unit = unit_of(recording, topic, path);
    let per_row: usize = column.shape.iter().product();
    for element in 0..per_row.min(MAX_SERIES + 1) {
        let index: String =
            if column.shape.is_empty() { String::new() } else { index(&column.shape, element) };
        let of_element = values.iter().skip(element).step_by(per_row).copied();
        let points = series.log_ns.iter().map(at).zip(of_element).collect();
        lines.push(Series { name: format!("{topic}.{path}{index}"), unit: unit.clone(), points });
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
            match (fields.is_empty(), channel.message_type()) {
                (_, Ok(MessageType::Raw)) => format!("{given} has raw bytes, without fields"),
                (true, _) => format!(
                    "{given} has no single numbers; an element of a list is {given}.NAME[0]"
                ),
                (false, _) => format!("select a field of {given}: it has {}", fields.join(", ")),
            }
        }
        None => {
            let topic = given.split('.').next().unwrap_or(given);
            let hint = did_you_mean(topic, topics());
            let hint = hint.unwrap_or_else(|| "see rnet bag info".to_owned());
            format!("topic {topic} not found in {}; {hint}", recording.path().display())
        }
    };
    Err(Failure::Failed(escape_controls(&why).into_owned()))
}

/// Names, units and ranges of the series as JSON, with the file of the picture.
pub fn document(file: Option<&PathBuf>, lines: &[Series]) -> Value {
    let mut document = json!({ "lines": lines.iter().map(series_json).collect::<Vec<Value>>() });
    if let Some(file) = file {
        document["file"] = json!(file);
    }
    document
}

fn series_json(line: &Series) -> Value {
    let there = line.values().filter(|value| value.is_finite()).count();
    let range = range(line.values());
    json!({
        "field": line.name,
        "unit": line.unit,
        "points": line.points.len(),
        "numbers": there,
        "min": range.map(|range| range.0),
        "max": range.map(|range| range.1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_their_indices() {
        assert_eq!((index(&[3], 2), index(&[2, 3], 4)), ("[2]".to_owned(), "[1][1]".to_owned()));
    }
}
