// Written from rnet/msgs/CommandStatus.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs { inline namespace structs {

/// What the receiver does.
enum class CommandStatus_State : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// It has fallen back, and applies nothing until a command comes in time.
    fallback = 1,
    /// It applies the commands of the holder.
    in_force = 2,
    /// The receiver has closed.
    closed = 3,
};

/// Why it is in this state, or why the last holder lost authority.
enum class CommandStatus_Reason : std::int32_t {
    /// No reason: a command was applied.
    unspecified = 0,
    /// The receiver was opened.
    opened = 1,
    /// Authority was granted.
    granted = 2,
    /// No command came within the deadline.
    deadline = 3,
    /// The lease of the holder expired.
    expired = 4,
    /// The holder has released it.
    released = 5,
    /// The holder's process or host is gone, or its publisher closed.
    driver_lost = 6,
    /// A driver of a higher priority took it.
    preempted = 7,
    /// Applying the command took longer than the deadline.
    overrun = 8,
    /// The receiver's code panicked while it applied the command.
    panicked = 9,
    /// The receiver was closed.
    closed = 10,
};

/// Current driver of a command. Sent by its receiver on each change, and kept for late subscribers.
struct CommandStatus {
    using State = CommandStatus_State;
    using Reason = CommandStatus_Reason;

    /// What the receiver does.
    State state{};
    /// Why.
    Reason reason{};
    /// The node that has authority; empty if none has.
    std::string holder{};
    /// The holder's priority. Unit: 1
    std::int32_t priority = 0;
    /// The number of the authority in force; 0 if no driver has it. Unit: 1
    std::uint64_t number = 0;
    /// How long authority lasts after the last command or renewal. Unit: ns
    std::uint64_t lease = 0;
    /// How long the receiver waits for the next command before it falls back. Unit: ns
    std::uint64_t deadline = 0;
    /// Commands that were applied so far. Unit: 1
    std::uint64_t applied = 0;
    /// Commands that were not applied so far, whatever the reason. Unit: 1
    std::uint64_t ignored = 0;
    /// How often the receiver has fallen back. Unit: 1
    std::uint64_t fallbacks = 0;
    /// The number of the authority that was granted last, in force or not; 0 if none was. Unit: 1
    std::uint64_t granted = 0;
    /// Whether the receiver's code failed when it last fell back: the robot may not be safe.
    bool fallback_failed = false;
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::CommandStatus> {
    static constexpr const char* name = "rnet.msgs.CommandStatus";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::CommandStatus;
        visit(Field<12>(), &M::fallback_failed);
        visit(Field<11>(), &M::granted);
        visit(Field<10>(), &M::fallbacks);
        visit(Field<9>(), &M::ignored);
        visit(Field<8>(), &M::applied);
        visit(Field<7>(), &M::deadline);
        visit(Field<6>(), &M::lease);
        visit(Field<5>(), &M::number);
        visit(Field<4, Wire::zigzag>(), &M::priority);
        visit(Field<3>(), &M::holder);
        visit(Field<2>(), &M::reason);
        visit(Field<1>(), &M::state);
    }
};

}  // namespace rnet::detail
