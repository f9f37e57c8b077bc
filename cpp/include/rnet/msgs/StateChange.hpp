// Written from rnet/msgs/StateChange.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/StateEntry.hpp>

namespace rnet::msgs { inline namespace structs {

/// A change of a key that another host follows, or a heartbeat without a change.
struct StateChange {
    /// The number of the feed: another number starts a new feed. Unit: 1
    std::uint64_t feed = 0;
    /// Changes sent on the feed so far, including this one. Unit: 1
    std::uint64_t seq = 0;
    /// What has changed; absent if nothing has.
    std::optional<StateEntry> entry{};
    /// Number of values of the key that were overwritten before they could be sent; absent if not known.
    /// Unit: 1
    std::optional<std::uint64_t> skipped{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::StateChange> {
    static constexpr const char* name = "rnet.msgs.StateChange";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::StateChange;
        visit(Field<4>(), &M::skipped);
        visit(Field<3>(), &M::entry);
        visit(Field<2>(), &M::seq);
        visit(Field<1, Wire::fixed>(), &M::feed);
    }
};

}  // namespace rnet::detail
