// Written from foxglove/FrameTransforms.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/FrameTransform.hpp>

namespace rnet::msgs::foxglove {

/// Several transforms at once, each with a time of its own.
struct FrameTransforms {
    /// The transforms; their order means nothing.
    std::vector<FrameTransform> transforms{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::FrameTransforms;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::FrameTransforms> {
    static constexpr const char* name = "foxglove.FrameTransforms";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::FrameTransforms;
        visit(Field<1>(), &M::transforms);
    }
};

}  // namespace rnet::detail
