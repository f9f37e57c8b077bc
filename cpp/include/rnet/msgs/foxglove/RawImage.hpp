// Written from foxglove/RawImage.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// An image, uncompressed. Camera images travel without a copy as the plain Image, which becomes this message
/// for recorders and viewers.
struct RawImage {
    /// Middle of the exposure, or the best that the camera knows, UTC.
    std::optional<Timestamp> timestamp{};
    /// Optical frame of the camera: origin in the pinhole, x right, y down, z into the picture (REP-103), for
    /// example `camera_optical`.
    std::string frame_id{};
    /// Pixels in a row. Unit: px
    std::uint32_t width = 0;
    /// Rows. Unit: px
    std::uint32_t height = 0;
    /// What a pixel is made of: `rgb8`, `bgr8`, `rgba8`, `bgra8`, `mono8` or `8UC1`, `mono16` or `16UC1`
    /// (depth: mm), `32FC1` (depth: m), `8UC3` (as `bgr8`), `yuv422` or `uyvy`, `yuv422_yuy2` or `yuyv`,
    /// `bayer_rggb8`, `bayer_bggr8`, `bayer_gbrg8`, `bayer_grbg8`. More bytes than one: little-endian.
    std::string encoding{};
    /// From the start of one row to that of the next; longer than a row where rows are padded. Unit: B
    std::uint32_t step = 0;
    /// The rows, from the top; height times step bytes.
    std::vector<std::uint8_t> data{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::RawImage;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::RawImage> {
    static constexpr const char* name = "foxglove.RawImage";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::RawImage;
        visit(Field<7>(), &M::frame_id);
        visit(Field<6>(), &M::data);
        visit(Field<5, Wire::fixed>(), &M::step);
        visit(Field<4>(), &M::encoding);
        visit(Field<3, Wire::fixed>(), &M::height);
        visit(Field<2, Wire::fixed>(), &M::width);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
