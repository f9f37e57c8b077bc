// Written from rnet/msgs/EmergencyStop.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// What a source says.
enum class EmergencyStop_State : std::int32_t {
    /// Unspecified: stop.
    unspecified = 0,
    /// Stop.
    stop = 1,
    /// The button is released, but the reset is not confirmed yet: stop.
    waits_for_reset = 2,
    /// The robot may move, as far as this source knows.
    released = 3,
};

/// Emergency stop as seen by one source. Only STATE_RELEASED lets a robot move: an empty message, an unknown
/// state and silence of a source all mean stop. It informs programs of a stop and does not replace the wired
/// one, which cuts the power.
struct EmergencyStop {
    using State = EmergencyStop_State;

    /// When it was so, UTC.
    std::optional<Timestamp> timestamp{};
    /// What the source says.
    State state{};
    /// The source, for example `button.left` or `node.safety`. All sources must send STATE_RELEASED.
    std::string source{};
    /// Why, in words.
    std::string reason{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::EmergencyStop> {
    static constexpr const char* name = "rnet.msgs.EmergencyStop";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::EmergencyStop;
        visit(Field<5>(), &M::reason);
        visit(Field<4>(), &M::source);
        visit(Field<3>(), &M::state);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
