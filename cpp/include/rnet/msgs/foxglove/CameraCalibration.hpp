// Written from foxglove/CameraCalibration.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// How a camera maps directions to pixels. Matrices stand row by row; the letters are those of OpenCV.
struct CameraCalibration {
    /// When the calibration was made or put to use, UTC.
    std::optional<Timestamp> timestamp{};
    /// Optical frame of the camera: origin in the pinhole, x right, y down, z into the picture (REP-103).
    std::string frame_id{};
    /// Pixels in a row of the calibrated image. Unit: px
    std::uint32_t width = 0;
    /// Rows of the calibrated image. Unit: px
    std::uint32_t height = 0;
    /// `plumb_bob` (k1 k2 p1 p2 k3), `rational_polynomial` (k1 k2 p1 p2 k3 k4 k5 k6) or `kannala_brandt` (k1
    /// k2 k3 k4, fisheye); empty for none.
    std::string distortion_model{};
    /// Coefficients of the distortion, in the order given there. Unit: 1
    std::vector<double> D{};
    /// Of the image as taken, 3 x 3: fx 0 cx, 0 fy cy, 0 0 1. Unit: px
    std::vector<double> K{};
    /// Turns the camera's axes into those of the rectified pair, 3 x 3; unity for a single camera. Unit: 1
    std::vector<double> R{};
    /// Of the rectified image, 3 x 4: fx 0 cx tx, 0 fy cy ty, 0 0 1 0. For the second camera of a pair tx =
    /// -fx times the baseline in m. Unit: px or px*m
    std::vector<double> P{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::CameraCalibration;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::CameraCalibration> {
    static constexpr const char* name = "foxglove.CameraCalibration";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::CameraCalibration;
        visit(Field<9>(), &M::frame_id);
        visit(Field<8>(), &M::P);
        visit(Field<7>(), &M::R);
        visit(Field<6>(), &M::K);
        visit(Field<5>(), &M::D);
        visit(Field<4>(), &M::distortion_model);
        visit(Field<3, Wire::fixed>(), &M::height);
        visit(Field<2, Wire::fixed>(), &M::width);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
