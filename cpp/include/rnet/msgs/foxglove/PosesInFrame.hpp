// Written from foxglove/PosesInFrame.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A row of poses in one frame: a path to follow, or the guesses of a particle filter. A path whose poses
/// have times is an rnet.msgs.PoseTrajectory.
struct PosesInFrame {
    /// When the row was made, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame in which it is given (REP-105), for example `base_link`.
    std::string frame_id{};
    /// The poses; of a path, from its start to its end.
    std::vector<Pose> poses{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::PosesInFrame;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::PosesInFrame> {
    static constexpr const char* name = "foxglove.PosesInFrame";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::PosesInFrame;
        visit(Field<3>(), &M::poses);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
