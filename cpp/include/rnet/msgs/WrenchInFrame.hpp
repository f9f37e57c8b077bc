// Written from rnet/msgs/WrenchInFrame.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/Wrench.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// Force and torque with time and frame, as a sensor in a wrist or a foot measures them: those that the
/// surroundings exert on the robot.
struct WrenchInFrame {
    /// When it was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame in whose origin the wrench acts, and along whose axes the numbers are given.
    std::string frame_id{};
    /// The wrench.
    std::optional<Wrench> wrench{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::WrenchInFrame> {
    static constexpr const char* name = "rnet.msgs.WrenchInFrame";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::WrenchInFrame;
        visit(Field<3>(), &M::wrench);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
