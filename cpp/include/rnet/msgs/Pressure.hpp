// Written from rnet/msgs/Pressure.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// One pressure of a gas or a liquid: a barometer's, a depth gauge's.
struct Pressure {
    /// When it was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the sensor, or name of the part that is measured.
    std::string frame_id{};
    /// The pressure against a vacuum. Unit: Pa
    double pressure = 0;
    /// Variance of the pressure; unset for not known. Unit: Pa^2
    std::optional<double> variance{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Pressure> {
    static constexpr const char* name = "rnet.msgs.Pressure";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Pressure;
        visit(Field<4>(), &M::variance);
        visit(Field<3>(), &M::pressure);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
