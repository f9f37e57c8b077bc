//! The built-in messages that have a ROS 2 message of the same meaning, and how one becomes the other.
//!
//! Fields of one name are the same, and `timestamp` with `frame_id` is a header; what differs beside that stands in
//! [`put`]. What ROS 2 has no field for is left out: docs/design/ros2.md lists it.

use rnet::schema::prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value as Reflected};

use super::definition::Definition;
use super::encode::{Fields, Value};
use super::standard;

/// Type of ours, type of ROS 2.
const ALL: &[(&str, &str)] = &[
    ("foxglove.CameraCalibration", "sensor_msgs/CameraInfo"),
    ("foxglove.CompressedImage", "sensor_msgs/CompressedImage"),
    ("foxglove.FrameTransform", "geometry_msgs/TransformStamped"),
    ("foxglove.FrameTransforms", "tf2_msgs/TFMessage"),
    ("foxglove.LaserScan", "sensor_msgs/LaserScan"),
    ("foxglove.LocationFix", "sensor_msgs/NavSatFix"),
    ("foxglove.Log", "rcl_interfaces/Log"),
    ("foxglove.Odometry", "nav_msgs/Odometry"),
    ("foxglove.Point3", "geometry_msgs/Point"),
    ("foxglove.Point3InFrame", "geometry_msgs/PointStamped"),
    ("foxglove.PointCloud", "sensor_msgs/PointCloud2"),
    ("foxglove.Pose", "geometry_msgs/Pose"),
    ("foxglove.PoseInFrame", "geometry_msgs/PoseStamped"),
    ("foxglove.PosesInFrame", "geometry_msgs/PoseArray"),
    ("foxglove.Quaternion", "geometry_msgs/Quaternion"),
    ("foxglove.RawImage", "sensor_msgs/Image"),
    ("foxglove.Vector3", "geometry_msgs/Vector3"),
    ("rnet.msgs.BatteryState", "sensor_msgs/BatteryState"),
    ("rnet.msgs.Clock", "rosgraph_msgs/Clock"),
    ("rnet.msgs.Diagnostic", "diagnostic_msgs/DiagnosticArray"),
    ("rnet.msgs.Imu", "sensor_msgs/Imu"),
    ("rnet.msgs.JointState", "sensor_msgs/JointState"),
    ("rnet.msgs.JointTrajectory", "trajectory_msgs/JointTrajectory"),
    ("rnet.msgs.Joy", "sensor_msgs/Joy"),
    ("rnet.msgs.MagneticField", "sensor_msgs/MagneticField"),
    ("rnet.msgs.PoseEstimate", "geometry_msgs/PoseWithCovarianceStamped"),
    ("rnet.msgs.Pressure", "sensor_msgs/FluidPressure"),
    ("rnet.msgs.Range", "sensor_msgs/Range"),
    ("rnet.msgs.RelativeHumidity", "sensor_msgs/RelativeHumidity"),
    ("rnet.msgs.Temperature", "sensor_msgs/Temperature"),
    ("rnet.msgs.Twist", "geometry_msgs/Twist"),
    ("rnet.msgs.TwistInFrame", "geometry_msgs/TwistStamped"),
    ("rnet.msgs.Wrench", "geometry_msgs/Wrench"),
    ("rnet.msgs.WrenchInFrame", "geometry_msgs/WrenchStamped"),
];

/// A type of ROS 2 that stands for one of ours.
pub struct Counterpart {
    pub name: &'static str,
    /// As files have it.
    pub text: String,
    pub definition: Definition,
}

impl Counterpart {
    /// Of a type of ours, by its full name.
    pub fn of(ours: &str) -> Option<Counterpart> {
        let (_, name) = ALL.iter().find(|(of, _)| *of == ours)?;
        let text = standard::text(name);
        let definition = Definition::parse(name, &text).ok()?;
        Some(Counterpart { name, text, definition })
    }

    /// The schema of a channel: name, encoding, data.
    pub fn described(&self) -> (String, &'static str, Vec<u8>) {
        let name = self.name.replacen('/', "/msg/", 1);
        (name, super::ROS2MSG, self.text.clone().into_bytes())
    }

    /// A message of ours as CDR.
    pub fn encode(&self, message: &DynamicMessage) -> Vec<u8> {
        super::encode::encode(&self.definition, &fields(message))
    }
}

/// A message by its fields, with those that ROS 2 calls otherwise.
fn fields(message: &DynamicMessage) -> Fields {
    let descriptor = message.descriptor();
    let all = descriptor.fields().filter(|field| message.has_field(field));
    let mut fields: Fields =
        all.map(|field| (field.name().to_owned(), value(&message.get_field(&field)))).collect();
    if let Some(stamp) = fields.remove("timestamp") {
        let header =
            with(&[("stamp", Some(stamp.clone())), ("frame_id", take(&mut fields, "frame_id"))]);
        fields.insert("header".to_owned(), header);
        fields.insert("stamp".to_owned(), stamp);
    }
    put(descriptor.full_name(), &mut fields);
    fields
}

fn value(of: &Reflected) -> Value {
    match of {
        Reflected::Bool(truth) => Value::Int((*truth).into()),
        Reflected::I32(int) | Reflected::EnumNumber(int) => Value::Int((*int).into()),
        Reflected::I64(int) => Value::Int(*int),
        Reflected::U32(int) => Value::Int((*int).into()),
        Reflected::U64(int) => Value::Uint(*int),
        Reflected::F32(float) => Value::Float((*float).into()),
        Reflected::F64(float) => Value::Float(*float),
        Reflected::String(text) => Value::Text(text.clone()),
        Reflected::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        Reflected::List(values) => Value::List(values.iter().map(value).collect()),
        Reflected::Message(message) => match message.descriptor().full_name() {
            "google.protobuf.Timestamp" | "google.protobuf.Duration" => {
                let of = |name| message.get_field_by_name(name).map(|v| value(&v));
                with(&[("sec", of("seconds")), ("nanosec", of("nanos"))])
            }
            _ => Value::Of(fields(message)),
        },
        Reflected::Map(entries) => Value::Of(
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

fn with(fields: &[(&str, Option<Value>)]) -> Value {
    let there =
        fields.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    Value::Of(there.collect())
}

fn take(fields: &mut Fields, name: &str) -> Option<Value> {
    fields.remove(name)
}

/// Gives a field another name.
fn rename(fields: &mut Fields, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

fn int(fields: &Fields, name: &str) -> i64 {
    match fields.get(name) {
        Some(Value::Int(int)) => *int,
        Some(Value::Float(float)) => *float as i64,
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

/// What has other names or other numbers in ROS 2.
fn put(of: &str, fields: &mut Fields) {
    let set = |fields: &mut Fields, name: &str, value| drop(fields.insert(name.to_owned(), value));
    match of {
        "foxglove.CameraCalibration" => {
            for (ours, theirs) in [("D", "d"), ("K", "k"), ("R", "r"), ("P", "p")] {
                rename(fields, ours, theirs);
            }
        }
        "foxglove.FrameTransform" => {
            let header = [
                ("stamp", fields.get("stamp").cloned()),
                ("frame_id", take(fields, "parent_frame_id")),
            ];
            set(fields, "header", with(&header));
            let transform = [
                ("translation", take(fields, "translation")),
                ("rotation", take(fields, "rotation")),
            ];
            set(fields, "transform", with(&transform));
        }
        "foxglove.LaserScan" => {
            let (start, end) = (float(fields, "start_angle"), float(fields, "end_angle"));
            let steps = len(fields, "ranges").saturating_sub(1).max(1) as f64;
            set(fields, "angle_min", Value::Float(start));
            set(fields, "angle_max", Value::Float(end));
            set(fields, "angle_increment", Value::Float((end - start) / steps));
            // It does not say which ranges are valid: all are.
            set(fields, "range_max", Value::Float(f64::INFINITY));
        }
        "foxglove.Log" => {
            // 10 is DEBUG and 50 FATAL.
            let level = int(fields, "level") * 10;
            set(fields, "level", Value::Int(level));
            rename(fields, "message", "msg");
        }
        "foxglove.Odometry" => odometry(fields),
        "foxglove.PackedElementField" => {
            // Ours have the unsigned one of each size first, theirs the signed one.
            let ty = match int(fields, "type") {
                unsigned @ (1 | 3 | 5) => unsigned + 1,
                signed @ (2 | 4 | 6) => signed - 1,
                other => other,
            };
            set(fields, "datatype", Value::Int(ty));
            set(fields, "count", Value::Int(1));
        }
        "foxglove.PointCloud" => {
            let (stride, data) = (int(fields, "point_stride"), len(fields, "data") as i64);
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
            set(fields, "clock", with(&parts));
        }
        "rnet.msgs.Diagnostic.Status" => {
            // OK is 0.
            let level = (int(fields, "level") - 1).max(0);
            set(fields, "level", Value::Int(level));
            rename(fields, "text", "message");
        }
        "rnet.msgs.JointState" => rename(fields, "names", "name"),
        "rnet.msgs.JointTrajectory" => rename(fields, "names", "joint_names"),
        "rnet.msgs.JointTrajectory.Point" => rename_each(
            fields,
            &[
                ("position", "positions"),
                ("velocity", "velocities"),
                ("acceleration", "accelerations"),
            ],
        ),
        "rnet.msgs.MagneticField" => rename(fields, "covariance", "magnetic_field_covariance"),
        "rnet.msgs.PoseEstimate" => {
            let pose = [("pose", take(fields, "pose")), ("covariance", take(fields, "covariance"))];
            set(fields, "pose", with(&pose));
        }
        "rnet.msgs.Pressure" => rename(fields, "pressure", "fluid_pressure"),
        "rnet.msgs.Range" => {
            // Of ultrasound and infrared alone.
            let radiation = (int(fields, "radiation") - 1).max(0);
            set(fields, "radiation_type", Value::Int(radiation));
        }
        _ => {}
    }
}

fn rename_each(fields: &mut Fields, names: &[(&str, &str)]) {
    names.iter().for_each(|(from, to)| rename(fields, from, to));
}

fn odometry(fields: &mut Fields) {
    rename(fields, "body_frame_id", "child_frame_id");
    let pose = [("pose", take(fields, "pose")), ("covariance", take(fields, "pose_covariance"))];
    let velocity = [
        ("linear", take(fields, "linear_velocity")),
        ("angular", take(fields, "angular_velocity")),
    ];
    let twist =
        [("twist", Some(with(&velocity))), ("covariance", take(fields, "velocity_covariance"))];
    fields.insert("pose".to_owned(), with(&pose));
    fields.insert("twist".to_owned(), with(&twist));
}

fn battery(fields: &mut Fields) {
    for name in ["charge", "capacity", "design_capacity"] {
        // Ours are C, theirs Ah.
        if let Some(Value::Float(charge)) = fields.get_mut(name) {
            *charge /= 3600.0;
        }
    }
    rename_each(
        fields,
        &[
            ("state_of_charge", "percentage"),
            ("status", "power_supply_status"),
            ("health", "power_supply_health"),
            ("technology", "power_supply_technology"),
            ("cell_voltages", "cell_voltage"),
            ("cell_temperatures", "cell_temperature"),
        ],
    );
    // ROS 2 says NaN where nothing was measured.
    for name in
        ["voltage", "temperature", "current", "charge", "capacity", "design_capacity", "percentage"]
    {
        fields.entry(name.to_owned()).or_insert(Value::Float(f64::NAN));
    }
    // Ours counts as there where nothing is said.
    fields.entry("present".to_owned()).or_insert(Value::Int(1));
    // Ours by number: unspecified, Li-ion, LiPo, LiFePO4, NiMH, NiCd, lead acid, lithium titanate, sodium ion.
    let technology = [0, 2, 3, 4, 1, 5, 0, 0, 0];
    let of = int(fields, "power_supply_technology");
    let theirs = usize::try_from(of).ok().and_then(|of| technology.get(of)).copied().unwrap_or(0);
    fields.insert("power_supply_technology".to_owned(), Value::Int(theirs));
    // Ours by number: unspecified, good, overheat, cold, dead, overvoltage, then those that ROS 2 has no number for,
    // which are its UNSPEC_FAILURE.
    let health = [0, 1, 2, 6, 3, 4, 5, 5, 5, 5, 5];
    let of = int(fields, "power_supply_health");
    let theirs = usize::try_from(of).ok().and_then(|of| health.get(of)).copied().unwrap_or(0);
    fields.insert("power_supply_health".to_owned(), Value::Int(theirs));
}
