//! Images: raw ones thinned out to what a page shows and made JPEG, compressed ones as they are.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use prost::Message as _;
use rnet::inspect::Heard;
use rnet::msgs::plain::{Image, read};
use rnet::msgs::{CompressedImage, RawImage};
use serde_json::{Value as Json, json};

use super::picture::{Drawn, Picture};

/// Largest compressed image that is passed on, in bytes.
const MAX_COMPRESSED_LEN_BYTES: usize = 2 << 20;
/// Of 100: what is drawn a few times a second for a person to look at.
const JPEG_QUALITY: u8 = 80;
/// Smaller ones are sent as they are: each of their pixels may matter, and they are no load.
const MIN_JPEG_PX: usize = 64 * 64;

/// Rows of pixels.
struct Raster<'a> {
    width: usize,
    height: usize,
    step: usize,
    encoding: &'a str,
    frame_id: &'a str,
    data: &'a [u8],
}

/// Images of at most so many pixels.
pub struct Images {
    pub max_px: usize,
}

impl Picture for Images {
    fn of(&self, heard: &Heard<'_>, bytes: &[u8]) -> Result<Drawn, String> {
        let wrong = |why: prost::DecodeError| why.to_string();
        match heard.type_desc.name() {
            Some("rnet.msgs.Image") => {
                let (header, data) = read::<Image>(bytes).map_err(|error| error.to_string())?;
                self.raw(&Raster {
                    width: header.width() as usize,
                    height: header.height() as usize,
                    step: header.row_stride() as usize,
                    encoding: header.encoding(),
                    frame_id: header.frame_id(),
                    data,
                })
            }
            Some("foxglove.RawImage") => {
                let image = RawImage::decode(bytes).map_err(wrong)?;
                self.raw(&Raster {
                    width: image.width as usize,
                    height: image.height as usize,
                    step: image.step as usize,
                    encoding: &image.encoding,
                    frame_id: &image.frame_id,
                    data: &image.data,
                })
            }
            Some("foxglove.CompressedImage") => {
                compressed(CompressedImage::decode(bytes).map_err(wrong)?)
            }
            other => Err(format!("{} is no image that can be shown", other.unwrap_or("raw"))),
        }
    }
}

impl Images {
    fn raw(&self, image: &Raster<'_>) -> Result<Drawn, String> {
        let (width, height, pixels) = thin(image, self.max_px)?;
        let (encoding, payload) = match jpeg(width, height, &pixels) {
            Some(jpeg) => ("jpeg", jpeg),
            None => ("rgba8", pixels),
        };
        let head = json!({
            "width": width,
            "height": height,
            "full_width": image.width,
            "full_height": image.height,
            "encoding": encoding,
            "frame_id": image.frame_id,
        });
        Ok((head, payload))
    }
}

/// An image as JPEG, if it is one that gets smaller by it: 1080p thinned out to 640 x 360 is some 40 kB instead of 900.
fn jpeg(width: usize, height: usize, rgba: &[u8]) -> Option<Vec<u8>> {
    if width * height < MIN_JPEG_PX {
        return None;
    }
    // Longer sides than JPEG has.
    let (width, height) = (u16::try_from(width).ok()?, u16::try_from(height).ok()?);
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, JPEG_QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.encode(rgba, width, height, ColorType::Rgba).ok()?;
    Some(out)
}

fn compressed(image: CompressedImage) -> Result<Drawn, String> {
    let encoding = match image.format.as_str() {
        "jpg" | "jpeg" => "jpeg",
        "png" => "png",
        "webp" => "webp",
        other => return Err(format!("images of format {other:?} cannot be shown")),
    };
    let len = image.data.len();
    if len > MAX_COMPRESSED_LEN_BYTES {
        return Err(format!(
            "it has {len} bytes, and at most {MAX_COMPRESSED_LEN_BYTES} are shown"
        ));
    }
    let head = json!({
        "width": Json::Null,
        "height": Json::Null,
        "full_width": Json::Null,
        "full_height": Json::Null,
        "encoding": encoding,
        "frame_id": image.frame_id,
    });
    Ok((head, image.data.to_vec()))
}

/// The colour of a pixel: red, green, blue, and 255.
type Colour = fn(&[u8]) -> [u8; 4];

/// Bytes of a pixel, and how it is coloured.
fn pixel_of(encoding: &str) -> Option<(usize, Colour)> {
    Some(match encoding {
        "rgb8" | "8UC3" => (3, |p| [p[0], p[1], p[2], 255]),
        "bgr8" => (3, |p| [p[2], p[1], p[0], 255]),
        "rgba8" => (4, |p| [p[0], p[1], p[2], p[3]]),
        "bgra8" => (4, |p| [p[2], p[1], p[0], p[3]]),
        // The pattern of colours of a sensor is shown as it is, in grey.
        "mono8" | "8UC1" | "bayer_rggb8" | "bayer_bggr8" | "bayer_gbrg8" | "bayer_grbg8" => {
            (1, |p| [p[0], p[0], p[0], 255])
        }
        "mono16" | "16UC1" => (2, |p| [p[1], p[1], p[1], 255]),
        // Of these the brightness.
        "yuv422_yuy2" | "yuyv" => (2, |p| [p[0], p[0], p[0], 255]),
        "yuv422" | "uyvy" => (2, |p| [p[1], p[1], p[1], 255]),
        _ => return None,
    })
}

/// Every so manieth pixel of every so manieth row, as RGBA: width, height and bytes.
fn thin(image: &Raster<'_>, max_px: usize) -> Result<(usize, usize, Vec<u8>), String> {
    let Raster { width, height, step, encoding, data, .. } = *image;
    if width == 0 || height == 0 {
        return Err("it has no pixels".to_owned());
    }
    if matches!(encoding, "32FC1") {
        return depth(image, max_px);
    }
    let (size, colour) =
        pixel_of(encoding).ok_or_else(|| format!("pixels of {encoding:?} cannot be shown"))?;
    check(image, size)?;
    let stride = stride(width, height, max_px);
    let (w, h) = (width.div_ceil(stride), height.div_ceil(stride));
    let mut out = Vec::with_capacity(w * h * 4);
    for y in (0..height).step_by(stride) {
        let row = &data[y * step..y * step + width * size];
        for pixel in row.chunks_exact(size).step_by(stride) {
            out.extend_from_slice(&colour(pixel));
        }
    }
    Ok((w, h, out))
}

/// Distances as grey, the nearest bright.
fn depth(image: &Raster<'_>, max_px: usize) -> Result<(usize, usize, Vec<u8>), String> {
    let Raster { width, height, step, data, .. } = *image;
    check(image, 4)?;
    let stride = stride(width, height, max_px);
    let mut values = Vec::new();
    for y in (0..height).step_by(stride) {
        let row = &data[y * step..y * step + width * 4];
        for pixel in row.chunks_exact(4).step_by(stride) {
            values.push(f32::from_le_bytes([pixel[0], pixel[1], pixel[2], pixel[3]]));
        }
    }
    let known = || values.iter().copied().filter(|v| v.is_finite());
    let (near, far) = (known().fold(f32::INFINITY, f32::min), known().fold(0.0, f32::max));
    let scale = if far > near { 215.0 / (far - near) } else { 0.0 };
    let grey = |v: &f32| match v.is_finite() {
        true => {
            let g = 255 - ((v - near) * scale) as u8;
            [g, g, g, 255]
        }
        false => [0, 0, 0, 255],
    };
    let out = values.iter().flat_map(grey).collect();
    Ok((width.div_ceil(stride), height.div_ceil(stride), out))
}

/// Whether the rows are there.
fn check(image: &Raster<'_>, size: usize) -> Result<(), String> {
    let Raster { width, height, step, data, .. } = *image;
    let row = width.checked_mul(size).ok_or("its rows are too long")?;
    let need = step.checked_mul(height - 1).and_then(|rows| rows.checked_add(row));
    match need {
        Some(need) if step >= row && need <= data.len() => Ok(()),
        _ => Err(format!(
            "{width} x {height} pixels of {size} bytes in rows of {step} do not fit its {} bytes",
            data.len()
        )),
    }
}

/// So that no more than `max_px` pixels are left.
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
        let step = data.len() / height;
        Raster { width, height, step, encoding, frame_id: "", data }
    }

    #[test]
    fn pixels_keep_their_colours_and_images_their_shape() {
        let (w, h, out) = thin(&raster(2, 1, "bgr8", &[1, 2, 3, 4, 5, 6]), 100).unwrap();
        assert_eq!((w, h, out), (2, 1, vec![3, 2, 1, 255, 6, 5, 4, 255]));
        let data = vec![7; 640 * 480];
        let (w, h, out) = thin(&raster(640, 480, "mono8", &data), 20_000).unwrap();
        assert_eq!((w, h), (160, 120));
        assert_eq!(out.len(), w * h * 4);
        let near: Vec<u8> = [1.0f32, 3.0, f32::NAN].iter().flat_map(|x| x.to_le_bytes()).collect();
        let (_, _, out) = thin(&raster(3, 1, "32FC1", &near), 100).unwrap();
        assert_eq!([out[0], out[4], out[8]], [255, 40, 0]);
    }

    #[test]
    fn what_is_large_enough_becomes_a_jpeg() {
        let pixels: Vec<u8> = (0..640 * 360)
            .flat_map(|n: u32| [(n % 640 / 3) as u8, (n / 640) as u8, 40, 255])
            .collect();
        let small = jpeg(640, 360, &pixels).unwrap();
        // Its marks at both ends, and its size between.
        assert_eq!(
            (&small[..3], &small[small.len() - 2..]),
            (&[0xff, 0xd8, 0xff][..], &[0xff, 0xd9][..])
        );
        assert!(
            small.windows(4).any(|w| w == [360_u16.to_be_bytes(), 640_u16.to_be_bytes()].concat())
        );
        assert!(small.len() < pixels.len() / 20, "{} of {}", small.len(), pixels.len());
        assert!(jpeg(8, 8, &[0; 8 * 8 * 4]).is_none());
        assert!(jpeg(70_000, 1, &vec![0; 70_000 * 4]).is_none());
    }

    #[test]
    fn images_that_lie_are_refused() {
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
        ] {
            let image = Raster { width, height, step, encoding, frame_id: "", data: &[0; 6] };
            assert!(thin(&image, 100).is_err(), "{width} {height} {step} {encoding}");
        }
    }
}
