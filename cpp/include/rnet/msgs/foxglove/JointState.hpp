// Written from foxglove/JointState.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// One joint by name, as viewers know it. Control loops use rnet.msgs.JointState, which has the numbers of
/// all joints side by side.
struct JointState {
    /// The joint's name in the robot's description (URDF).
    std::string name{};
    /// Angle, or displacement of a sliding joint. Unit: rad or m
    std::optional<double> position{};
    /// Its speed. Unit: rad/s or m/s
    std::optional<double> velocity{};
    /// Its acceleration. Unit: rad/s^2 or m/s^2
    std::optional<double> acceleration{};
    /// Torque, or force of a sliding joint. Unit: N*m or N
    std::optional<double> effort{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::JointState> {
    static constexpr const char* name = "foxglove.JointState";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::JointState;
        visit(Field<5>(), &M::effort);
        visit(Field<4>(), &M::acceleration);
        visit(Field<3>(), &M::velocity);
        visit(Field<2>(), &M::position);
        visit(Field<1>(), &M::name);
    }
};

}  // namespace rnet::detail
