// Written from foxglove/Point3.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// A place in space, in the frame of the message that holds it.
struct Point3 {
    /// Along x. Unit: m
    double x = 0;
    /// Along y. Unit: m
    double y = 0;
    /// Along z. Unit: m
    double z = 0;
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Point3;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Point3> {
    static constexpr const char* name = "foxglove.Point3";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Point3;
        visit(Field<3>(), &M::z);
        visit(Field<2>(), &M::y);
        visit(Field<1>(), &M::x);
    }
};

}  // namespace rnet::detail
