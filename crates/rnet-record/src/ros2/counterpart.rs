//! The built-in messages with a ROS 2 message of the same meaning, and their conversion.
//!
//! Fields of the same name are equivalent, and `timestamp` with `frame_id` is a header; [`convert_special`]
//! handles the other differences. Fields without a ROS 2 equivalent are omitted: docs/design/ros2.md lists
//! them.

use std::collections::HashMap;
use std::sync::LazyLock;

use rnet_schema::prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value as Reflected};

use super::definition::Definition;
use super::encode::{Fields, Value};
use super::standard;

/// Field names, and their names in ROS 2.
type Renamed = Vec<(&'static str, &'static str)>;

/// Built-in types by name: their ROS 2 type (`-` for a type that is only part of others), and the fields with
/// another name in ROS 2. `counterparts.txt` has one type per line.
static ALL: LazyLock<HashMap<&str, (&str, Renamed)>> = LazyLock::new(|| {
    let lines = include_str!("counterparts.txt").lines();
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let (ours, theirs) = (words.next()?, words.next()?);
        Some((ours, (theirs, words.filter_map(|word| word.split_once('=')).collect())))
    };
    lines.filter_map(line).collect()
});

/// The ROS 2 counterpart of a built-in type.
pub struct Counterpart {
    pub name: &'static str,
    /// The description as stored in files.
    pub text: String,
    pub definition: Definition,
}

impl Counterpart {
    /// The counterpart of a built-in type, by its full name.
    pub fn of(ours: &str) -> Option<Counterpart> {
        let (name, _) = ALL.get(ours).filter(|(name, _)| *name != "-")?;
        let text = standard::text(name);
        let definition = Definition::parse(name, &text).ok()?;
        Some(Counterpart { name, text, definition })
    }

    /// The schema of a channel: name, encoding, data.
    pub fn schema(&self) -> (String, &'static str, Vec<u8>) {
        let name = self.name.replacen('/', "/msg/", 1);
        (name, super::ROS2MSG, self.text.clone().into_bytes())
    }

    /// A built-in message as CDR.
    pub fn encode(&self, message: &DynamicMessage) -> Vec<u8> {
        super::encode::encode(&self.definition, &fields(message))
    }
}

/// The fields of a message, under their ROS 2 names.
fn fields(message: &DynamicMessage) -> Fields {
    let descriptor = message.descriptor();
    let all = descriptor.fields().filter(|field| message.has_field(field));
    let mut fields: Fields =
        all.map(|field| (field.name().to_owned(), value(&message.get_field(&field)))).collect();
    if let Some(stamp) = fields.remove("timestamp") {
        let header =
            nested(&[("stamp", Some(stamp.clone())), ("frame_id", fields.remove("frame_id"))]);
        fields.insert("header".to_owned(), header);
        fields.insert("stamp".to_owned(), stamp);
    }
    let of = descriptor.full_name();
    for (ours, theirs) in ALL.get(of).iter().flat_map(|(_, renamed)| renamed) {
        if let Some(value) = fields.remove(*ours) {
            fields.insert((*theirs).to_owned(), value);
        }
    }
    convert_special(of, &mut fields);
    fields
}

fn value(of: &Reflected) -> Value {
    match of {
        Reflected::Bool(truth) => Value::Int((*truth).into()),
        Reflected::I32(int) | Reflected::EnumNumber(int) => Value::Int((*int).into()),
        Reflected::I64(int) => Value::Int((*int).into()),
        Reflected::U32(int) => Value::Int((*int).into()),
        Reflected::U64(int) => Value::Int((*int).into()),
        Reflected::F32(float) => Value::Float((*float).into()),
        Reflected::F64(float) => Value::Float(*float),
        Reflected::String(text) => Value::Text(text.clone()),
        Reflected::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        Reflected::List(values) => Value::List(values.iter().map(value).collect()),
        Reflected::Message(message) => match message.descriptor().full_name() {
            "google.protobuf.Timestamp" | "google.protobuf.Duration" => {
                let of = |name| message.get_field_by_name(name).map(|v| value(&v));
                nested(&[("sec", of("seconds")), ("nanosec", of("nanos"))])
            }
            _ => Value::Message(fields(message)),
        },
        Reflected::Map(entries) => Value::Message(
            entries
                .iter()
                .filter_map(|(key, of)| match key {
                    MapKey::String(key) => Some((key.clone(), value(of))),
                    _ => None,
                })
                .collect(),
        ),
    }
}

fn nested(fields: &[(&str, Option<Value>)]) -> Value {
    let there =
        fields.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    Value::Message(there.collect())
}

fn int(fields: &Fields, name: &str) -> i128 {
    match fields.get(name) {
        Some(Value::Int(int)) => *int,
        _ => 0,
    }
}

fn float(fields: &Fields, name: &str) -> f64 {
    match fields.get(name) {
        Some(Value::Float(float)) => *float,
        _ => 0.0,
    }
}

fn len(fields: &Fields, name: &str) -> usize {
    match fields.get(name) {
        Some(Value::List(values)) => values.len(),
        Some(Value::Bytes(bytes)) => bytes.len(),
        _ => 0,
    }
}

/// Converts fields with other names or other numbers in ROS 2.
fn convert_special(of: &str, fields: &mut Fields) {
    let set = |fields: &mut Fields, name: &str, value| drop(fields.insert(name.to_owned(), value));
    match of {
        "foxglove.FrameTransform" => {
            let header = [
                ("stamp", fields.get("stamp").cloned()),
                ("frame_id", fields.remove("parent_frame_id")),
            ];
            set(fields, "header", nested(&header));
            let transform = [
                ("translation", fields.remove("translation")),
                ("rotation", fields.remove("rotation")),
            ];
            set(fields, "transform", nested(&transform));
        }
        "foxglove.LaserScan" => {
            let (start, end) = (float(fields, "start_angle"), float(fields, "end_angle"));
            let steps = len(fields, "ranges").saturating_sub(1).max(1) as f64;
            set(fields, "angle_min", Value::Float(start));
            set(fields, "angle_max", Value::Float(end));
            set(fields, "angle_increment", Value::Float((end - start) / steps));
            // The message does not contain the valid range: all ranges are valid.
            set(fields, "range_max", Value::Float(f64::INFINITY));
        }
        "foxglove.Log" => {
            // 10 is DEBUG and 50 is FATAL.
            let level = int(fields, "level") * 10;
            set(fields, "level", Value::Int(level));
        }
        "foxglove.Odometry" => odometry(fields),
        "foxglove.PackedElementField" => {
            // Foxglove has the unsigned type of each size first, ROS 2 the signed one.
            let ty = match int(fields, "type") {
                unsigned @ (1 | 3 | 5) => unsigned + 1,
                signed @ (2 | 4 | 6) => signed - 1,
                other => other,
            };
            set(fields, "datatype", Value::Int(ty));
            set(fields, "count", Value::Int(1));
        }
        "foxglove.PointCloud" => {
            let (stride, data) = (int(fields, "point_stride"), len(fields, "data") as i128);
            set(fields, "height", Value::Int(1));
            set(fields, "width", Value::Int(data.checked_div(stride).unwrap_or(0)));
            set(fields, "point_step", Value::Int(stride));
            set(fields, "row_step", Value::Int(data));
        }
        "rnet.msgs.BatteryState" => battery(fields),
        "rnet.msgs.Clock" => {
            let ns = int(fields, "time_ns");
            let parts = [
                ("sec", Some(Value::Int(ns.div_euclid(1_000_000_000)))),
                ("nanosec", Some(Value::Int(ns.rem_euclid(1_000_000_000)))),
            ];
            set(fields, "clock", nested(&parts));
        }
        "rnet.msgs.Diagnostic.Status" => {
            // In ROS 2, OK is 0.
            let level = (int(fields, "level") - 1).max(0);
            set(fields, "level", Value::Int(level));
        }
        "rnet.msgs.PoseEstimate" => {
            let pose =
                [("pose", fields.remove("pose")), ("covariance", fields.remove("covariance"))];
            set(fields, "pose", nested(&pose));
        }
        "rnet.msgs.Range" => {
            // ROS 2 knows only ultrasound and infrared.
            let radiation = (int(fields, "radiation") - 1).max(0);
            set(fields, "radiation_type", Value::Int(radiation));
        }
        _ => {}
    }
}

fn odometry(fields: &mut Fields) {
    let pose = [("pose", fields.remove("pose")), ("covariance", fields.remove("pose_covariance"))];
    let velocity = [
        ("linear", fields.remove("linear_velocity")),
        ("angular", fields.remove("angular_velocity")),
    ];
    let twist =
        [("twist", Some(nested(&velocity))), ("covariance", fields.remove("velocity_covariance"))];
    fields.insert("pose".to_owned(), nested(&pose));
    fields.insert("twist".to_owned(), nested(&twist));
}

fn battery(fields: &mut Fields) {
    for name in ["charge", "capacity", "design_capacity"] {
        // robot-net uses C, ROS 2 uses Ah.
        if let Some(Value::Float(charge)) = fields.get_mut(name) {
            *charge /= 3600.0;
        }
    }
    // ROS 2 uses NaN for an unmeasured value.
    for name in
        ["voltage", "temperature", "current", "charge", "capacity", "design_capacity", "percentage"]
    {
        fields.entry(name.to_owned()).or_insert(Value::Float(f64::NAN));
    }
    // An unset field means present.
    fields.entry("present".to_owned()).or_insert(Value::Int(1));
    // Ours by number: unspecified, Li-ion, LiPo, LiFePO4, NiMH, NiCd, lead acid, lithium titanate, sodium
    // ion.
    let technology = &[0, 2, 3, 4, 1, 5, 0, 0, 0];
    // Ours by number: unspecified, good, overheat, cold, dead, overvoltage; the others have no ROS 2 number
    // and become UNSPEC_FAILURE.
    let health = &[0, 1, 2, 6, 3, 4, 5, 5, 5, 5, 5];
    let theirs: [(&str, &[i128]); 2] =
        [("power_supply_technology", technology), ("power_supply_health", health)];
    for (name, theirs) in theirs {
        let of = usize::try_from(int(fields, name)).unwrap_or(0);
        let number = theirs.get(of).copied().unwrap_or(0);
        fields.insert(name.to_owned(), Value::Int(number));
    }
}
