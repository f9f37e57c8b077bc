// Written from rnet/msgs/MagneticField.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// What a magnetometer measures.
struct MagneticField {
    /// When it was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame of the sensor; the field is given in its axes.
    std::string frame_id{};
    /// The field. Unit: T
    std::optional<foxglove::Vector3> magnetic_field{};
    /// Covariance of the field, 3 x 3, row by row; empty for not known. Unit: T^2
    std::vector<double> covariance{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::MagneticField> {
    static constexpr const char* name = "rnet.msgs.MagneticField";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::MagneticField;
        visit(Field<4>(), &M::covariance);
        visit(Field<3>(), &M::magnetic_field);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
