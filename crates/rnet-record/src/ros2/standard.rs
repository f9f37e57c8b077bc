//! The fields of the standard messages of ROS 2 that ours become.

/// A type by its name, and its fields.
const TYPES: &[(&str, &str)] = &[
    ("builtin_interfaces/Duration", "int32 sec\nuint32 nanosec"),
    ("builtin_interfaces/Time", "int32 sec\nuint32 nanosec"),
    (
        "diagnostic_msgs/DiagnosticArray",
        "std_msgs/Header header\ndiagnostic_msgs/DiagnosticStatus[] status",
    ),
    (
        "diagnostic_msgs/DiagnosticStatus",
        "byte level\nstring name\nstring message\nstring hardware_id\ndiagnostic_msgs/KeyValue[] values",
    ),
    ("diagnostic_msgs/KeyValue", "string key\nstring value"),
    ("geometry_msgs/Point", "float64 x\nfloat64 y\nfloat64 z"),
    ("geometry_msgs/PointStamped", "std_msgs/Header header\ngeometry_msgs/Point point"),
    ("geometry_msgs/Pose", "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation"),
    ("geometry_msgs/PoseArray", "std_msgs/Header header\ngeometry_msgs/Pose[] poses"),
    ("geometry_msgs/PoseStamped", "std_msgs/Header header\ngeometry_msgs/Pose pose"),
    ("geometry_msgs/PoseWithCovariance", "geometry_msgs/Pose pose\nfloat64[36] covariance"),
    (
        "geometry_msgs/PoseWithCovarianceStamped",
        "std_msgs/Header header\ngeometry_msgs/PoseWithCovariance pose",
    ),
    ("geometry_msgs/Quaternion", "float64 x\nfloat64 y\nfloat64 z\nfloat64 w"),
    (
        "geometry_msgs/Transform",
        "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation",
    ),
    (
        "geometry_msgs/TransformStamped",
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform",
    ),
    ("geometry_msgs/Twist", "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular"),
    ("geometry_msgs/TwistStamped", "std_msgs/Header header\ngeometry_msgs/Twist twist"),
    ("geometry_msgs/TwistWithCovariance", "geometry_msgs/Twist twist\nfloat64[36] covariance"),
    ("geometry_msgs/Vector3", "float64 x\nfloat64 y\nfloat64 z"),
    ("geometry_msgs/Wrench", "geometry_msgs/Vector3 force\ngeometry_msgs/Vector3 torque"),
    ("geometry_msgs/WrenchStamped", "std_msgs/Header header\ngeometry_msgs/Wrench wrench"),
    (
        "nav_msgs/Odometry",
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n\
         geometry_msgs/TwistWithCovariance twist",
    ),
    (
        "rcl_interfaces/Log",
        "builtin_interfaces/Time stamp\nuint8 level\nstring name\nstring msg\nstring file\nstring function\nuint32 line",
    ),
    ("rosgraph_msgs/Clock", "builtin_interfaces/Time clock"),
    (
        "sensor_msgs/BatteryState",
        "std_msgs/Header header\nfloat32 voltage\nfloat32 temperature\nfloat32 current\nfloat32 charge\n\
         float32 capacity\nfloat32 design_capacity\nfloat32 percentage\nuint8 power_supply_status\n\
         uint8 power_supply_health\nuint8 power_supply_technology\nbool present\nfloat32[] cell_voltage\n\
         float32[] cell_temperature\nstring location\nstring serial_number",
    ),
    (
        "sensor_msgs/CameraInfo",
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring distortion_model\nfloat64[] d\nfloat64[9] k\n\
         float64[9] r\nfloat64[12] p\nuint32 binning_x\nuint32 binning_y\nsensor_msgs/RegionOfInterest roi",
    ),
    ("sensor_msgs/CompressedImage", "std_msgs/Header header\nstring format\nuint8[] data"),
    (
        "sensor_msgs/FluidPressure",
        "std_msgs/Header header\nfloat64 fluid_pressure\nfloat64 variance",
    ),
    (
        "sensor_msgs/Image",
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\n\
         uint8[] data",
    ),
    (
        "sensor_msgs/Imu",
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n\
         geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n\
         geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance",
    ),
    (
        "sensor_msgs/JointState",
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort",
    ),
    ("sensor_msgs/Joy", "std_msgs/Header header\nfloat32[] axes\nint32[] buttons"),
    (
        "sensor_msgs/LaserScan",
        "std_msgs/Header header\nfloat32 angle_min\nfloat32 angle_max\nfloat32 angle_increment\n\
         float32 time_increment\nfloat32 scan_time\nfloat32 range_min\nfloat32 range_max\nfloat32[] ranges\n\
         float32[] intensities",
    ),
    (
        "sensor_msgs/MagneticField",
        "std_msgs/Header header\ngeometry_msgs/Vector3 magnetic_field\nfloat64[9] magnetic_field_covariance",
    ),
    (
        "sensor_msgs/NavSatFix",
        "std_msgs/Header header\nsensor_msgs/NavSatStatus status\nfloat64 latitude\nfloat64 longitude\n\
         float64 altitude\nfloat64[9] position_covariance\nuint8 position_covariance_type",
    ),
    ("sensor_msgs/NavSatStatus", "int8 status\nuint16 service"),
    (
        "sensor_msgs/PointCloud2",
        "std_msgs/Header header\nuint32 height\nuint32 width\nsensor_msgs/PointField[] fields\nbool is_bigendian\n\
         uint32 point_step\nuint32 row_step\nuint8[] data\nbool is_dense",
    ),
    ("sensor_msgs/PointField", "string name\nuint32 offset\nuint8 datatype\nuint32 count"),
    (
        "sensor_msgs/Range",
        "std_msgs/Header header\nuint8 radiation_type\nfloat32 field_of_view\nfloat32 min_range\n\
         float32 max_range\nfloat32 range\nfloat32 variance",
    ),
    (
        "sensor_msgs/RegionOfInterest",
        "uint32 x_offset\nuint32 y_offset\nuint32 height\nuint32 width\nbool do_rectify",
    ),
    (
        "sensor_msgs/RelativeHumidity",
        "std_msgs/Header header\nfloat64 relative_humidity\nfloat64 variance",
    ),
    ("sensor_msgs/Temperature", "std_msgs/Header header\nfloat64 temperature\nfloat64 variance"),
    ("std_msgs/Header", "builtin_interfaces/Time stamp\nstring frame_id"),
    ("tf2_msgs/TFMessage", "geometry_msgs/TransformStamped[] transforms"),
    (
        "trajectory_msgs/JointTrajectory",
        "std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint[] points",
    ),
    (
        "trajectory_msgs/JointTrajectoryPoint",
        "float64[] positions\nfloat64[] velocities\nfloat64[] accelerations\nfloat64[] effort\n\
         builtin_interfaces/Duration time_from_start",
    ),
];

fn fields(name: &str) -> &'static str {
    TYPES.iter().find(|(of, _)| *of == name).map_or("", |(_, fields)| fields)
}

/// The description of a type, with those that it names behind it.
pub fn text(name: &str) -> String {
    let (mut text, mut done, mut todo) = (fields(name).to_owned(), vec![name], Vec::new());
    let named = |fields: &'static str| {
        let types = fields.lines().filter_map(|line| line.split(['[', ' ']).next());
        types.filter(|ty| ty.contains('/')).collect::<Vec<&'static str>>()
    };
    todo.extend(named(fields(name)));
    while let Some(next) = todo.pop() {
        if done.contains(&next) {
            continue;
        }
        done.push(next);
        let line = "=".repeat(80);
        text.push_str(&format!("\n{line}\nMSG: {next}\n{}", fields(next)));
        todo.extend(named(fields(next)));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::super::definition::Definition;
    use super::*;

    #[test]
    fn all_can_be_read() {
        for (name, _) in TYPES {
            let read = Definition::parse(name, &text(name)).unwrap();
            assert!(!read.fields(name).is_empty(), "{name}");
        }
    }
}
