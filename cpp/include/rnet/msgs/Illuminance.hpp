// Written from rnet/msgs/Illuminance.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// How much light that an eye would see falls on a sensor.
struct Illuminance {
    /// When it was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the sensor: the light comes from along x.
    std::string frame_id{};
    /// The light. Unit: lx
    double illuminance = 0;
    /// Variance; unset for not known. Unit: lx^2
    std::optional<double> variance{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Illuminance> {
    static constexpr const char* name = "rnet.msgs.Illuminance";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Illuminance;
        visit(Field<4>(), &M::variance);
        visit(Field<3>(), &M::illuminance);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
