//! Images: raw ones are downsampled and encoded as JPEG, compressed ones are passed on unchanged.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use prost::Message as _;
use rnet::inspect::ObservedMessage;
use rnet::msgs::plain::{Image, read};
use rnet::msgs::{CompressedImage, RawImage};
use serde_json::{Value as Json, json};

use super::picture::EncodedPicture;
use super::pixels::{Downsampled, Raster, Scale};
use super::ros2;

/// Maximum length of a compressed image, in bytes.
const MAX_COMPRESSED_LEN_BYTES: usize = 2 << 20;
/// Of 100: sufficient for a person who looks at a few images per second.
const JPEG_QUALITY: u8 = 80;
/// Smaller images are sent uncompressed: each pixel may matter, and they are small.
const MIN_JPEG_PX: usize = 64 * 64;

/// Converts an image, with at most `max_px` pixels.
pub fn image(
    observed: &ObservedMessage<'_>,
    bytes: &[u8],
    max_px: usize,
) -> Result<EncodedPicture, String> {
    let wrong = |why: prost::DecodeError| why.to_string();
    let shown = |raster: &Raster<'_>| raw(max_px, raster);
    match observed.type_desc.name() {
        Some("rnet.msgs.Image") => {
            let (header, data) = read::<Image>(bytes).map_err(|error| error.to_string())?;
            shown(&Raster {
                width: header.width() as usize,
                height: header.height() as usize,
                step: header.row_stride() as usize,
                encoding: header.encoding(),
                is_big_endian: false,
                frame_id: header.frame_id(),
                data,
            })
        }
        Some("foxglove.RawImage") => {
            let image = RawImage::decode(bytes).map_err(wrong)?;
            shown(&Raster {
                width: image.width as usize,
                height: image.height as usize,
                step: image.step as usize,
                encoding: &image.encoding,
                is_big_endian: false,
                frame_id: &image.frame_id,
                data: &image.data,
            })
        }
        Some(ros2::IMAGE) => {
            let image = ros2::Fields::decode(observed, bytes)?;
            shown(&Raster {
                width: image.size("width"),
                height: image.size("height"),
                step: image.size("step"),
                encoding: &image.text("encoding"),
                is_big_endian: image.flag("is_bigendian"),
                frame_id: &image.frame_id(),
                data: &image.bytes("data"),
            })
        }
        Some("foxglove.CompressedImage") => {
            let image = CompressedImage::decode(bytes).map_err(wrong)?;
            compressed(&image.data, &image.format, &image.frame_id)
        }
        Some(ros2::COMPRESSED_IMAGE) => {
            let image = ros2::Fields::decode(observed, bytes)?;
            compressed(&image.bytes("data"), &image.text("format"), &image.frame_id())
        }
        other => Err(format!("{} is not a supported image type", other.unwrap_or("raw"))),
    }
}

fn raw(max_px: usize, image: &Raster<'_>) -> Result<EncodedPicture, String> {
    let Downsampled { width, height, rgba, scale } = image.downsample(max_px)?;
    let (encoding, payload) = match jpeg(width, height, &rgba) {
        Some(jpeg) => ("jpeg", jpeg),
        None => ("rgba8", rgba),
    };
    let mut head = json!({
        "width": width,
        "height": height,
        "full_width": image.width,
        "full_height": image.height,
        "encoding": encoding,
        "pixels": image.encoding,
        "frame_id": image.frame_id,
    });
    if let Some(Scale { bright, dark, unit }) = scale {
        head["scale"] = json!({"bright": bright, "dark": dark, "unit": unit});
    }
    Ok((head, payload))
}

/// Encodes an image as JPEG, if that makes it smaller: 1080p downsampled to 640 x 360 takes about 40 kB
/// instead of 900.
fn jpeg(width: usize, height: usize, rgba: &[u8]) -> Option<Vec<u8>> {
    if width * height < MIN_JPEG_PX {
        return None;
    }
    // Fails for sides longer than JPEG supports.
    let (width, height) = (u16::try_from(width).ok()?, u16::try_from(height).ok()?);
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, JPEG_QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.encode(rgba, width, height, ColorType::Rgba).ok()?;
    Some(out)
}

/// The format by the first bytes of the data: the `format` field is not reliable.
fn format_of(data: &[u8]) -> Option<&'static str> {
    match data {
        [0xff, 0xd8, 0xff, ..] => Some("jpeg"),
        [0x89, b'P', b'N', b'G', ..] => Some("png"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("webp"),
        _ => None,
    }
}

fn compressed(data: &[u8], format: &str, frame_id: &str) -> Result<EncodedPicture, String> {
    let encoding = format_of(data).ok_or_else(|| {
        format!("image format {format:?} is not supported; JPEG, PNG and WebP are")
    })?;
    let len = data.len();
    if len > MAX_COMPRESSED_LEN_BYTES {
        return Err(format!(
            "it has {len} bytes, more than the {MAX_COMPRESSED_LEN_BYTES} that the dashboard shows"
        ));
    }
    let head = json!({
        "width": Json::Null,
        "height": Json::Null,
        "full_width": Json::Null,
        "full_height": Json::Null,
        "encoding": encoding,
        "frame_id": frame_id,
    });
    Ok((head, data.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_large_images_as_jpeg() {
        let pixels: Vec<u8> = (0..640 * 360)
            .flat_map(|n: u32| [(n % 640 / 3) as u8, (n / 640) as u8, 40, 255])
            .collect();
        let small = jpeg(640, 360, &pixels).unwrap();
        // The start and end markers of JPEG.
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
    fn detects_format_of_compressed_image_by_first_bytes() {
        let jpeg = [0xff, 0xd8, 0xff, 0xe0];
        let (head, payload) = compressed(&jpeg, "rgb8; jpeg compressed bgr8", "camera").unwrap();
        assert_eq!((&head["encoding"], &payload[..]), (&json!("jpeg"), &jpeg[..]));
        assert_eq!(compressed(b"\x89PNG\r\n", "jpeg", "").unwrap().0["encoding"], "png");
        assert_eq!(compressed(b"RIFF\0\0\0\0WEBP", "", "").unwrap().0["encoding"], "webp");
        let why = compressed(b"\0\0\0\0", "16UC1; compressedDepth", "").unwrap_err();
        assert!(why.contains("\"16UC1; compressedDepth\" is not supported"), "{why}");
        let long = [&jpeg[..], &[0; MAX_COMPRESSED_LEN_BYTES]].concat();
        assert!(compressed(&long, "jpeg", "").is_err());
    }
}
