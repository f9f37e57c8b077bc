// Written from foxglove/CylinderPrimitive.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>

namespace rnet::msgs::foxglove {

/// A cylinder or cut-off cone in a scene, its axis along z.
struct CylinderPrimitive {
    /// Its middle, and how it is turned.
    std::optional<Pose> pose{};
    /// The box that it just fits, along x, y and z. Unit: m
    std::optional<Vector3> size{};
    /// Diameter at the lower end as a share of the box, 0 to 1. Unit: 1
    double bottom_scale = 0;
    /// Diameter at the upper end as a share of the box, 0 to 1. Unit: 1
    double top_scale = 0;
    /// Its colour.
    std::optional<Color> color{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::CylinderPrimitive;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::CylinderPrimitive> {
    static constexpr const char* name = "foxglove.CylinderPrimitive";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::CylinderPrimitive;
        visit(Field<5>(), &M::color);
        visit(Field<4>(), &M::top_scale);
        visit(Field<3>(), &M::bottom_scale);
        visit(Field<2>(), &M::size);
        visit(Field<1>(), &M::pose);
    }
};

}  // namespace rnet::detail
