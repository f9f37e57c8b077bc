// Written from foxglove/PoseInFrame.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// Where a thing is and how it is turned, with time and frame.
struct PoseInFrame {
    /// When the thing was there, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame in which it is given (REP-105), for example `base_link`.
    std::string frame_id{};
    /// Where, and how turned.
    std::optional<Pose> pose{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::PoseInFrame;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::PoseInFrame> {
    static constexpr const char* name = "foxglove.PoseInFrame";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::PoseInFrame;
        visit(Field<3>(), &M::pose);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
