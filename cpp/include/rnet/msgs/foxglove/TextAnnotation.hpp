// Written from foxglove/TextAnnotation.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/foxglove/Point2.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A text drawn over an image.
struct TextAnnotation {
    /// The image's time stamp.
    std::optional<Timestamp> timestamp{};
    /// Where the text's bottom left corner is. Unit: px
    std::optional<Point2> position{};
    /// The text.
    std::string text{};
    /// Height of a line of text. Unit: px
    double font_size = 0;
    /// Colour of the letters.
    std::optional<Color> text_color{};
    /// Colour behind them.
    std::optional<Color> background_color{};
    /// What else is to be said about it; each key at most once.
    std::vector<KeyValuePair> metadata{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::TextAnnotation;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::TextAnnotation> {
    static constexpr const char* name = "foxglove.TextAnnotation";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::TextAnnotation;
        visit(Field<7>(), &M::metadata);
        visit(Field<6>(), &M::background_color);
        visit(Field<5>(), &M::text_color);
        visit(Field<4>(), &M::font_size);
        visit(Field<3>(), &M::text);
        visit(Field<2>(), &M::position);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
