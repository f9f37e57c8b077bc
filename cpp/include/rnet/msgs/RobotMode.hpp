// Written from rnet/msgs/RobotMode.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// What it is doing.
enum class RobotMode_Mode : std::int32_t {
    /// Unknown; do not assume anything.
    unspecified = 0,
    /// It starts, finds its zeros, loads its maps.
    starting = 1,
    /// It waits for work.
    ready = 2,
    /// A person steers it.
    manual = 3,
    /// It steers itself.
    automatic = 4,
    /// It charges.
    charging = 5,
    /// It is under maintenance; it moves only on command of the person at it.
    maintenance = 6,
    /// It stopped because of a fault, and waits for a person.
    fault = 7,
    /// It was stopped in an emergency.
    emergency_stopped = 8,
    /// It switches itself off.
    stopping = 9,
};

/// Operating mode of a robot. Sent on each change and once a second.
struct RobotMode {
    using Mode = RobotMode_Mode;

    /// When it was so, UTC.
    std::optional<Timestamp> timestamp{};
    /// What it is doing.
    Mode mode{};
    /// Whether its drives may move it.
    bool drives_enabled = false;
    /// Details as text, for example the task or the fault.
    std::string text{};
    /// When it came into this mode, UTC.
    std::optional<Timestamp> since{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::RobotMode> {
    static constexpr const char* name = "rnet.msgs.RobotMode";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::RobotMode;
        visit(Field<6>(), &M::since);
        visit(Field<5>(), &M::text);
        visit(Field<4>(), &M::drives_enabled);
        visit(Field<3>(), &M::mode);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
