// Written from foxglove/TextPrimitive.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>

namespace rnet::msgs::foxglove {

/// A text in a scene.
struct TextPrimitive {
    /// The middle of the text; turned by nothing, it lies in the x-y plane and runs along x.
    std::optional<Pose> pose{};
    /// True: it always faces the viewer; false: it is turned as `pose` says.
    bool billboard = false;
    /// Height of a line of text. Unit: m or px
    double font_size = 0;
    /// True: `font_size` is in px, whatever the distance; false: in m.
    bool scale_invariant = false;
    /// Colour of the letters.
    std::optional<Color> color{};
    /// The text.
    std::string text{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::TextPrimitive;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::TextPrimitive> {
    static constexpr const char* name = "foxglove.TextPrimitive";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::TextPrimitive;
        visit(Field<6>(), &M::text);
        visit(Field<5>(), &M::color);
        visit(Field<4>(), &M::scale_invariant);
        visit(Field<3>(), &M::font_size);
        visit(Field<2>(), &M::billboard);
        visit(Field<1>(), &M::pose);
    }
};

}  // namespace rnet::detail
