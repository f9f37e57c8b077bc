// Written from foxglove/LinePrimitive.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/Point3.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>

namespace rnet::msgs::foxglove {

/// Which points a line joins.
enum class LinePrimitive_Type : std::int32_t {
    /// Each and the next.
    line_strip = 0,
    /// Each and the next, and the last and the first.
    line_loop = 1,
    /// The first and the second, the third and the fourth, and so on.
    line_list = 2,
};

/// Lines through points in a scene.
struct LinePrimitive {
    using Type = LinePrimitive_Type;

    /// Which points a line joins.
    Type type{};
    /// Where the points' origin is.
    std::optional<Pose> pose{};
    /// Width of the lines. Unit: m or px
    double thickness = 0;
    /// True: `thickness` is in px, whatever the distance; false: in m.
    bool scale_invariant = false;
    /// The points.
    std::vector<Point3> points{};
    /// Colour of all lines, unless there are `colors`.
    std::optional<Color> color{};
    /// Colour at each point; empty, or as many as `points`.
    std::vector<Color> colors{};
    /// Order in which the points are used, counted from 0; empty for that of `points`. Unit: 1
    std::vector<std::uint32_t> indices{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::LinePrimitive;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::LinePrimitive> {
    static constexpr const char* name = "foxglove.LinePrimitive";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::LinePrimitive;
        visit(Field<8, Wire::fixed>(), &M::indices);
        visit(Field<7>(), &M::colors);
        visit(Field<6>(), &M::color);
        visit(Field<5>(), &M::points);
        visit(Field<4>(), &M::scale_invariant);
        visit(Field<3>(), &M::thickness);
        visit(Field<2>(), &M::pose);
        visit(Field<1>(), &M::type);
    }
};

}  // namespace rnet::detail
