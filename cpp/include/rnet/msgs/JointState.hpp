// Written from rnet/msgs/JointState.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// The joints of a robot at one time, as a controller measures them. Each array is empty, which says that
/// nothing is known, or as long as `names`; NaN stands for a single joint's unknown value. Sliding joints
/// count in m and N where turning ones count in rad and N*m.
struct JointState {
    /// When they were measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Names as in the robot's description (URDF), in each message, so that it can be read by itself.
    std::vector<std::string> names{};
    /// Angle of each joint. Unit: rad or m
    std::vector<double> position{};
    /// Speed of each joint. Unit: rad/s or m/s
    std::vector<double> velocity{};
    /// Torque or force that each joint exerts. Unit: N*m or N
    std::vector<double> effort{};
    /// Acceleration of each joint. Unit: rad/s^2 or m/s^2
    std::vector<double> acceleration{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::JointState> {
    static constexpr const char* name = "rnet.msgs.JointState";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::JointState;
        visit(Field<7>(), &M::acceleration);
        visit(Field<6>(), &M::effort);
        visit(Field<5>(), &M::velocity);
        visit(Field<4>(), &M::position);
        visit(Field<3>(), &M::names);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
