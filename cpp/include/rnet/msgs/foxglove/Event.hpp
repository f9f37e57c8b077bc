// Written from foxglove/Event.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A stretch of time that is worth finding again in a recording. What a robot reports while it runs is an
/// rnet.msgs.Event.
struct Event {
    /// Where it starts, UTC.
    std::optional<Timestamp> start_time{};
    /// Where it ends, UTC; the end belongs to it.
    std::optional<Timestamp> end_time{};
    /// What else is to be said about it; each key at most once.
    std::vector<KeyValuePair> metadata{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Event> {
    static constexpr const char* name = "foxglove.Event";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Event;
        visit(Field<3>(), &M::metadata);
        visit(Field<2>(), &M::end_time);
        visit(Field<1>(), &M::start_time);
    }
};

}  // namespace rnet::detail
