// Written from rnet/msgs/Joy.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// What a person holds: a gamepad, a joystick, a pedal.
struct Joy {
    /// When it was read, UTC.
    std::optional<Timestamp> timestamp{};
    /// The device, for example its name and number.
    std::string device{};
    /// Each axis from -1 to 1, 0 in the middle; forward, left and up are positive. Unit: 1
    std::vector<float> axes{};
    /// Each button; true while it is pressed.
    std::vector<bool> buttons{};
    /// Whether the device is there; false once it was pulled out, and then nothing counts as pressed.
    bool connected = false;
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Joy> {
    static constexpr const char* name = "rnet.msgs.Joy";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Joy;
        visit(Field<6>(), &M::connected);
        visit(Field<5>(), &M::buttons);
        visit(Field<4>(), &M::axes);
        visit(Field<3>(), &M::device);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
