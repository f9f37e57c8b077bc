//! A plot as a file: SVG or PNG.

use std::path::Path;
use std::sync::Once;

use plotters::backend::BitMapBackend;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{PathElement, Text};
use plotters::prelude::{DrawingBackend, SVGBackend};
use plotters::series::LineSeries;
use plotters::style::{Color, FontStyle, IntoTextStyle, RGBColor, WHITE, register_font};

use super::{Line, range};
use crate::failure::{Failure, Outcome};

/// Colours that people who see few colours tell apart, by Okabe and Ito.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
const FONT_NAME: &str = "sans-serif";
/// Legend sizes in pixels: font, colour line, gap, row.
const LEGEND_SIZE: u32 = 13;
const LEGEND_LINE: u32 = 16;
const LEGEND_GAP: u32 = 8;
const LEGEND_ROW: u32 = 20;
/// Where a range has no length it gets one, as a part of its size.
const LEAST_RANGE: f64 = 1e-6;

/// Whether a name says which picture the file is.
///
/// # Errors
/// `Usage` for another name.
pub fn check_name(path: &Path) -> Outcome {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg" | "png") => Ok(()),
        _ => Err(Failure::Usage(format!(
            "{}: the name of the new file says what it is: .svg or .png",
            path.display()
        ))),
    }
}

/// The content of a file, whose name says what it is.
///
/// # Errors
/// `Usage` for another name; `Failed` for numbers that have no common scale.
pub fn picture(path: &Path, title: &str, lines: &[Line], size: (u32, u32)) -> Outcome<Vec<u8>> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let failed = |why: String| Failure::Failed(format!("cannot write {}: {why}", path.display()));
    match extension {
        Some("svg") => {
            let mut text = String::new();
            draw(SVGBackend::with_string(&mut text, size).into_drawing_area(), title, lines)
                .map_err(failed)?;
            Ok(text.into_bytes())
        }
        _ => {
            check_name(path)?;
            let mut pixels = vec![0; size.0 as usize * size.1 as usize * 3];
            let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
            draw(area, title, lines).map_err(failed)?;
            png(&pixels, size).map_err(|error| failed(error.to_string()))
        }
    }
}

fn png(pixels: &[u8], (width, height): (u32, u32)) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

fn draw<B: DrawingBackend>(
    area: DrawingArea<B, Shift>,
    title: &str,
    lines: &[Line],
) -> Result<(), String> {
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        // A picture has the same letters wherever it is made, with no fonts installed.
        let registered = register_font(FONT_NAME, FontStyle::Normal, dejavu::sans::regular());
        debug_assert!(registered.is_ok(), "the font of the crate dejavu is one");
    });
    let said = |error: &dyn std::error::Error| error.to_string();
    area.fill(&WHITE).map_err(|error| said(&error))?;
    let area = area.titled(title, (FONT_NAME, 18)).map_err(|error| said(&error))?;
    let (width, _) = area.dim_in_pixel();
    let columns = width as usize;
    let legend = Legend::new(&area, lines, width * 2 / 5)?;
    let (area, beside) = area.split_horizontally(width.saturating_sub(legend.width));
    let times = wide(range(lines.iter().flat_map(Line::times)));
    let values = wide(range(lines.iter().flat_map(Line::values)));
    if !(values.1 - values.0).is_finite() {
        return Err(format!("numbers from {:e} to {:e} have no common scale", values.0, values.1));
    }
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(72)
        .build_cartesian_2d(times.0..times.1, values.0..values.1)
        .map_err(|error| said(&error))?;
    chart
        .configure_mesh()
        .x_desc("s from the start of the recording")
        .y_desc(common_unit(lines))
        .light_line_style(WHITE)
        .draw()
        .map_err(|error| said(&error))?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let thinned = line.thinned(times, columns);
        for part in thinned.split(Option::is_none).filter(|part| !part.is_empty()) {
            let points = part.iter().flatten().copied();
            let drawn = chart.draw_series(LineSeries::new(points, colour.stroke_width(1)));
            drawn.map_err(|error| said(&error))?;
        }
    }
    legend.draw(&beside)?;
    area.present().map_err(|error| said(&error))
}

/// The unit of the y axis, if all lines have the same one.
fn common_unit(lines: &[Line]) -> String {
    let unit = lines.first().and_then(|line| line.unit.clone());
    let is_common = lines.iter().all(|line| line.unit == unit);
    unit.filter(|_| is_common).map(|unit| format!("[{unit}]")).unwrap_or_default()
}

/// The legend, in an area to the right of the data.
struct Legend {
    labels: Vec<String>,
    width: u32,
}

impl Legend {
    /// A legend of at most `most` pixels. Longer labels are cut at the start.
    fn new<B: DrawingBackend>(
        area: &DrawingArea<B, Shift>,
        lines: &[Line],
        most: u32,
    ) -> Result<Legend, String> {
        let style = (FONT_NAME, LEGEND_SIZE).into_text_style(area);
        let width = |label: &str| {
            let size = area.estimate_text_size(label, &style).map_err(|error| error.to_string())?;
            Ok::<u32, String>(size.0 + LEGEND_LINE + 2 * LEGEND_GAP)
        };
        let (mut labels, mut widest) = (Vec::new(), 0);
        for line in lines {
            let mut label = line.label();
            while width(&label)? > most && label.chars().count() > 2 {
                label = format!("…{}", label.chars().skip(2).collect::<String>());
            }
            widest = widest.max(width(&label)?);
            labels.push(label);
        }
        Ok(Legend { labels, width: widest.min(most) })
    }

    fn draw<B: DrawingBackend>(self, area: &DrawingArea<B, Shift>) -> Result<(), String> {
        let style = (FONT_NAME, LEGEND_SIZE).into_text_style(area);
        for (at, (label, colour)) in self.labels.into_iter().zip(COLOURS.iter().cycle()).enumerate()
        {
            let y = (LEGEND_GAP + at as u32 * LEGEND_ROW) as i32;
            let middle = y + (LEGEND_SIZE / 2) as i32;
            let sign = PathElement::new(
                [(0, middle), (LEGEND_LINE as i32, middle)],
                colour.stroke_width(2),
            );
            area.draw(&sign).map_err(|error| error.to_string())?;
            let place = ((LEGEND_LINE + LEGEND_GAP) as i32, y);
            let text = Text::new(label, place, style.clone());
            area.draw(&text).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// A range that can be drawn: of some length, and with room above and below.
fn wide(range: Option<(f64, f64)>) -> (f64, f64) {
    let (low, high) = range.unwrap_or((0.0, 1.0));
    let least = low.abs().max(high.abs()).max(LEAST_RANGE) * LEAST_RANGE;
    match high - low > least {
        true => (low, high),
        false => (low - least.max(0.5), high + least.max(0.5)),
    }
}
