// Written from rnet/msgs/CommandReply.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs { inline namespace structs {

/// Answer of the receiver of a command to a driver.
struct CommandReply {
    /// Whether the request was granted.
    bool granted = false;
    /// The number of the authority in force; 0 if no driver has it. Unit: 1
    std::uint64_t number = 0;
    /// The node that has authority; empty if none has.
    std::string holder{};
    /// The holder's priority. Unit: 1
    std::int32_t priority = 0;
    /// How long the receiver waits for the next command before it falls back. Unit: ns
    std::uint64_t deadline = 0;
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::CommandReply> {
    static constexpr const char* name = "rnet.msgs.CommandReply";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::CommandReply;
        visit(Field<5>(), &M::deadline);
        visit(Field<4, Wire::zigzag>(), &M::priority);
        visit(Field<3>(), &M::holder);
        visit(Field<2>(), &M::number);
        visit(Field<1>(), &M::granted);
    }
};

}  // namespace rnet::detail
