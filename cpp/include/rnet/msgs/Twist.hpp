// Written from rnet/msgs/Twist.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>

namespace rnet::msgs { inline namespace structs {

/// How a body moves at one instant. What holds it says in which frame; a bare command on a topic, as a
/// joystick sends it, is meant in the robot's own frame, x forward (REP-103).
struct Twist {
    /// Velocity of the body's origin along x, y, z. Unit: m/s
    std::optional<foxglove::Vector3> linear{};
    /// Turning about x, y, z. Unit: rad/s
    std::optional<foxglove::Vector3> angular{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Twist> {
    static constexpr const char* name = "rnet.msgs.Twist";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Twist;
        visit(Field<2>(), &M::angular);
        visit(Field<1>(), &M::linear);
    }
};

}  // namespace rnet::detail
