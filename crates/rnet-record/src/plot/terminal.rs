//! A plot of characters: each is 2 by 4 dots of braille.

use super::{Series, range};

const WIDTH: usize = 72;
const HEIGHT: usize = 12;
/// Dots of a character: across and down.
const DOTS: (usize, usize) = (2, 4);
/// The first of the 256 characters of braille, which has no dots.
const BLANK: u32 = 0x2800;
/// The bit of each dot, by row and column.
const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// The lines of a plot, without its label; `None` if the series has no numbers.
pub fn draw_text(line: &Series) -> Option<Vec<String>> {
    let (Some(times), Some(values)) = (range(line.times()), range(line.values())) else {
        return None;
    };
    let mut lines = Vec::new();
    let rows = characters(line, times, values);
    let labels = [(0, values.1), (HEIGHT - 1, values.0)].map(|(row, value)| (row, number(value)));
    let width = labels.iter().map(|(_, label)| label.len()).max().unwrap_or(0);
    for (row, text) in rows.iter().enumerate() {
        let label = labels.iter().find(|(at, _)| *at == row).map_or("", |(_, label)| label);
        lines.push(format!("{label:>width$} │{}", text.trim_end_matches('\u{2800}')));
    }
    let (from, to) = (number(times.0), number(times.1));
    let gap = WIDTH.saturating_sub(from.len() + 2);
    lines.push(format!("{:>width$} └{}", "", "─".repeat(WIDTH)));
    lines.push(format!("{:>width$}  {from} s{to:>gap$} s", ""));
    Some(lines)
}

/// Short, but with the digits that tell the ends apart.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-3..1e6).contains(&size) => format!("{value:.4e}"),
        _ => {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

fn characters(line: &Series, times: (f64, f64), values: (f64, f64)) -> Vec<String> {
    let (across, down) = (WIDTH * DOTS.0, HEIGHT * DOTS.1);
    let place = |value: f64, (low, high): (f64, f64), dots: usize| match high > low {
        true => ((value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) * (dots - 1) as f64).round()
            as usize,
        false => dots / 2,
    };
    let mut canvas = vec![[BLANK; WIDTH]; HEIGHT];
    let mut dot =
        |x: usize, y: usize| canvas[y / DOTS.1][x / DOTS.0] |= BITS[y % DOTS.1][x % DOTS.0];
    let mut before: Option<(usize, usize)> = None;
    for point in line.thinned(times, across) {
        let at = point.map(|(t, v)| (place(t, times, across), down - 1 - place(v, values, down)));
        match (before, at) {
            (Some(from), Some(to)) => stroke(from, to, &mut dot),
            (None, Some((x, y))) => dot(x, y),
            (_, None) => {}
        }
        before = at;
    }
    let text = |row: &[u32; WIDTH]| row.iter().filter_map(|c| char::from_u32(*c)).collect();
    canvas.iter().map(text).collect()
}

/// All dots from one to another.
fn stroke(from: (usize, usize), to: (usize, usize), dot: &mut impl FnMut(usize, usize)) {
    let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
    let between = |a: usize, b: usize, step: usize| {
        (a as f64 + (b as f64 - a as f64) * step as f64 / steps as f64).round() as usize
    };
    for step in 0..=steps {
        dot(between(from.0, to.0, step), between(from.1, to.1, step));
    }
}
