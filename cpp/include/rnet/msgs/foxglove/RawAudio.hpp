// Written from foxglove/RawAudio.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A piece of sound, uncompressed, its channels interleaved.
struct RawAudio {
    /// When its first sample was taken, UTC.
    std::optional<Timestamp> timestamp{};
    /// The samples, little-endian.
    std::vector<std::uint8_t> data{};
    /// What a sample is; viewers know `pcm-s16`, signed 16 bits.
    std::string format{};
    /// Samples a second of each channel. Unit: Hz
    std::uint32_t sample_rate = 0;
    /// Channels. Unit: 1
    std::uint32_t number_of_channels = 0;
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::RawAudio;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::RawAudio> {
    static constexpr const char* name = "foxglove.RawAudio";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::RawAudio;
        visit(Field<5, Wire::fixed>(), &M::number_of_channels);
        visit(Field<4, Wire::fixed>(), &M::sample_rate);
        visit(Field<3>(), &M::format);
        visit(Field<2>(), &M::data);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
