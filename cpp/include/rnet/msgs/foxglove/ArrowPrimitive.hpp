// Written from foxglove/ArrowPrimitive.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>

namespace rnet::msgs::foxglove {

/// An arrow in a scene.
struct ArrowPrimitive {
    /// Where its tail is; it points along x.
    std::optional<Pose> pose{};
    /// Length of the shaft. Unit: m
    double shaft_length = 0;
    /// Diameter of the shaft. Unit: m
    double shaft_diameter = 0;
    /// Length of the head. Unit: m
    double head_length = 0;
    /// Diameter of the head, where it is widest. Unit: m
    double head_diameter = 0;
    /// Its colour.
    std::optional<Color> color{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::ArrowPrimitive;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::ArrowPrimitive> {
    static constexpr const char* name = "foxglove.ArrowPrimitive";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::ArrowPrimitive;
        visit(Field<6>(), &M::color);
        visit(Field<5>(), &M::head_diameter);
        visit(Field<4>(), &M::head_length);
        visit(Field<3>(), &M::shaft_diameter);
        visit(Field<2>(), &M::shaft_length);
        visit(Field<1>(), &M::pose);
    }
};

}  // namespace rnet::detail
