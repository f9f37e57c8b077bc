// Written from foxglove/Color.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// A colour with opacity; each part from 0 to 1, not multiplied by the opacity.
struct Color {
    /// Red, 0 to 1. Unit: 1
    double r = 0;
    /// Green, 0 to 1. Unit: 1
    double g = 0;
    /// Blue, 0 to 1. Unit: 1
    double b = 0;
    /// Opacity, 0 (not seen) to 1 (hides what is behind). An unset colour is not seen. Unit: 1
    double a = 0;
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Color;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Color> {
    static constexpr const char* name = "foxglove.Color";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Color;
        visit(Field<4>(), &M::a);
        visit(Field<3>(), &M::b);
        visit(Field<2>(), &M::g);
        visit(Field<1>(), &M::r);
    }
};

}  // namespace rnet::detail
