// Written from foxglove/Quaternion.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// A rotation as a unit quaternion, in the order x y z w. No rotation is 0 0 0 1; all zeros, which is what an
/// unset message says, is no rotation at all and must not be used as one.
struct Quaternion {
    /// Axis along x, times the sine of half the angle. Unit: 1
    double x = 0;
    /// Axis along y, times the sine of half the angle. Unit: 1
    double y = 0;
    /// Axis along z, times the sine of half the angle. Unit: 1
    double z = 0;
    /// Cosine of half the angle. Unit: 1
    double w = 0;
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Quaternion;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Quaternion> {
    static constexpr const char* name = "foxglove.Quaternion";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Quaternion;
        visit(Field<4>(), &M::w);
        visit(Field<3>(), &M::z);
        visit(Field<2>(), &M::y);
        visit(Field<1>(), &M::x);
    }
};

}  // namespace rnet::detail
