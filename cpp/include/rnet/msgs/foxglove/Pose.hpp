// Written from foxglove/Pose.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Quaternion.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>

namespace rnet::msgs::foxglove {

/// Where a thing is and how it is turned. It takes a point from the thing's own coordinates into those of the
/// frame: turn by `orientation`, then shift by `position`.
struct Pose {
    /// The thing's origin in the frame. Unit: m
    std::optional<Vector3> position{};
    /// The thing's axes against those of the frame.
    std::optional<Quaternion> orientation{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Pose;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Pose> {
    static constexpr const char* name = "foxglove.Pose";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Pose;
        visit(Field<2>(), &M::orientation);
        visit(Field<1>(), &M::position);
    }
};

}  // namespace rnet::detail
