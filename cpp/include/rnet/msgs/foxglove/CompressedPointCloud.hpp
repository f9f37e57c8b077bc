// Written from foxglove/CompressedPointCloud.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// Points in space, compressed.
struct CompressedPointCloud {
    /// When the cloud was taken, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the sensor, or of what put the cloud together.
    std::string frame_id{};
    /// Where the origin of the points lies in `frame_id`; unset for no shift and no turn.
    std::optional<Pose> pose{};
    /// The compressed points.
    std::vector<std::uint8_t> data{};
    /// How they were compressed; viewers know `draco`.
    std::string format{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::CompressedPointCloud;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::CompressedPointCloud> {
    static constexpr const char* name = "foxglove.CompressedPointCloud";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::CompressedPointCloud;
        visit(Field<5>(), &M::format);
        visit(Field<4>(), &M::data);
        visit(Field<3>(), &M::pose);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
