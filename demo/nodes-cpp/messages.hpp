// The messages of the safety monitor, the same as in demo/nodes/messages.py.
//
// rnet compares name, size and fields of both sides when nodes meet, so a difference between the files is
// detected. SI units. `count` numbers a sender's messages from 0. `time_ns` is simulated time.
#pragma once

#include <rnet/plain.hpp>

#include <cstdint>

/// What the robot's sensors measure, at 1 kHz.
struct RobotState {
    std::uint64_t count;
    std::int64_t time_ns;
    double joint_positions[8];
    double joint_velocities[8];
    double torques[8];
    double contact_forces[4];
    /// Body to world: x y z w.
    double orientation[4];
    double angular_velocity[3];
    double acceleration[3];
};
RNET_PLAIN(RobotState, count, time_ns, joint_positions, joint_velocities, torques, contact_forces, orientation,
           angular_velocity, acceleration)

/// The controller's answer to a RobotState.
struct JointTorques {
    std::uint64_t count;
    /// Of the answered state.
    std::int64_t time_ns;
    double torques[8];
    double tracking_error;
};
RNET_PLAIN(JointTorques, count, time_ns, torques, tracking_error)

/// What the load cells in the feet measure, at 10 kHz.
struct FootForces {
    std::uint64_t count;
    std::uint64_t sampled_ns;
    /// N.
    float force[4];
};
RNET_PLAIN(FootForces, count, sampled_ns, force)

/// Why the robot is stopped.
enum class StopReason : std::uint32_t {
    /// No torques arrive although the robot is active.
    controller_silent = 1,
    /// A foot strikes harder than the leg can bear.
    force = 2,
    /// The body is about to tip over.
    tilt = 3,
    /// The stop button was pressed, by run.py.
    ordered = 4,
};

/// A stop of the safety monitor, or its release.
struct StopEvent {
    std::uint64_t count;
    /// CLOCK_MONOTONIC of the decision.
    std::uint64_t raised_ns;
    /// 1: stop; 0: released.
    std::uint32_t active;
    StopReason reason;
};
RNET_PLAIN(StopEvent, count, raised_ns, active, reason)
