// Written from foxglove/Odometry.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// Where a body is and how fast it moves, as estimated from wheels, legs, cameras or a filter (REP-105).
struct Odometry {
    /// When it was there, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame in which the pose is given, for example `odom`.
    std::string frame_id{};
    /// Frame of the body, for example `base_link`.
    std::string body_frame_id{};
    /// The body in `frame_id`.
    std::optional<Pose> pose{};
    /// Velocity of the body's origin, along the axes of `body_frame_id`. Unit: m/s
    std::optional<Vector3> linear_velocity{};
    /// Its turning, about the axes of `body_frame_id`. Unit: rad/s
    std::optional<Vector3> angular_velocity{};
    /// Covariance of x, y, z and of turns about x, y, z, 6 x 6, row by row; zeros for not known. Unit: m^2 or
    /// m*rad or rad^2
    std::vector<double> pose_covariance{};
    /// Covariance of the velocities along, and of the turning about, x, y, z, 6 x 6, row by row; zeros for
    /// not known. Unit: m^2/s^2 or m*rad/s^2 or rad^2/s^2
    std::vector<double> velocity_covariance{};
    /// What else is to be said about it; each key at most once.
    std::vector<KeyValuePair> metadata{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Odometry;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Odometry> {
    static constexpr const char* name = "foxglove.Odometry";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Odometry;
        visit(Field<9>(), &M::metadata);
        visit(Field<8>(), &M::velocity_covariance);
        visit(Field<7>(), &M::pose_covariance);
        visit(Field<6>(), &M::angular_velocity);
        visit(Field<5>(), &M::linear_velocity);
        visit(Field<4>(), &M::pose);
        visit(Field<3>(), &M::body_frame_id);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
