// Written from foxglove/CompressedVideo.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// One picture of a video stream. It holds whole packets and all that is needed for just this picture, given
/// the ones before; a key picture brings its parameter sets, and there are no pictures that refer to later
/// ones.
struct CompressedVideo {
    /// When the picture was taken, UTC.
    std::optional<Timestamp> timestamp{};
    /// Optical frame of the camera: origin in the pinhole, x right, y down, z into the picture (REP-103).
    std::string frame_id{};
    /// The packets. `h264`, `h265`: Annex B. `vp9`: one frame. `av1`: low overhead stream of OBUs.
    std::vector<std::uint8_t> data{};
    /// The codec: `h264`, `h265`, `vp9` or `av1`.
    std::string format{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::CompressedVideo;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::CompressedVideo> {
    static constexpr const char* name = "foxglove.CompressedVideo";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::CompressedVideo;
        visit(Field<4>(), &M::format);
        visit(Field<3>(), &M::data);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
