//! Standard ROS 2 messages that pages draw, as `rnet play` publishes them from a ROS 2 recording.
//!
//! Their types come from the file (docs/design/ros2.md), so fields are looked up by name.

use rnet::inspect::ObservedMessage;
use rnet::msgs::{FrameTransform, Quaternion, Vector3};
use rnet::schema::Dynamic;
use rnet_schema::prost_reflect::prost::bytes::Bytes;
use rnet_schema::prost_reflect::{DynamicMessage, Value};
use rnet_schema::reflect::ReflectDynamic;

pub const IMAGE: &str = "sensor_msgs.msg.Image";
pub const COMPRESSED_IMAGE: &str = "sensor_msgs.msg.CompressedImage";
pub const POINT_CLOUD: &str = "sensor_msgs.msg.PointCloud2";
pub const LASER_SCAN: &str = "sensor_msgs.msg.LaserScan";
pub const TRANSFORMS: &str = "tf2_msgs.msg.TFMessage";

/// A message whose fields are read by name. A missing field or one of another type reads as empty or zero.
pub struct Fields(DynamicMessage);

impl Fields {
    /// # Errors
    /// The bytes do not decode as the type.
    pub fn decode(observed: &ObservedMessage<'_>, bytes: &[u8]) -> Result<Fields, String> {
        let schema = observed
            .schema
            .ok_or_else(|| format!("the type {} cannot be read", observed.type_desc))?;
        let message = Dynamic::decode(schema, bytes).map_err(|error| error.to_string())?;
        Ok(Fields(message.message().clone()))
    }

    fn value(&self, name: &str) -> Option<Value> {
        self.0.get_field_by_name(name).map(std::borrow::Cow::into_owned)
    }

    pub fn text(&self, name: &str) -> String {
        self.value(name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// A bytes field, without a copy.
    pub fn bytes(&self, name: &str) -> Bytes {
        self.value(name).and_then(|value| value.as_bytes().cloned()).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> f64 {
        self.value(name).as_ref().map_or(0.0, number)
    }

    pub fn size(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    pub fn flag(&self, name: &str) -> bool {
        self.number(name) != 0.0
    }

    pub fn numbers(&self, name: &str) -> Vec<f64> {
        self.value(name).iter().flat_map(|v| v.as_list().unwrap_or_default()).map(number).collect()
    }

    /// A nested message; the default if it is not set.
    pub fn inner(&self, name: &str) -> Option<Fields> {
        self.value(name).and_then(|value| value.as_message().cloned()).map(Fields)
    }

    /// A repeated message field.
    pub fn list(&self, name: &str) -> Vec<Fields> {
        let value = self.value(name);
        let items = value.iter().flat_map(|value| value.as_list().unwrap_or_default());
        items.filter_map(|item| item.as_message().cloned()).map(Fields).collect()
    }

    /// The frame of the header.
    pub fn frame_id(&self) -> String {
        self.inner("header").map(|header| header.text("frame_id")).unwrap_or_default()
    }
}

fn number(value: &Value) -> f64 {
    match *value {
        Value::Bool(flag) => f64::from(u8::from(flag)),
        Value::I32(n) => f64::from(n),
        Value::U32(n) => f64::from(n),
        Value::I64(n) => n as f64,
        Value::U64(n) => n as f64,
        Value::F32(x) => f64::from(x),
        Value::F64(x) => x,
        _ => 0.0,
    }
}

/// The transforms of a `TFMessage`.
///
/// # Errors
/// The bytes do not decode as the type.
pub fn transforms(
    observed: &ObservedMessage<'_>,
    bytes: &[u8],
) -> Result<Vec<FrameTransform>, String> {
    let all = Fields::decode(observed, bytes)?.list("transforms");
    Ok(all.iter().map(transform).collect())
}

fn transform(of: &Fields) -> FrameTransform {
    let turned = of.inner("transform");
    let part = |name: &str| turned.as_ref().and_then(|turned| turned.inner(name));
    let vector = |v: Fields| Vector3 { x: v.number("x"), y: v.number("y"), z: v.number("z") };
    let quaternion = |q: Fields| Quaternion {
        x: q.number("x"),
        y: q.number("y"),
        z: q.number("z"),
        w: q.number("w"),
    };
    FrameTransform {
        parent_frame_id: of.frame_id(),
        child_frame_id: of.text("child_frame_id"),
        translation: part("translation").map(vector),
        rotation: part("rotation").map(quaternion),
        ..FrameTransform::default()
    }
}
