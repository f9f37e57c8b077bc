// Written from rnet/msgs/RelativeHumidity.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// How much water the air holds of what it could hold.
struct RelativeHumidity {
    /// When it was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the sensor, or name of the part that is measured.
    std::string frame_id{};
    /// From 0, dry, to 1, saturated. Unit: 1
    double relative_humidity = 0;
    /// Variance; unset for not known. Unit: 1
    std::optional<double> variance{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::RelativeHumidity> {
    static constexpr const char* name = "rnet.msgs.RelativeHumidity";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::RelativeHumidity;
        visit(Field<4>(), &M::variance);
        visit(Field<3>(), &M::relative_humidity);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
