// Written from rnet/msgs/Clock.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs { inline namespace structs {

/// Time of a simulation or of a recording in playback, on the topic `/clock`. Nodes that follow it use this
/// time; it stops while no message arrives.
struct Clock {
    /// The time, with an epoch chosen by the publisher. Negative values are invalid. Unit: ns
    std::int64_t time_ns = 0;
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Clock> {
    static constexpr const char* name = "rnet.msgs.Clock";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Clock;
        visit(Field<1>(), &M::time_ns);
    }
};

}  // namespace rnet::detail
