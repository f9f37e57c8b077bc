// Written from foxglove/CompressedAudio.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A piece of sound: one whole packet of its codec.
struct CompressedAudio {
    /// When its first sample was taken, UTC.
    std::optional<Timestamp> timestamp{};
    /// The packet; AAC with an ADTS header.
    std::vector<std::uint8_t> data{};
    /// The codec: `opus`, or `mp4a.40.2` for AAC-LC.
    std::string format{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::CompressedAudio;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::CompressedAudio> {
    static constexpr const char* name = "foxglove.CompressedAudio";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::CompressedAudio;
        visit(Field<3>(), &M::format);
        visit(Field<2>(), &M::data);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
