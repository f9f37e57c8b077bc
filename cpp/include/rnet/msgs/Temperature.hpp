// Written from rnet/msgs/Temperature.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// One temperature.
struct Temperature {
    /// When it was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the sensor, or name of the part that is measured.
    std::string frame_id{};
    /// The temperature, in degrees Celsius as in REP-103. Unit: degC
    double temperature = 0;
    /// Variance of the temperature; unset for not known. Unit: degC^2
    std::optional<double> variance{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Temperature> {
    static constexpr const char* name = "rnet.msgs.Temperature";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Temperature;
        visit(Field<4>(), &M::variance);
        visit(Field<3>(), &M::temperature);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
