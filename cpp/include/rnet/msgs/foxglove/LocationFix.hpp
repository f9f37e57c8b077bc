// Written from foxglove/LocationFix.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// What is known of a covariance.
enum class LocationFix_PositionCovarianceType : std::int32_t {
    /// Nothing.
    unknown = 0,
    /// A rough figure.
    approximated = 1,
    /// The diagonal.
    diagonal_known = 2,
    /// All of it.
    known = 3,
};

/// Where a satellite receiver is on the earth (WGS 84).
struct LocationFix {
    using PositionCovarianceType = LocationFix_PositionCovarianceType;

    /// When it was there, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the antenna.
    std::string frame_id{};
    /// North of the equator; south is negative. Unit: deg
    double latitude = 0;
    /// East of Greenwich; west is negative. Unit: deg
    double longitude = 0;
    /// Above the WGS 84 ellipsoid. Unit: m
    double altitude = 0;
    /// Covariance of the place in east, north and up, 3 x 3, row by row. Unit: m^2
    std::vector<double> position_covariance{};
    /// What is known of the covariance.
    PositionCovarianceType position_covariance_type{};
    /// Where the receiver points, clockwise from north. Note that REP-103 counts yaw counter-clockwise from
    /// east. Unit: rad
    std::optional<double> heading{};
    /// Velocity in east, north and up. Unit: m/s
    std::optional<Vector3> velocity{};
    /// Colour in which a map shows it.
    std::optional<Color> color{};
    /// What else is to be said about it; each key at most once.
    std::vector<KeyValuePair> metadata{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::LocationFix;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::LocationFix> {
    static constexpr const char* name = "foxglove.LocationFix";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::LocationFix;
        visit(Field<11>(), &M::velocity);
        visit(Field<10>(), &M::heading);
        visit(Field<9>(), &M::metadata);
        visit(Field<8>(), &M::color);
        visit(Field<7>(), &M::frame_id);
        visit(Field<6>(), &M::timestamp);
        visit(Field<5>(), &M::position_covariance_type);
        visit(Field<4>(), &M::position_covariance);
        visit(Field<3>(), &M::altitude);
        visit(Field<2>(), &M::longitude);
        visit(Field<1>(), &M::latitude);
    }
};

}  // namespace rnet::detail
