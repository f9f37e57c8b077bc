// Written from rnet/msgs/PoseTrajectory.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/Twist.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// Where the body is at one time.
struct PoseTrajectory_Point {
    /// When, counted from the start; grows from point to point.
    std::optional<Duration> time_from_start{};
    /// The body in `frame_id`.
    std::optional<foxglove::Pose> pose{};
    /// How it moves, along and about the axes of `body_frame_id`; unset where the follower may choose.
    std::optional<Twist> velocity{};
};

/// A motion of a body through poses at given times. A path without times is a foxglove.PosesInFrame.
struct PoseTrajectory {
    using Point = PoseTrajectory_Point;

    /// When the motion starts, UTC. Unset: at once; past: as if it had started then.
    std::optional<Timestamp> timestamp{};
    /// Frame in which the poses are given, for example `map` (REP-105).
    std::string frame_id{};
    /// Frame of the body that moves, for example `base_link`.
    std::string body_frame_id{};
    /// The points. None at all: stop.
    std::vector<Point> points{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::PoseTrajectory_Point> {
    static constexpr const char* name = "rnet.msgs.PoseTrajectory.Point";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::PoseTrajectory_Point;
        visit(Field<3>(), &M::velocity);
        visit(Field<2>(), &M::pose);
        visit(Field<1>(), &M::time_from_start);
    }
};

template <>
struct Fields<msgs::PoseTrajectory> {
    static constexpr const char* name = "rnet.msgs.PoseTrajectory";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::PoseTrajectory;
        visit(Field<4>(), &M::points);
        visit(Field<3>(), &M::body_frame_id);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
