// Written from foxglove/PointsAnnotation.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/foxglove/Point2.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// How the points are drawn.
enum class PointsAnnotation_Type : std::int32_t {
    /// Not said.
    unknown = 0,
    /// Each by itself.
    points = 1,
    /// A line from each to the next, and from the last to the first.
    line_loop = 2,
    /// A line from each to the next.
    line_strip = 3,
    /// A line from the first to the second, from the third to the fourth, and so on.
    line_list = 4,
};

/// Points or lines drawn over an image.
struct PointsAnnotation {
    using Type = PointsAnnotation_Type;

    /// The image's time stamp.
    std::optional<Timestamp> timestamp{};
    /// How the points are drawn.
    Type type{};
    /// The points. Unit: px
    std::vector<Point2> points{};
    /// Colour of all points or lines.
    std::optional<Color> outline_color{};
    /// Colour of each point, or of each line; empty to use `outline_color`.
    std::vector<Color> outline_colors{};
    /// Colour within a closed loop.
    std::optional<Color> fill_color{};
    /// Width of the lines, or size of the points. Unit: px
    double thickness = 0;
    /// What else is to be said about it; each key at most once.
    std::vector<KeyValuePair> metadata{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::PointsAnnotation;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::PointsAnnotation> {
    static constexpr const char* name = "foxglove.PointsAnnotation";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::PointsAnnotation;
        visit(Field<8>(), &M::metadata);
        visit(Field<7>(), &M::thickness);
        visit(Field<6>(), &M::fill_color);
        visit(Field<5>(), &M::outline_colors);
        visit(Field<4>(), &M::outline_color);
        visit(Field<3>(), &M::points);
        visit(Field<2>(), &M::type);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
