// Written from foxglove/LocationFixes.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/LocationFix.hpp>

namespace rnet::msgs::foxglove {

/// Several places at once, for example of a fleet.
struct LocationFixes {
    /// The places.
    std::vector<LocationFix> fixes{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::LocationFixes;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::LocationFixes> {
    static constexpr const char* name = "foxglove.LocationFixes";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::LocationFixes;
        visit(Field<1>(), &M::fixes);
    }
};

}  // namespace rnet::detail
