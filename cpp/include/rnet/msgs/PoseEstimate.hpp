// Written from rnet/msgs/PoseEstimate.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// Where a body is believed to be, and how sure that is: what a localisation says, or is started with. With
/// velocities it is a foxglove.Odometry.
struct PoseEstimate {
    /// When it was there, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame in which the pose is given, for example `map` (REP-105).
    std::string frame_id{};
    /// Frame of the body, for example `base_link`.
    std::string body_frame_id{};
    /// The body in `frame_id`.
    std::optional<foxglove::Pose> pose{};
    /// Covariance of x, y, z and of turns about the fixed axes x, y, z, 6 x 6, row by row; empty for not
    /// known. Unit: m^2 or m*rad or rad^2
    std::vector<double> covariance{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::PoseEstimate> {
    static constexpr const char* name = "rnet.msgs.PoseEstimate";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::PoseEstimate;
        visit(Field<5>(), &M::covariance);
        visit(Field<4>(), &M::pose);
        visit(Field<3>(), &M::body_frame_id);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
