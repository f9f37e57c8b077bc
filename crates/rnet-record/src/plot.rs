//! Numbers over time, for pictures and for terminals.

mod field;
mod svg;
mod terminal;

pub use field::{MAX_SERIES, document, read_field};
pub use svg::{check_name, draw_svg};
pub use terminal::draw_text;

use crate::read::Recording;
use rnet_format::value::unit;

/// A number over time.
pub struct Series {
    /// Its name.
    pub name: String,
    /// Unit of its values, if known.
    pub unit: Option<String>,
    /// Seconds from the start of the recording, and the value there; one that is not finite interrupts the line.
    pub points: Vec<(f64, f64)>,
}

/// The unit of a field of a topic, if known.
pub fn unit_of(recording: &Recording, topic: &str, field: &str) -> Option<String> {
    let channels = recording.channels().filter(|channel| channel.topic == topic);
    channels.filter_map(|channel| unit(&channel.message_type().ok()?, field)).next()
}

/// The lowest and the highest of some numbers, those that are none left out.
pub fn range(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers.filter(|number| number.is_finite()).fold(None, |range, number| {
        let (low, high) = range.unwrap_or((number, number));
        Some((low.min(number), high.max(number)))
    })
}

impl Series {
    /// Its name and unit.
    pub fn label(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} [{unit}]", self.name),
            None => self.name.clone(),
        }
    }

    /// Its values.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|(_, value)| *value)
    }

    /// The times of its values.
    pub fn times(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|(at, _)| *at)
    }

    /// The line in so many columns from `from` to `to`: of each column the first, the lowest, the highest and the last
    /// point, in the order of time, so that a picture of it is that of all points. Gaps are `None`.
    pub fn thinned(&self, (from, to): (f64, f64), columns: usize) -> Vec<Option<(f64, f64)>> {
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
    use rnet_format::Failure;

    fn line(values: impl Iterator<Item = f64>) -> Series {
        let points = values.enumerate().map(|(n, value)| (n as f64, value)).collect();
        Series { name: "/t.x".to_owned(), unit: Some("m/s".to_owned()), points }
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
        let path = std::path::Path::new("none.svg");
        let refused = draw_svg(path, "", &[line([-1e308, 1e308].into_iter())], (300, 200));
        assert!(
            matches!(refused, Err(Failure::Failed(why)) if why.contains("too large for one scale"))
        );
    }

    /// The x coordinates of all points in an SVG.
    fn xs(svg: &str, element: &str) -> Vec<f64> {
        let of = |text: &str| -> Vec<f64> {
            let points = text.split(element).nth(1).and_then(|rest| rest.split('"').nth(1));
            let points = points.unwrap_or_default().split(' ');
            points.filter_map(|point| point.split(',').next()?.parse().ok()).collect()
        };
        svg.split('<').filter(|text| text.contains(element)).flat_map(of).collect()
    }

    #[test]
    fn a_picture_has_a_title_a_unit_and_its_legend_beside_the_data() {
        let mut other = line([1.0, 2.0, 1.5].into_iter());
        other.name = "/another.topic.with_a_long_name".to_owned();
        let lines = [line([3.0, 1.0, 2.0].into_iter()), other];
        let svg =
            draw_svg(std::path::Path::new("a.svg"), "drive.mcap", &lines, (900, 400)).unwrap();
        assert!(svg.contains("drive.mcap") && svg.contains("[m/s]"), "{svg}");
        let legend = svg.split("<text").find(|text| text.contains("/t.x [m/s]")).unwrap();
        let legend_x: f64 =
            legend.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        let data = xs(&svg, "points=").into_iter().fold(0.0, f64::max);
        assert!(data > 300.0 && data < legend_x, "data up to {data}, the legend from {legend_x}");
    }
}
