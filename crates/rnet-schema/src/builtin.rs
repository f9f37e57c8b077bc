//! The messages that every robot-net knows: import path and text of each file under `msgs/`.
//!
//! `foxglove/` holds the Foxglove schemas under their own names and numbers, so that viewers know
//! them; `rnet/msgs/` what robots need beside them. What each means, and how their comments are to
//! be read, says `docs/guide/messages.md`. `tests/builtin.rs` holds this table against the folder.

macro_rules! files {
    ($($path:literal,)*) => { &[$(($path, include_str!(concat!("../msgs/", $path)))),*] };
}

/// Import path and text of each built-in file, in the order of the paths.
pub const FILES: &[(&str, &str)] = files![
    "foxglove/ArrowPrimitive.proto",
    "foxglove/CameraCalibration.proto",
    "foxglove/CircleAnnotation.proto",
    "foxglove/Color.proto",
    "foxglove/CompressedAudio.proto",
    "foxglove/CompressedImage.proto",
    "foxglove/CompressedPointCloud.proto",
    "foxglove/CompressedVideo.proto",
    "foxglove/CubePrimitive.proto",
    "foxglove/CylinderPrimitive.proto",
    "foxglove/Event.proto",
    "foxglove/FrameTransform.proto",
    "foxglove/FrameTransforms.proto",
    "foxglove/GeoJSON.proto",
    "foxglove/Grid.proto",
    "foxglove/ImageAnnotations.proto",
    "foxglove/JointState.proto",
    "foxglove/JointStates.proto",
    "foxglove/KeyValuePair.proto",
    "foxglove/LaserScan.proto",
    "foxglove/LinePrimitive.proto",
    "foxglove/LocationFix.proto",
    "foxglove/LocationFixes.proto",
    "foxglove/Log.proto",
    "foxglove/ModelPrimitive.proto",
    "foxglove/Odometry.proto",
    "foxglove/PackedElementField.proto",
    "foxglove/Point2.proto",
    "foxglove/Point3.proto",
    "foxglove/Point3InFrame.proto",
    "foxglove/PointCloud.proto",
    "foxglove/PointsAnnotation.proto",
    "foxglove/Pose.proto",
    "foxglove/PoseInFrame.proto",
    "foxglove/PosesInFrame.proto",
    "foxglove/Quaternion.proto",
    "foxglove/RawAudio.proto",
    "foxglove/RawImage.proto",
    "foxglove/SceneEntity.proto",
    "foxglove/SceneEntityDeletion.proto",
    "foxglove/SceneUpdate.proto",
    "foxglove/SpherePrimitive.proto",
    "foxglove/TextAnnotation.proto",
    "foxglove/TextPrimitive.proto",
    "foxglove/TriangleListPrimitive.proto",
    "foxglove/Vector2.proto",
    "foxglove/Vector3.proto",
    "foxglove/VoxelGrid.proto",
    "rnet/msgs/BatteryState.proto",
    "rnet/msgs/CallControl.proto",
    "rnet/msgs/CallStatus.proto",
    "rnet/msgs/Clock.proto",
    "rnet/msgs/CommandEvent.proto",
    "rnet/msgs/CommandReply.proto",
    "rnet/msgs/CommandRequest.proto",
    "rnet/msgs/CommandStatus.proto",
    "rnet/msgs/Diagnostic.proto",
    "rnet/msgs/EmergencyStop.proto",
    "rnet/msgs/Event.proto",
    "rnet/msgs/Illuminance.proto",
    "rnet/msgs/Imu.proto",
    "rnet/msgs/JointCommand.proto",
    "rnet/msgs/JointState.proto",
    "rnet/msgs/JointTrajectory.proto",
    "rnet/msgs/Joy.proto",
    "rnet/msgs/LinkStatus.proto",
    "rnet/msgs/MagneticField.proto",
    "rnet/msgs/PoseEstimate.proto",
    "rnet/msgs/PoseTrajectory.proto",
    "rnet/msgs/Pressure.proto",
    "rnet/msgs/Range.proto",
    "rnet/msgs/RelativeHumidity.proto",
    "rnet/msgs/RobotMode.proto",
    "rnet/msgs/StateAsk.proto",
    "rnet/msgs/StateChange.proto",
    "rnet/msgs/StateEntry.proto",
    "rnet/msgs/StateReply.proto",
    "rnet/msgs/Temperature.proto",
    "rnet/msgs/Twist.proto",
    "rnet/msgs/TwistInFrame.proto",
    "rnet/msgs/Wrench.proto",
    "rnet/msgs/WrenchInFrame.proto",
];

/// The text of a built-in file.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(path, _)| *path == name).map(|(_, text)| *text)
}

/// Import paths of all built-in files.
pub fn builtin_files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, _)| *path)
}
