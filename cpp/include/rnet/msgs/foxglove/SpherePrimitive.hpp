// Written from foxglove/SpherePrimitive.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>

namespace rnet::msgs::foxglove {

/// A sphere or ellipsoid in a scene.
struct SpherePrimitive {
    /// Its middle, and how it is turned.
    std::optional<Pose> pose{};
    /// Its diameters along x, y and z. Unit: m
    std::optional<Vector3> size{};
    /// Its colour.
    std::optional<Color> color{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::SpherePrimitive;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::SpherePrimitive> {
    static constexpr const char* name = "foxglove.SpherePrimitive";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::SpherePrimitive;
        visit(Field<3>(), &M::color);
        visit(Field<2>(), &M::size);
        visit(Field<1>(), &M::pose);
    }
};

}  // namespace rnet::detail
