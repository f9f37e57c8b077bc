//! Point clouds, downsampled for drawing.

use std::borrow::Cow;

use prost::Message as _;
use rnet::inspect::ObservedMessage;
use rnet::msgs::foxglove::PointCloud as Cloud;
use rnet::msgs::plain::{NumberType, PointCloud, read};
use serde_json::json;

use super::picture::EncodedPicture;
use super::ros2;

/// Field names for the brightness of a point.
const BRIGHT: [&str; 3] = ["intensity", "reflectivity", "i"];

/// A number of a point: its offset and its type.
#[derive(Clone, Copy)]
struct NumberField {
    offset: usize,
    size: usize,
    read: fn(&[u8]) -> f32,
}

/// Points of one size, with the displayed fields.
struct Points<'a> {
    data: &'a [u8],
    stride: usize,
    frame_id: &'a str,
    number_fields: Vec<NumberField>,
    has_intensity: bool,
}

/// Converts a cloud, with at most `max` points.
pub fn cloud(
    observed: &ObservedMessage<'_>,
    bytes: &[u8],
    max_points: usize,
) -> Result<EncodedPicture, String> {
    match observed.type_desc.name() {
        Some("rnet.msgs.PointCloud") => {
            let (header, data) = read::<PointCloud>(bytes).map_err(|error| error.to_string())?;
            let fields = header.fields().iter();
            let fields = fields.filter_map(|field| {
                Some((field.name(), field.offset() as usize, number(field.number_type()?)))
            });
            let (row, width) = (header.row_stride() as usize, header.width() as usize);
            let stride = header.point_stride() as usize;
            let data = packed(data, row, width.saturating_mul(stride));
            Ok(drawn(max_points, &Points::new(&data, stride, header.frame_id(), fields)?))
        }
        Some("foxglove.PointCloud") => {
            let cloud = Cloud::decode(bytes).map_err(|error| error.to_string())?;
            let fields = cloud.fields.iter().filter_map(|field| {
                Some((
                    field.name.as_str(),
                    field.offset as usize,
                    numbered(&FOXGLOVE, field.r#type() as usize)?,
                ))
            });
            let stride = cloud.point_stride as usize;
            Ok(drawn(max_points, &Points::new(&cloud.data, stride, &cloud.frame_id, fields)?))
        }
        Some(ros2::POINT_CLOUD) => {
            let cloud = ros2::Fields::decode(observed, bytes)?;
            if cloud.flag("is_bigendian") {
                return Err("big-endian point clouds cannot be shown".to_owned());
            }
            let fields: Vec<(String, usize, Number)> = cloud
                .list("fields")
                .iter()
                .filter_map(|field| {
                    let number = numbered(&ROS2, field.size("datatype"))?;
                    Some((field.text("name"), field.size("offset"), number))
                })
                .collect();
            let fields = fields.iter().map(|(name, at, number)| (name.as_str(), *at, *number));
            let stride = cloud.size("point_step");
            let data = cloud.bytes("data");
            let row = cloud.size("width").saturating_mul(stride);
            let data = packed(&data, cloud.size("row_step"), row);
            Ok(drawn(max_points, &Points::new(&data, stride, &cloud.frame_id(), fields)?))
        }
        other => Err(format!("{} is not a point cloud", other.unwrap_or("raw"))),
    }
}

/// The points without the padding between rows.
fn packed(data: &[u8], row_stride: usize, row_len: usize) -> Cow<'_, [u8]> {
    if row_stride <= row_len {
        return Cow::Borrowed(data);
    }
    data.chunks(row_stride).flat_map(|row| &row[..row_len.min(row.len())]).copied().collect()
}

fn drawn(max_points: usize, points: &Points<'_>) -> EncodedPicture {
    let (count, payload) = points.downsample(max_points);
    let mut fields = vec!["x", "y", "z"];
    fields.extend(points.has_intensity.then_some("intensity"));
    let head = json!({
        "points": count,
        "total_points": points.data.len() / points.stride,
        "fields": fields,
        "frame_id": points.frame_id,
    });
    (head, payload)
}

type Number = (usize, fn(&[u8]) -> f32);

fn number(ty: NumberType) -> Number {
    match ty {
        NumberType::U8 => (1, |b| f32::from(b[0])),
        NumberType::I8 => (1, |b| f32::from(b[0] as i8)),
        NumberType::U16 => (2, |b| f32::from(u16::from_le_bytes([b[0], b[1]]))),
        NumberType::I16 => (2, |b| f32::from(i16::from_le_bytes([b[0], b[1]]))),
        NumberType::U32 => (4, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as f32),
        NumberType::I32 => (4, |b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]) as f32),
        NumberType::F32 => (4, |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        NumberType::F64 => {
            (8, |b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]) as f32)
        }
    }
}

/// By type number minus one: types of `foxglove.PackedElementField`, and of `sensor_msgs/PointField`.
const FOXGLOVE: [NumberType; 8] = [
    NumberType::U8,
    NumberType::I8,
    NumberType::U16,
    NumberType::I16,
    NumberType::U32,
    NumberType::I32,
    NumberType::F32,
    NumberType::F64,
];
const ROS2: [NumberType; 8] = [
    NumberType::I8,
    NumberType::U8,
    NumberType::I16,
    NumberType::U16,
    NumberType::I32,
    NumberType::U32,
    NumberType::F32,
    NumberType::F64,
];

/// The type with this number, if it exists.
fn numbered(types: &[NumberType; 8], number_of_type: usize) -> Option<Number> {
    types.get(number_of_type.checked_sub(1)?).map(|ty| number(*ty))
}

impl<'a> Points<'a> {
    fn new<'f>(
        data: &'a [u8],
        stride: usize,
        frame_id: &'a str,
        fields: impl Iterator<Item = (&'f str, usize, Number)>,
    ) -> Result<Points<'a>, String> {
        let fields: Vec<(&str, NumberField)> = fields
            .map(|(name, offset, (size, read))| (name, NumberField { offset, size, read }))
            .filter(|(_, place)| {
                place.offset.checked_add(place.size).is_some_and(|end| end <= stride)
            })
            .collect();
        let place = |name: &str| fields.iter().find(|(of, _)| *of == name).map(|(_, place)| *place);
        let mut number_fields = Vec::new();
        for name in ["x", "y", "z"] {
            number_fields.push(place(name).ok_or_else(|| format!("its points have no {name}"))?);
        }
        let bright = BRIGHT.iter().find_map(|name| place(name));
        number_fields.extend(bright);
        Ok(Points { data, stride, frame_id, number_fields, has_intensity: bright.is_some() })
    }

    /// Every n-th point as float32: their number, and their bytes.
    fn downsample(&self, max_points: usize) -> (usize, Vec<u8>) {
        let total = self.data.len() / self.stride;
        let every = total.div_ceil(max_points.max(1)).max(1);
        let mut out = Vec::with_capacity(total.div_ceil(every) * self.number_fields.len() * 4);
        let mut count = 0;
        for point in self.data.chunks_exact(self.stride).step_by(every) {
            for place in &self.number_fields {
                let x = (place.read)(&point[place.offset..place.offset + place.size]);
                out.extend_from_slice(&x.to_le_bytes());
            }
            count += 1;
        }
        (count, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downsamples_points_and_rejects_fields_outside() {
        let f32s = number(NumberType::F32);
        let fields = |x: usize| {
            [
                ("x", x, f32s),
                ("y", 4, f32s),
                ("z", 8, f32s),
                ("intensity", 12, number(NumberType::U8)),
            ]
        };
        let data: Vec<u8> = (0..100u8)
            .flat_map(|n| {
                let mut point = Vec::new();
                for axis in 0..3u8 {
                    point.extend(f32::from(n + axis).to_le_bytes());
                }
                point.push(n);
                point
            })
            .collect();
        let points = Points::new(&data, 13, "lidar", fields(0).into_iter()).unwrap();
        let (count, out) = points.downsample(30);
        assert_eq!((count, out.len()), (25, 25 * 16));
        let at = |i: usize| f32::from_le_bytes(out[i * 4..i * 4 + 4].try_into().unwrap());
        assert_eq!([at(4), at(5), at(6), at(7)], [4.0, 5.0, 6.0, 4.0]);
        for wrong in [10, usize::MAX] {
            assert!(Points::new(&data, 13, "", fields(wrong).into_iter()).is_err());
        }
        assert!(Points::new(&data, 0, "", fields(0).into_iter()).is_err());
    }
}
