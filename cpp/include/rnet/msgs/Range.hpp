// Written from rnet/msgs/Range.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// What the sensor sends out.
enum class Range_Radiation : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// Sound.
    ultrasound = 1,
    /// Infrared light in a cone.
    infrared = 2,
    /// A laser's beam.
    laser = 3,
    /// Radio waves.
    radar = 4,
};

/// One distance, measured by a sonar, an infrared or a laser sensor along x of its frame.
struct Range {
    using Radiation = Range_Radiation;

    /// When it was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the sensor: origin where the distance is counted from, x towards what is measured.
    std::string frame_id{};
    /// What the sensor sends out.
    Radiation radiation{};
    /// Opening of the cone in which the thing may be. Unit: rad
    double field_of_view = 0;
    /// The nearest that can be measured. Unit: m
    double min_range = 0;
    /// The farthest that can be measured. Unit: m
    double max_range = 0;
    /// The distance. Infinite: nothing within reach; minus infinite: nearer than can be measured; NaN: the
    /// sensor failed. Unit: m
    double range = 0;
    /// Variance of the distance; unset for not known. Unit: m^2
    std::optional<double> variance{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Range> {
    static constexpr const char* name = "rnet.msgs.Range";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Range;
        visit(Field<8>(), &M::variance);
        visit(Field<7>(), &M::range);
        visit(Field<6>(), &M::max_range);
        visit(Field<5>(), &M::min_range);
        visit(Field<4>(), &M::field_of_view);
        visit(Field<3>(), &M::radiation);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
