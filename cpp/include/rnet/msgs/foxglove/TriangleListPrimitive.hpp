// Written from foxglove/TriangleListPrimitive.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/Point3.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>

namespace rnet::msgs::foxglove {

/// Triangles in a scene: each three points are one, seen from both sides.
struct TriangleListPrimitive {
    /// Where the points' origin is.
    std::optional<Pose> pose{};
    /// The corners.
    std::vector<Point3> points{};
    /// Colour of all triangles, unless there are `colors`.
    std::optional<Color> color{};
    /// Colour at each corner; empty, or as many as `points`.
    std::vector<Color> colors{};
    /// Order in which the points are used, counted from 0; empty for that of `points`. Unit: 1
    std::vector<std::uint32_t> indices{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::TriangleListPrimitive;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::TriangleListPrimitive> {
    static constexpr const char* name = "foxglove.TriangleListPrimitive";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::TriangleListPrimitive;
        visit(Field<5, Wire::fixed>(), &M::indices);
        visit(Field<4>(), &M::colors);
        visit(Field<3>(), &M::color);
        visit(Field<2>(), &M::points);
        visit(Field<1>(), &M::pose);
    }
};

}  // namespace rnet::detail
