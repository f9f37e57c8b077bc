// Written from rnet/msgs/Imu.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Quaternion.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// What an inertial sensor measures, in the axes of its own frame (REP-145: x forward, y left, z up). A
/// sensor at rest shows +9.81 m/s^2 along the axis that points up. Covariances are 3 x 3, row by row; empty
/// for not known. What is not measured at all is unset.
struct Imu {
    /// When it was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the sensor, for example `imu_link`.
    std::string frame_id{};
    /// How the sensor is turned against the earth: x east, y north, z up (REP-103). Yaw may drift where there
    /// is no compass; the covariance says so.
    std::optional<foxglove::Quaternion> orientation{};
    /// Covariance of turns about x, y, z. Unit: rad^2
    std::vector<double> orientation_covariance{};
    /// Turning about each axis. Unit: rad/s
    std::optional<foxglove::Vector3> angular_velocity{};
    /// Covariance of the turning. Unit: rad^2/s^2
    std::vector<double> angular_velocity_covariance{};
    /// Acceleration along each axis with what holds against gravity, which is what a sensor feels. Unit:
    /// m/s^2
    std::optional<foxglove::Vector3> linear_acceleration{};
    /// Covariance of the acceleration. Unit: m^2/s^4
    std::vector<double> linear_acceleration_covariance{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Imu> {
    static constexpr const char* name = "rnet.msgs.Imu";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Imu;
        visit(Field<8>(), &M::linear_acceleration_covariance);
        visit(Field<7>(), &M::linear_acceleration);
        visit(Field<6>(), &M::angular_velocity_covariance);
        visit(Field<5>(), &M::angular_velocity);
        visit(Field<4>(), &M::orientation_covariance);
        visit(Field<3>(), &M::orientation);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
