// Written from foxglove/Point2.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// A place in a plane, mostly in an image: x to the right, y down, and the zero is the outer corner of the
/// top left pixel. The field that holds it says the unit.
struct Point2 {
    /// To the right. Unit: as the field that holds it
    double x = 0;
    /// Down. Unit: as the field that holds it
    double y = 0;
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Point2;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Point2> {
    static constexpr const char* name = "foxglove.Point2";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Point2;
        visit(Field<2>(), &M::y);
        visit(Field<1>(), &M::x);
    }
};

}  // namespace rnet::detail
