// Written from foxglove/GeoJSON.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// Shapes on a map as GeoJSON (RFC 7946).
struct GeoJSON {
    /// The JSON text.
    std::string geojson{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::GeoJSON;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::GeoJSON> {
    static constexpr const char* name = "foxglove.GeoJSON";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::GeoJSON;
        visit(Field<1>(), &M::geojson);
    }
};

}  // namespace rnet::detail
