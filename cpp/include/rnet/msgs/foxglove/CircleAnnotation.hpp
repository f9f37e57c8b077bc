// Written from foxglove/CircleAnnotation.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/foxglove/Point2.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A circle drawn over an image.
struct CircleAnnotation {
    /// The image's time stamp.
    std::optional<Timestamp> timestamp{};
    /// The centre. Unit: px
    std::optional<Point2> position{};
    /// Diameter. Unit: px
    double diameter = 0;
    /// Width of the line. Unit: px
    double thickness = 0;
    /// Colour within.
    std::optional<Color> fill_color{};
    /// Colour of the line.
    std::optional<Color> outline_color{};
    /// What else is to be said about it; each key at most once.
    std::vector<KeyValuePair> metadata{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::CircleAnnotation;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::CircleAnnotation> {
    static constexpr const char* name = "foxglove.CircleAnnotation";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::CircleAnnotation;
        visit(Field<7>(), &M::metadata);
        visit(Field<6>(), &M::outline_color);
        visit(Field<5>(), &M::fill_color);
        visit(Field<4>(), &M::thickness);
        visit(Field<3>(), &M::diameter);
        visit(Field<2>(), &M::position);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
