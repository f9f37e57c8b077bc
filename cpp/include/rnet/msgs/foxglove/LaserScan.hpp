// Written from foxglove/LaserScan.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// One sweep of a scanner that turns about an axis. Beam i of n points to start_angle + i (end_angle -
/// start_angle) / (n - 1).
struct LaserScan {
    /// When the first beam was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the scanner, for example `laser`.
    std::string frame_id{};
    /// Where the beams start in `frame_id`; they lie in its x-y plane, 0 rad is along x, and angles grow from
    /// x to y.
    std::optional<Pose> pose{};
    /// Direction of the first beam. Unit: rad
    double start_angle = 0;
    /// Direction of the last beam. Unit: rad
    double end_angle = 0;
    /// Distance to what each beam met. Infinite: it met nothing; NaN: not measured. Unit: m
    std::vector<double> ranges{};
    /// Strength of each echo, in a scale of the scanner; empty, or as many as `ranges`. Unit: 1
    std::vector<double> intensities{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::LaserScan;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::LaserScan> {
    static constexpr const char* name = "foxglove.LaserScan";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::LaserScan;
        visit(Field<7>(), &M::intensities);
        visit(Field<6>(), &M::ranges);
        visit(Field<5>(), &M::end_angle);
        visit(Field<4>(), &M::start_angle);
        visit(Field<3>(), &M::pose);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
