// Written from rnet/msgs/JointCommand.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// What a joint is steered by.
enum class JointCommand_Mode : std::int32_t {
    /// Not said: the command is not obeyed.
    unspecified = 0,
    /// The drive gives no torque; the joint moves freely.
    off = 1,
    /// The joint stays where it is, by its drive or its brake.
    hold = 2,
    /// To `position`; `velocity` and `effort` are added as feed-forward where given.
    position = 3,
    /// At `velocity`; `effort` is added as feed-forward where given.
    velocity = 4,
    /// With `effort`.
    effort = 5,
    /// With effort + kp (position - measured position) + kd (velocity - measured velocity).
    impedance = 6,
};

/// What the joints of a robot shall do from now on. Each array but `modes` is empty, where the modes have no
/// use for it, or as long as `names`. A controller obeys all of a command or, when an array has another
/// length or a value it needs is NaN, none of it.
struct JointCommand {
    using Mode = JointCommand_Mode;

    /// When the command was made, UTC.
    std::optional<Timestamp> timestamp{};
    /// The joints that are meant, by their names in the robot's description (URDF); the others go on with
    /// what they do.
    std::vector<std::string> names{};
    /// One for all joints, or one for each.
    std::vector<Mode> modes{};
    /// Where each joint shall be. Unit: rad or m
    std::vector<double> position{};
    /// How fast it shall move. Unit: rad/s or m/s
    std::vector<double> velocity{};
    /// Torque or force that it shall exert. Unit: N*m or N
    std::vector<double> effort{};
    /// Stiffness. Unit: N*m/rad or N/m
    std::vector<double> kp{};
    /// Damping. Unit: N*m*s/rad or N*s/m
    std::vector<double> kd{};
    /// How long the command holds when no newer one comes; the controller then stops as its robot must.
    /// Counted from its arrival, because clocks may differ. Unset: as the controller is set up.
    std::optional<Duration> valid_for{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::JointCommand> {
    static constexpr const char* name = "rnet.msgs.JointCommand";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::JointCommand;
        visit(Field<10>(), &M::valid_for);
        visit(Field<9>(), &M::kd);
        visit(Field<8>(), &M::kp);
        visit(Field<7>(), &M::effort);
        visit(Field<6>(), &M::velocity);
        visit(Field<5>(), &M::position);
        visit(Field<4>(), &M::modes);
        visit(Field<3>(), &M::names);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
