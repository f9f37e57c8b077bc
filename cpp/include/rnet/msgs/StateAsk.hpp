// Written from rnet/msgs/StateAsk.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/StateEntry.hpp>

namespace rnet::msgs { inline namespace structs {

/// What is asked for.
enum class StateAsk_Action : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// One key.
    get = 1,
    /// The keys under a prefix.
    list = 2,
    /// The keys under a prefix, and from then on each change of them, on the topic of the reply.
    follow = 3,
    /// To set a key.
    set = 4,
    /// To delete a key.
    delete_ = 5,
    /// All parameters: their values, and under keys that begin with !param/ their descriptions as JSON.
    params = 6,
};

/// Request to a host to read or write its state.
struct StateAsk {
    using Action = StateAsk_Action;

    /// What is asked for.
    Action action{};
    /// The key, or the prefix.
    std::string key{};
    /// What to set: its kind, type and bytes, and whether it is durable if that is said.
    std::optional<StateEntry> entry{};
    /// Only if the key is at this revision; 0: if it is absent. Unit: 1
    std::optional<std::uint64_t> if_revision{};
    /// Whether the key is to be kept on disk.
    std::optional<bool> durable{};
    /// Time to live of the key. Unit: ns
    std::optional<std::uint64_t> ttl_ns{};
    /// Whether it may replace a value of another type.
    bool change_type = false;
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::StateAsk> {
    static constexpr const char* name = "rnet.msgs.StateAsk";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::StateAsk;
        visit(Field<7>(), &M::change_type);
        visit(Field<6>(), &M::ttl_ns);
        visit(Field<5>(), &M::durable);
        visit(Field<4>(), &M::if_revision);
        visit(Field<3>(), &M::entry);
        visit(Field<2>(), &M::key);
        visit(Field<1>(), &M::action);
    }
};

}  // namespace rnet::detail
