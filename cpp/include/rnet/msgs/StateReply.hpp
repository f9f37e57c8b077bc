// Written from rnet/msgs/StateReply.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/StateEntry.hpp>

namespace rnet::msgs { inline namespace structs {

/// Why it failed: the code of an error, and the parts of its text in order.
struct StateReply_Refusal {
    /// The code.
    std::string code{};
    /// Its words.
    std::vector<std::string> words{};
    /// Its numbers. Unit: 1
    std::vector<std::uint64_t> numbers{};
};

/// Answer of a host to a StateAsk.
struct StateReply {
    using Refusal = StateReply_Refusal;

    /// Why it failed; absent on success.
    std::optional<Refusal> refusal{};
    /// Revision of the write, or of the returned keys; 0 for a key that was already absent. Unit: 1
    std::uint64_t revision = 0;
    /// The keys.
    std::vector<StateEntry> entries{};
    /// Topic of the changes.
    std::string topic{};
    /// The number of the feed whose changes follow. Unit: 1
    std::uint64_t feed = 0;
    /// The last of its messages that these keys include. Unit: 1
    std::uint64_t seq = 0;
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::StateReply_Refusal> {
    static constexpr const char* name = "rnet.msgs.StateReply.Refusal";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::StateReply_Refusal;
        visit(Field<3>(), &M::numbers);
        visit(Field<2>(), &M::words);
        visit(Field<1>(), &M::code);
    }
};

template <>
struct Fields<msgs::StateReply> {
    static constexpr const char* name = "rnet.msgs.StateReply";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::StateReply;
        visit(Field<6>(), &M::seq);
        visit(Field<5, Wire::fixed>(), &M::feed);
        visit(Field<4>(), &M::topic);
        visit(Field<3>(), &M::entries);
        visit(Field<2>(), &M::revision);
        visit(Field<1>(), &M::refusal);
    }
};

}  // namespace rnet::detail
