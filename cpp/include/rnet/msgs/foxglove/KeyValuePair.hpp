// Written from foxglove/KeyValuePair.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// A name and a text, for what has no field of its own.
struct KeyValuePair {
    /// The name.
    std::string key{};
    /// The text.
    std::string value{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::KeyValuePair;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::KeyValuePair> {
    static constexpr const char* name = "foxglove.KeyValuePair";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::KeyValuePair;
        visit(Field<2>(), &M::value);
        visit(Field<1>(), &M::key);
    }
};

}  // namespace rnet::detail
