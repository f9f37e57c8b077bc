// Written from foxglove/JointStates.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/JointState.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// Several joints at one time.
struct JointStates {
    /// When they were measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// The joints.
    std::vector<JointState> joints{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::JointStates;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::JointStates> {
    static constexpr const char* name = "foxglove.JointStates";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::JointStates;
        visit(Field<2>(), &M::joints);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
