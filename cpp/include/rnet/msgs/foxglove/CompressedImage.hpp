// Written from foxglove/CompressedImage.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// An image in a file format for single images.
struct CompressedImage {
    /// Middle of the exposure, or the best that the camera knows, UTC.
    std::optional<Timestamp> timestamp{};
    /// Optical frame of the camera: origin in the pinhole, x right, y down, z into the picture (REP-103).
    std::string frame_id{};
    /// The image file.
    std::vector<std::uint8_t> data{};
    /// Its format: `jpeg`, `png`, `webp` or `avif`.
    std::string format{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::CompressedImage;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::CompressedImage> {
    static constexpr const char* name = "foxglove.CompressedImage";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::CompressedImage;
        visit(Field<4>(), &M::frame_id);
        visit(Field<3>(), &M::format);
        visit(Field<2>(), &M::data);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
