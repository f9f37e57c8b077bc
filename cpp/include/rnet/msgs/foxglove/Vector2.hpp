// Written from foxglove/Vector2.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// Two components along the axes of a frame. What they measure, and their unit, is said by the field that
/// holds them.
struct Vector2 {
    /// Along x. Unit: as the field that holds it
    double x = 0;
    /// Along y. Unit: as the field that holds it
    double y = 0;
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Vector2;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Vector2> {
    static constexpr const char* name = "foxglove.Vector2";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Vector2;
        visit(Field<2>(), &M::y);
        visit(Field<1>(), &M::x);
    }
};

}  // namespace rnet::detail
