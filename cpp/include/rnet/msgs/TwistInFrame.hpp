// Written from rnet/msgs/TwistInFrame.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/Twist.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// How a body moves, or shall move, with time and frame. As a command it is to be preferred to a bare Twist,
/// because an old one can be told.
struct TwistInFrame {
    /// When it was measured or commanded, UTC.
    std::optional<Timestamp> timestamp{};
    /// The frame that moves, and along whose axes the numbers are given, for example `base_link`.
    std::string frame_id{};
    /// The motion.
    std::optional<Twist> twist{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::TwistInFrame> {
    static constexpr const char* name = "rnet.msgs.TwistInFrame";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::TwistInFrame;
        visit(Field<3>(), &M::twist);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
