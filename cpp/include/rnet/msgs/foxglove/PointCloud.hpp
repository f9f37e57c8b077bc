// Written from foxglove/PointCloud.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/PackedElementField.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// Points in space, packed one after the other. Large clouds travel without a copy as the plain PointCloud,
/// which becomes this message for recorders and viewers.
struct PointCloud {
    /// When the cloud was taken, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the sensor, or of what put the cloud together.
    std::string frame_id{};
    /// Where the origin of the points lies in `frame_id`; unset for no shift and no turn.
    std::optional<Pose> pose{};
    /// From the start of one point to that of the next. Unit: B
    std::uint32_t point_stride = 0;
    /// What a point is made of; `x`, `y` and `z` in m must be among them.
    std::vector<PackedElementField> fields{};
    /// The points, each `point_stride` bytes long.
    std::vector<std::uint8_t> data{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::PointCloud> {
    static constexpr const char* name = "foxglove.PointCloud";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::PointCloud;
        visit(Field<6>(), &M::data);
        visit(Field<5>(), &M::fields);
        visit(Field<4, Wire::fixed>(), &M::point_stride);
        visit(Field<3>(), &M::pose);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
