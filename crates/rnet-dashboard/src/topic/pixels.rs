//! Decodes raw images to RGBA, subsampled to the size that a page shows.

/// Rows of pixels.
pub struct Raster<'a> {
    pub width: usize,
    pub height: usize,
    /// Bytes from the start of a row to that of the next.
    pub step: usize,
    pub encoding: &'a str,
    /// Elements of 16 and 32 bits are big-endian.
    pub is_big_endian: bool,
    pub frame_id: &'a str,
    pub data: &'a [u8],
}

/// A subsampled image.
pub struct Downsampled {
    pub width: usize,
    pub height: usize,
    pub rgba: Vec<u8>,
    pub scale: Option<Scale>,
}

/// The scale of an image with one number for each pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The values of the brightest and the darkest pixels. Pixels without a measurement are black.
    pub bright: f32,
    pub dark: f32,
    pub unit: &'static str,
}

/// How the pixels of an encoding are stored.
#[derive(Clone, Copy)]
enum Layout {
    /// The length of a pixel, and which of its bytes are red, green and blue.
    Colours { len: usize, rgb: [usize; 3] },
    /// A number for each pixel.
    Numbers(Numbers),
    /// A Bayer pattern, with the column and row of the red pixel in each block of 2 x 2.
    Bayer { len: usize, red: (usize, usize) },
    /// Two pixels in four bytes: the offsets of the first luma byte and of both chroma bytes.
    Yuv422 { y: usize, u: usize, v: usize },
    /// A luma plane, then a plane with a pair of chroma bytes for each block of 2 x 2 pixels.
    Yuv420 { u: usize, v: usize },
}

#[derive(Clone, Copy)]
enum Numbers {
    /// 16-bit intensity.
    Grey16,
    /// 16-bit distances in mm (REP 118).
    Millimetres,
    /// 32-bit distances in m (REP 118).
    Metres,
}

impl Layout {
    fn of(encoding: &str) -> Option<Layout> {
        let colours = |len, rgb| Layout::Colours { len, rgb };
        Some(match encoding {
            "mono8" | "8UC1" => colours(1, [0, 0, 0]),
            "rgb8" => colours(3, [0, 1, 2]),
            // OpenCV's types have OpenCV's channel order.
            "bgr8" | "8UC3" => colours(3, [2, 1, 0]),
            "rgba8" => colours(4, [0, 1, 2]),
            "bgra8" | "8UC4" => colours(4, [2, 1, 0]),
            // The high byte of each 16-bit channel.
            "rgb16" => colours(6, [1, 3, 5]),
            "bgr16" | "16UC3" => colours(6, [5, 3, 1]),
            "rgba16" => colours(8, [1, 3, 5]),
            "bgra16" | "16UC4" => colours(8, [5, 3, 1]),
            "mono16" => Layout::Numbers(Numbers::Grey16),
            "16UC1" => Layout::Numbers(Numbers::Millimetres),
            "32FC1" => Layout::Numbers(Numbers::Metres),
            "yuv422" | "uyvy" => Layout::Yuv422 { y: 1, u: 0, v: 2 },
            "yuv422_yuy2" | "yuyv" => Layout::Yuv422 { y: 0, u: 1, v: 3 },
            "nv12" => Layout::Yuv420 { u: 0, v: 1 },
            "nv21" => Layout::Yuv420 { u: 1, v: 0 },
            _ => {
                let (pattern, bits) = encoding.strip_prefix("bayer_")?.split_at_checked(4)?;
                let len = match bits {
                    "8" => 1,
                    "16" => 2,
                    _ => return None,
                };
                let red = match pattern {
                    "rggb" => (0, 0),
                    "grbg" => (1, 0),
                    "gbrg" => (0, 1),
                    "bggr" => (1, 1),
                    _ => return None,
                };
                Layout::Bayer { len, red }
            }
        })
    }

    /// The length of a row in bytes, without padding; `None` on overflow.
    fn row_len(self, width: usize) -> Option<usize> {
        match self {
            Layout::Colours { len, .. } | Layout::Bayer { len, .. } => width.checked_mul(len),
            Layout::Numbers(Numbers::Metres) => width.checked_mul(4),
            Layout::Numbers(_) => width.checked_mul(2),
            Layout::Yuv422 { .. } => width.div_ceil(2).checked_mul(4),
            Layout::Yuv420 { .. } => width.checked_next_multiple_of(2),
        }
    }

    fn rows(self, height: usize) -> Option<usize> {
        match self {
            Layout::Yuv420 { .. } => height.checked_add(height.div_ceil(2)),
            _ => Some(height),
        }
    }
}

impl Raster<'_> {
    /// Decodes at most `max_px` pixels.
    ///
    /// # Errors
    /// An unknown encoding, or a size that does not fit the data.
    pub fn downsample(&self, max_px: usize) -> Result<Downsampled, String> {
        if self.width == 0 || self.height == 0 {
            return Err("the image has no pixels".to_owned());
        }
        let layout = Layout::of(self.encoding)
            .ok_or_else(|| format!("pixel encoding {:?} is not supported", self.encoding))?;
        self.check(layout)?;
        let stride = stride(self.width, self.height, max_px);
        let (columns, rows) = (self.width.div_ceil(stride), self.height.div_ceil(stride));
        let (rgba, scale) = match layout {
            Layout::Numbers(numbers) => {
                let mut values = Vec::with_capacity(columns * rows);
                for y in (0..self.height).step_by(stride) {
                    let row = (0..self.width).step_by(stride);
                    values.extend(row.map(|x| self.number(numbers, x, y)));
                }
                greys(numbers, values)
            }
            layout => {
                let mut rgba = Vec::with_capacity(columns * rows * 4);
                for y in (0..self.height).step_by(stride) {
                    for x in (0..self.width).step_by(stride) {
                        let [red, green, blue] = self.colour(layout, x, y);
                        rgba.extend_from_slice(&[red, green, blue, 255]);
                    }
                }
                (rgba, None)
            }
        };
        Ok(Downsampled { width: columns, height: rows, rgba, scale })
    }

    /// Checks that the data holds all rows.
    fn check(&self, layout: Layout) -> Result<(), String> {
        let Raster { width, height, step, data, .. } = *self;
        let row = layout.row_len(width);
        let need = row.zip(layout.rows(height)).and_then(|(row, rows)| {
            step.checked_mul(rows - 1).and_then(|before| before.checked_add(row))
        });
        match (row, need) {
            (Some(row), Some(need)) if step >= row && need <= data.len() => Ok(()),
            _ => Err(format!(
                "{width} x {height} pixels of {} in rows of {step} bytes do not fit {} bytes of data",
                self.encoding,
                data.len()
            )),
        }
    }

    fn byte(&self, x: usize, y: usize) -> u8 {
        self.data[y * self.step + x]
    }

    /// The most significant byte of an element of `len` bytes.
    fn high_byte(&self, len: usize, x: usize, y: usize) -> u8 {
        let high = if self.is_big_endian { 0 } else { len - 1 };
        self.byte(x * len + high, y)
    }

    fn number(&self, numbers: Numbers, x: usize, y: usize) -> f32 {
        let bytes = |len: usize| &self.data[y * self.step + x * len..][..len];
        match numbers {
            Numbers::Grey16 | Numbers::Millimetres => {
                let pair = [bytes(2)[0], bytes(2)[1]];
                let of = if self.is_big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
                f32::from(of(pair))
            }
            Numbers::Metres => {
                let all = bytes(4);
                let of = if self.is_big_endian { f32::from_be_bytes } else { f32::from_le_bytes };
                of([all[0], all[1], all[2], all[3]])
            }
        }
    }

    fn colour(&self, layout: Layout, x: usize, y: usize) -> [u8; 3] {
        match layout {
            Layout::Colours { len, rgb } => {
                // Big-endian channels have the high byte one place earlier.
                let shift = usize::from(self.is_big_endian && len >= 6);
                let pixel = &self.data[y * self.step + x * len..][..len];
                [pixel[rgb[0] - shift], pixel[rgb[1] - shift], pixel[rgb[2] - shift]]
            }
            Layout::Bayer { len, red } => self.bayer(len, red, x, y),
            Layout::Yuv422 { y: at, u, v } => {
                let pair = x / 2 * 4;
                let bright = self.byte(pair + at + x % 2 * 2, y);
                rgb_of(bright, self.byte(pair + u, y), self.byte(pair + v, y))
            }
            Layout::Yuv420 { u, v } => {
                let (pair, row) = (x / 2 * 2, self.height + y / 2);
                rgb_of(self.byte(x, y), self.byte(pair + u, row), self.byte(pair + v, row))
            }
            Layout::Numbers(_) => [0; 3],
        }
    }

    /// Bilinear demosaicing: each channel is the mean of its pixels in the 3 x 3 neighbourhood.
    fn bayer(&self, len: usize, red: (usize, usize), x: usize, y: usize) -> [u8; 3] {
        let (mut sums, mut counts) = ([0_u16; 3], [0_u16; 3]);
        for row in y.saturating_sub(1)..(y + 2).min(self.height) {
            for column in x.saturating_sub(1)..(x + 2).min(self.width) {
                let is_red_column = column % 2 == red.0;
                let is_red_row = row % 2 == red.1;
                let colour = match (is_red_column, is_red_row) {
                    (true, true) => 0,
                    (false, false) => 2,
                    _ => 1,
                };
                sums[colour] += u16::from(self.high_byte(len, column, row));
                counts[colour] += 1;
            }
        }
        [0, 1, 2].map(|colour| (sums[colour] / counts[colour].max(1)) as u8)
    }
}

/// BT.601 with limited range (luma 16 to 235), as cameras send it.
fn rgb_of(y: u8, u: u8, v: u8) -> [u8; 3] {
    let (y, u, v) = (298 * (i32::from(y) - 16), i32::from(u) - 128, i32::from(v) - 128);
    [y + 409 * v, y - 100 * u - 208 * v, y + 516 * u]
        .map(|colour| ((colour + 128) >> 8).clamp(0, 255) as u8)
}

/// Share of the values clipped at each end of the scale: a few outliers would compress all other values.
const OUTLIERS: f64 = 0.01;
/// The grey of the farthest distance; black is reserved for missing measurements.
const DARKEST: f32 = 40.0;

fn greys(numbers: Numbers, values: Vec<f32>) -> (Vec<u8>, Option<Scale>) {
    let is_distance = !matches!(numbers, Numbers::Grey16);
    // A depth sensor reports zero or NaN where it has no measurement.
    let is_known = |value: f32| value.is_finite() && (value > 0.0 || !is_distance);
    let mut known: Vec<f32> = values.iter().copied().filter(|value| is_known(*value)).collect();
    let range = range(&mut known);
    let (low, high) = range.unwrap_or((0.0, 0.0));
    let grey = |value: f32| {
        let at = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        match (is_known(value), is_distance) {
            (false, _) => 0,
            (true, true) => (255.0 - at * (255.0 - DARKEST)).round() as u8,
            (true, false) if high > low => (at * 255.0).round() as u8,
            (true, false) => (value / 257.0) as u8,
        }
    };
    let rgba = values.into_iter().flat_map(|value| [grey(value); 3].into_iter().chain([255]));
    let rgba = rgba.collect();
    let scale = range.map(|(low, high)| match numbers {
        Numbers::Grey16 => Scale { bright: high, dark: low, unit: "" },
        Numbers::Millimetres => Scale { bright: low, dark: high, unit: "mm" },
        Numbers::Metres => Scale { bright: low, dark: high, unit: "m" },
    });
    (rgba, scale)
}

/// The lowest and the highest value, without outliers.
fn range(values: &mut [f32]) -> Option<(f32, f32)> {
    let last = values.len().checked_sub(1)?;
    let out = (last as f64 * OUTLIERS) as usize;
    let low = *values.select_nth_unstable_by(out, f32::total_cmp).1;
    let high = *values.select_nth_unstable_by(last - out, f32::total_cmp).1;
    Some((low, high))
}

/// The step between the pixels that are kept, so that at most `max_px` remain.
fn stride(width: usize, height: usize, max_px: usize) -> usize {
    let mut stride = 1;
    while width.div_ceil(stride).saturating_mul(height.div_ceil(stride)) > max_px.max(1)
        && stride < width.max(height)
    {
        stride += 1;
    }
    stride
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raster<'a>(width: usize, height: usize, encoding: &'a str, data: &'a [u8]) -> Raster<'a> {
        let step = data.len() / Layout::of(encoding).map_or(height, |l| l.rows(height).unwrap());
        Raster { width, height, step, encoding, is_big_endian: false, frame_id: "", data }
    }

    fn rgb(image: &Raster<'_>) -> Vec<[u8; 3]> {
        let downsampled = image.downsample(10_000).unwrap();
        downsampled.rgba.chunks_exact(4).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()
    }

    #[test]
    fn decodes_colours_in_order_of_encoding() {
        for (encoding, data) in [
            ("rgb8", &[3, 2, 1][..]),
            ("bgr8", &[1, 2, 3]),
            ("8UC3", &[1, 2, 3]),
            ("rgba8", &[3, 2, 1, 0]),
            ("bgra8", &[1, 2, 3, 0]),
            ("8UC4", &[1, 2, 3, 0]),
            ("rgb16", &[9, 3, 9, 2, 9, 1]),
            ("bgr16", &[9, 1, 9, 2, 9, 3]),
            ("16UC3", &[9, 1, 9, 2, 9, 3]),
            ("bgra16", &[9, 1, 9, 2, 9, 3, 0, 0]),
        ] {
            assert_eq!(rgb(&raster(1, 1, encoding, data)), [[3, 2, 1]], "{encoding}");
        }
        let mut image = raster(1, 1, "rgb16", &[3, 9, 2, 9, 1, 9]);
        image.is_big_endian = true;
        assert_eq!(rgb(&image), [[3, 2, 1]]);
    }

    #[test]
    fn images_keep_their_shape() {
        let data = vec![7; 640 * 480];
        let downsampled = raster(640, 480, "mono8", &data).downsample(20_000).unwrap();
        assert_eq!((downsampled.width, downsampled.height), (160, 120));
        assert_eq!(downsampled.rgba.len(), 160 * 120 * 4);
        assert_eq!(downsampled.scale, None);
    }

    #[test]
    fn scales_distances_to_range_and_shows_missing_as_black() {
        let metres = [1.0_f32, 3.0, f32::NAN, 0.0, f32::INFINITY, -1.0, 2.0];
        let data: Vec<u8> = metres.iter().flat_map(|x| x.to_le_bytes()).collect();
        let downsampled = raster(7, 1, "32FC1", &data).downsample(100).unwrap();
        let greys: Vec<u8> = downsampled.rgba.chunks_exact(4).map(|pixel| pixel[0]).collect();
        assert_eq!(greys, [255, 40, 0, 0, 0, 0, 148]);
        assert_eq!(downsampled.scale, Some(Scale { bright: 1.0, dark: 3.0, unit: "m" }));

        let data: Vec<u8> = [500_u16, 1500, 0, 1000].iter().flat_map(|x| x.to_le_bytes()).collect();
        let downsampled = raster(4, 1, "16UC1", &data).downsample(100).unwrap();
        let greys: Vec<u8> = downsampled.rgba.chunks_exact(4).map(|pixel| pixel[0]).collect();
        assert_eq!(greys, [255, 40, 0, 148]);
        assert_eq!(downsampled.scale, Some(Scale { bright: 500.0, dark: 1500.0, unit: "mm" }));

        let nothing = raster(2, 1, "16UC1", &[0; 4]).downsample(100).unwrap();
        assert_eq!((nothing.rgba[0], nothing.scale), (0, None));
    }

    #[test]
    fn outliers_do_not_affect_scale() {
        let mut millimetres = vec![1000_u16; 500];
        millimetres.extend([2000; 500]);
        millimetres[0] = u16::MAX;
        millimetres[1] = 1;
        let data: Vec<u8> = millimetres.iter().flat_map(|x| x.to_le_bytes()).collect();
        let downsampled = raster(1000, 1, "16UC1", &data).downsample(2000).unwrap();
        assert_eq!(downsampled.scale, Some(Scale { bright: 1000.0, dark: 2000.0, unit: "mm" }));
        assert_eq!((downsampled.rgba[0], downsampled.rgba[4]), (40, 255));
    }

    #[test]
    fn scales_16_bit_grey_from_dark_to_bright() {
        let data: Vec<u8> = [100_u16, 4100, 2100].iter().flat_map(|x| x.to_le_bytes()).collect();
        let image = raster(3, 1, "mono16", &data);
        assert_eq!(rgb(&image), [[0; 3], [255; 3], [128; 3]]);
        assert_eq!(
            image.downsample(9).unwrap().scale,
            Some(Scale { bright: 4100.0, dark: 100.0, unit: "" })
        );
        assert_eq!(rgb(&raster(1, 1, "mono16", &[0xff, 0xff])), [[255; 3]]);
        let mut turned = raster(1, 1, "16UC1", &[0x01, 0xf4]);
        turned.is_big_endian = true;
        assert_eq!(turned.downsample(1).unwrap().scale.unwrap().bright, 500.0);
    }

    #[test]
    fn decodes_yuv() {
        // Two red pixels.
        let red = [255, 0, 0];
        for (encoding, data) in [
            ("uyvy", &[90, 81, 240, 81][..]),
            ("yuv422", &[90, 81, 240, 81]),
            ("yuyv", &[81, 90, 81, 240]),
            ("yuv422_yuy2", &[81, 90, 81, 240]),
        ] {
            assert_eq!(rgb(&raster(2, 1, encoding, data)), [red, red], "{encoding}");
        }
        let nv12 = [81, 81, 81, 81, 90, 240];
        assert_eq!(rgb(&raster(2, 2, "nv12", &nv12)), [red; 4]);
        let nv21 = [81, 81, 81, 81, 240, 90];
        assert_eq!(rgb(&raster(2, 2, "nv21", &nv21)), [red; 4]);
        assert_eq!(rgb_of(16, 128, 128), [0; 3]);
        assert_eq!(rgb_of(235, 128, 128), [255; 3]);
    }

    #[test]
    fn decodes_bayer_patterns() {
        // A uniform color: red 200, green 100, blue 50.
        let cell = |pattern: &str| -> Vec<u8> {
            let of = |c| match c {
                'r' => 200,
                'g' => 100,
                _ => 50,
            };
            let own: Vec<u8> = pattern.chars().map(of).collect();
            [own[0], own[1], own[0], own[1], own[2], own[3], own[2], own[3]].repeat(2)
        };
        for pattern in ["rggb", "grbg", "gbrg", "bggr"] {
            let data = cell(pattern);
            let encoding = format!("bayer_{pattern}8");
            assert_eq!(rgb(&raster(4, 4, &encoding, &data)), [[200, 100, 50]; 16], "{encoding}");
            let wide: Vec<u8> = data.iter().flat_map(|byte| [7, *byte]).collect();
            let encoding = format!("bayer_{pattern}16");
            assert_eq!(rgb(&raster(4, 4, &encoding, &wide)), [[200, 100, 50]; 16], "{encoding}");
        }
        assert!(Layout::of("bayer_rggb12").is_none() && Layout::of("bayer_rgbg8").is_none());
        assert!(Layout::of("bayer_").is_none() && Layout::of("bayer_é8").is_none());
    }

    #[test]
    fn rejects_images_with_false_sizes() {
        for (width, height, step, encoding) in [
            (0, 1, 3, "rgb8"),
            (2, 0, 6, "rgb8"),
            (3, 1, 6, "rgb8"),
            (2, 2, 6, "rgb8"),
            (2, 1, 5, "rgb8"),
            (usize::MAX, 1, 6, "rgb8"),
            (1, usize::MAX, usize::MAX, "mono8"),
            (1, 1, 6, "what"),
            (2, 1, 6, "32FC1"),
            (3, 1, 6, "uyvy"),
            (4, 1, 6, "bayer_rggb16"),
            (3, 2, 3, "nv12"),
            (2, usize::MAX, 2, "nv12"),
            (usize::MAX, 1, 2, "nv21"),
        ] {
            let (is_big_endian, frame_id) = (false, "");
            let data = &[0; 6];
            let image = Raster { width, height, step, encoding, is_big_endian, frame_id, data };
            assert!(image.downsample(100).is_err(), "{width} {height} {step} {encoding}");
        }
    }
}
