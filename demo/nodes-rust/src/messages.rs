//! The messages of the demo, the same as in `demo/nodes/messages.py` and `demo/nodes-cpp/messages.hpp`.
//!
//! rnet compares name, size and fields of both sides when nodes meet, so a difference between the files is
//! detected. SI units; vectors of eight are ordered by leg, hip then ankle;
//! quaternions are x y z w. `count` numbers a sender's messages from 0: with it the logger detects losses
//! independently of rnet. `time_ns` is simulated time.

use rnet::Plain;

/// Period of the force stream.
pub const FORCE_PERIOD_NS: u64 = 100_000;

/// A message with a number of its sender.
pub trait Counted: Plain {
    /// The number of the message, from 0.
    fn count(&self) -> u64;
}

macro_rules! counted {
    ($($type:ty),*) => {$(
        impl Counted for $type {
            fn count(&self) -> u64 {
                self.count
            }
        }
    )*};
}
counted!(RobotState, JointTorques, BodyPose, BodyEstimate, FootForces);
counted!(DriveCommand, BatteryState, StopEvent);

/// What the robot's sensors measure, at 1 kHz.
#[derive(Clone, Copy, Debug, Plain)]
#[repr(C)]
pub struct RobotState {
    /// Number of the message.
    pub count: u64,
    /// Simulated time.
    pub time_ns: i64,
    /// Joint positions, rad.
    pub joint_positions: [f64; 8],
    /// Joint speeds, rad/s.
    pub joint_velocities: [f64; 8],
    /// Torques that the actuators applied in the last step, N m.
    pub torques: [f64; 8],
    /// Normal force under each foot, N.
    pub contact_forces: [f64; 4],
    /// Body to world.
    pub orientation: [f64; 4],
    /// Of the body, in its own frame, rad/s.
    pub angular_velocity: [f64; 3],
    /// Specific force in the body frame, m/s^2.
    pub acceleration: [f64; 3],
}

/// The controller's answer to a [`RobotState`].
#[derive(Clone, Copy, Debug, Plain)]
#[repr(C)]
pub struct JointTorques {
    /// Number of the message.
    pub count: u64,
    /// `time_ns` of the state that it answers.
    pub time_ns: i64,
    /// N m.
    pub torques: [f64; 8],
    /// Tracking error of the joints relative to the gait, rms, rad.
    pub tracking_error: f64,
}

/// True pose of the robot, at 30 Hz: the shutter of the camera.
#[derive(Clone, Copy, Debug, Plain)]
#[repr(C)]
pub struct BodyPose {
    /// Number of the message.
    pub count: u64,
    /// Simulated time.
    pub time_ns: i64,
    /// m.
    pub position: [f64; 3],
    /// Body to world.
    pub orientation: [f64; 4],
    /// rad.
    pub joint_positions: [f64; 8],
}

/// Estimated pose of the robot, at 1 kHz.
#[derive(Clone, Copy, Debug, Plain)]
#[repr(C)]
pub struct BodyEstimate {
    /// Number of the message.
    pub count: u64,
    /// `time_ns` of the state it was computed from.
    pub time_ns: i64,
    /// m.
    pub position: [f64; 3],
    /// m/s, world frame.
    pub velocity: [f64; 3],
    /// Body to world.
    pub orientation: [f64; 4],
    /// Number of loaded feet.
    pub feet_loaded: u64,
}

/// What the load cells in the feet measure, at 10 kHz.
#[derive(Clone, Copy, Debug, Plain)]
#[repr(C)]
pub struct FootForces {
    /// Number of the message.
    pub count: u64,
    /// CLOCK_MONOTONIC of the sample.
    pub sampled_ns: u64,
    /// N.
    pub force: [f32; 4],
}

/// The operator's command.
#[derive(Clone, Copy, Debug, Plain)]
#[repr(C)]
pub struct DriveCommand {
    /// Number of the message.
    pub count: u64,
    /// Forward speed, m/s.
    pub vx: f64,
    /// Turn rate, positive to the left, rad/s.
    pub yaw: f64,
}

/// The battery, at 20 Hz.
#[derive(Clone, Copy, Debug, Plain)]
#[repr(C)]
pub struct BatteryState {
    /// Number of the message.
    pub count: u64,
    /// V.
    pub voltage: f64,
    /// A, positive out of the battery.
    pub current: f64,
    /// 0 to 1.
    pub charge: f64,
}

/// A stop of the safety monitor, or its release.
#[derive(Clone, Copy, Debug, Plain)]
#[repr(C)]
pub struct StopEvent {
    /// Number of the message.
    pub count: u64,
    /// CLOCK_MONOTONIC of the decision.
    pub raised_ns: u64,
    /// 1: stop; 0: released.
    pub active: u32,
    /// See [`stop_reason`].
    pub reason: u32,
}

/// A [`StopEvent::reason`] as text.
pub fn stop_reason(reason: u32) -> &'static str {
    match reason {
        1 => "controller silent",
        2 => "foot force",
        3 => "tilt",
        4 => "ordered",
        _ => "unknown",
    }
}
