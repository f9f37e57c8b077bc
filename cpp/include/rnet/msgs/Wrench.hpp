// Written from rnet/msgs/Wrench.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>

namespace rnet::msgs { inline namespace structs {

/// Force and torque at a point. What holds it says in which frame.
struct Wrench {
    /// Force along x, y, z. Unit: N
    std::optional<foxglove::Vector3> force{};
    /// Torque about x, y, z through the origin of the frame. Unit: N*m
    std::optional<foxglove::Vector3> torque{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Wrench> {
    static constexpr const char* name = "rnet.msgs.Wrench";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Wrench;
        visit(Field<2>(), &M::torque);
        visit(Field<1>(), &M::force);
    }
};

}  // namespace rnet::detail
