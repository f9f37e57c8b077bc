// Written from foxglove/ImageAnnotations.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/CircleAnnotation.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/foxglove/PointsAnnotation.hpp>
#include <rnet/msgs/foxglove/TextAnnotation.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// What is to be drawn over one image.
struct ImageAnnotations {
    /// The image's time stamp; where unset, that of each annotation counts.
    std::optional<Timestamp> timestamp{};
    /// Circles.
    std::vector<CircleAnnotation> circles{};
    /// Points and lines.
    std::vector<PointsAnnotation> points{};
    /// Texts.
    std::vector<TextAnnotation> texts{};
    /// What else is to be said about it; each key at most once.
    std::vector<KeyValuePair> metadata{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::ImageAnnotations;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::ImageAnnotations> {
    static constexpr const char* name = "foxglove.ImageAnnotations";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::ImageAnnotations;
        visit(Field<5>(), &M::timestamp);
        visit(Field<4>(), &M::metadata);
        visit(Field<3>(), &M::texts);
        visit(Field<2>(), &M::points);
        visit(Field<1>(), &M::circles);
    }
};

}  // namespace rnet::detail
