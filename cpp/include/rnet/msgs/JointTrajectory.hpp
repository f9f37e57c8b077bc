// Written from rnet/msgs/JointTrajectory.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// Where the joints are at one time. Each array is empty or as long as `names`.
struct JointTrajectory_Point {
    /// When, counted from the start; grows from point to point.
    std::optional<Duration> time_from_start{};
    /// Where each joint is. Unit: rad or m
    std::vector<double> position{};
    /// How fast it moves. Unit: rad/s or m/s
    std::vector<double> velocity{};
    /// How it gathers speed. Unit: rad/s^2 or m/s^2
    std::vector<double> acceleration{};
    /// Torque or force as feed-forward. Unit: N*m or N
    std::vector<double> effort{};
};

/// A motion of joints through points at given times. Between them a controller goes in straight lines where
/// there are only positions, by cubics with velocities, by quintics with accelerations.
struct JointTrajectory {
    using Point = JointTrajectory_Point;

    /// When the motion starts, UTC. Unset: at once; past: as if it had started then.
    std::optional<Timestamp> timestamp{};
    /// The joints that move, by their names in the robot's description (URDF).
    std::vector<std::string> names{};
    /// The points. None at all: stop.
    std::vector<Point> points{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::JointTrajectory_Point> {
    static constexpr const char* name = "rnet.msgs.JointTrajectory.Point";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::JointTrajectory_Point;
        visit(Field<5>(), &M::effort);
        visit(Field<4>(), &M::acceleration);
        visit(Field<3>(), &M::velocity);
        visit(Field<2>(), &M::position);
        visit(Field<1>(), &M::time_from_start);
    }
};

template <>
struct Fields<msgs::JointTrajectory> {
    static constexpr const char* name = "rnet.msgs.JointTrajectory";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::JointTrajectory;
        visit(Field<4>(), &M::points);
        visit(Field<3>(), &M::names);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
