// Written from rnet/msgs/CommandEvent.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// What happened.
enum class CommandEvent_Kind : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// A driver was granted authority.
    granted = 1,
    /// A driver was refused authority.
    refused = 2,
    /// A driver has released its authority.
    released = 3,
    /// A driver of a higher priority took the authority of this one.
    preempted = 4,
    /// The lease of a driver expired.
    expired = 5,
    /// A driver's process or host is gone, or its publisher closed.
    driver_lost = 6,
    /// The first command of a driver was applied, or the first after a fallback.
    in_force = 7,
    /// The receiver has fallen back; the text gives the reason.
    fallback = 8,
    /// A command of a node without authority was not applied; reported for the first in a row.
    intruder = 9,
    /// The receiver was opened.
    opened = 10,
    /// The receiver was closed.
    closed = 11,
};

/// An event of a command: a line of its audit trail. Sent by its receiver.
struct CommandEvent {
    using Kind = CommandEvent_Kind;

    /// When it happened, UTC.
    std::optional<Timestamp> timestamp{};
    /// What happened.
    Kind kind{};
    /// The driver's node; empty where there is none.
    std::string node{};
    /// Its priority. Unit: 1
    std::int32_t priority = 0;
    /// The number of its authority; 0 where it has none. Unit: 1
    std::uint64_t number = 0;
    /// For people.
    std::string text{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::CommandEvent> {
    static constexpr const char* name = "rnet.msgs.CommandEvent";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::CommandEvent;
        visit(Field<7>(), &M::text);
        visit(Field<6>(), &M::number);
        visit(Field<5, Wire::zigzag>(), &M::priority);
        visit(Field<4>(), &M::node);
        visit(Field<3>(), &M::kind);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
