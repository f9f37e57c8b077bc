// Written from foxglove/Vector3.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// Three components along the axes of a frame: x forward, y left, z up on a robot's body (REP-103). What they
/// measure, and their unit, is said by the field that holds them.
struct Vector3 {
    /// Along x. Unit: as the field that holds it
    double x = 0;
    /// Along y. Unit: as the field that holds it
    double y = 0;
    /// Along z. Unit: as the field that holds it
    double z = 0;
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Vector3;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Vector3> {
    static constexpr const char* name = "foxglove.Vector3";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Vector3;
        visit(Field<3>(), &M::z);
        visit(Field<2>(), &M::y);
        visit(Field<1>(), &M::x);
    }
};

}  // namespace rnet::detail
