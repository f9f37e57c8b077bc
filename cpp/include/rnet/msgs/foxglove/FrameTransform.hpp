// Written from foxglove/FrameTransform.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Quaternion.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// How one frame lies in another. It takes a point from the child's coordinates into the parent's: turn by
/// `rotation`, then shift by `translation`. Each child has one parent, so that all frames are one tree: map,
/// odom, base_link, sensors (REP-105).
struct FrameTransform {
    /// When the child lay so, UTC.
    std::optional<Timestamp> timestamp{};
    /// The frame in which the numbers are given, for example `odom`.
    std::string parent_frame_id{};
    /// The frame that they place, for example `base_link`.
    std::string child_frame_id{};
    /// Origin of the child in the parent. Unit: m
    std::optional<Vector3> translation{};
    /// Axes of the child against those of the parent.
    std::optional<Quaternion> rotation{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::FrameTransform;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::FrameTransform> {
    static constexpr const char* name = "foxglove.FrameTransform";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::FrameTransform;
        visit(Field<5>(), &M::rotation);
        visit(Field<4>(), &M::translation);
        visit(Field<3>(), &M::child_frame_id);
        visit(Field<2>(), &M::parent_frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
