// Written from foxglove/Point3InFrame.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Point3.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A place in space, with its time and frame.
struct Point3InFrame {
    /// When the point was there, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame in which it is given (REP-105), for example `base_link`.
    std::string frame_id{};
    /// The place.
    std::optional<Point3> point{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Point3InFrame;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Point3InFrame> {
    static constexpr const char* name = "foxglove.Point3InFrame";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Point3InFrame;
        visit(Field<3>(), &M::point);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
