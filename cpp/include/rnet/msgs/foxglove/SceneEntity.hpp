// Written from foxglove/SceneEntity.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/ArrowPrimitive.hpp>
#include <rnet/msgs/foxglove/CubePrimitive.hpp>
#include <rnet/msgs/foxglove/CylinderPrimitive.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/foxglove/LinePrimitive.hpp>
#include <rnet/msgs/foxglove/ModelPrimitive.hpp>
#include <rnet/msgs/foxglove/SpherePrimitive.hpp>
#include <rnet/msgs/foxglove/TextPrimitive.hpp>
#include <rnet/msgs/foxglove/TriangleListPrimitive.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A thing in a scene, drawn of several parts that share its frame.
struct SceneEntity {
    /// From when on it is there, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame in which it is given (REP-105), for example `base_link`.
    std::string frame_id{};
    /// Its name; a later entity of the same name on the topic takes its place.
    std::string id{};
    /// How long it stays; 0 until it is replaced or deleted.
    std::optional<Duration> lifetime{};
    /// True: it moves with `frame_id`; false: it stays where the frame was at `timestamp`.
    bool frame_locked = false;
    /// What else is to be said about it; each key at most once.
    std::vector<KeyValuePair> metadata{};
    /// Arrows.
    std::vector<ArrowPrimitive> arrows{};
    /// Boxes.
    std::vector<CubePrimitive> cubes{};
    /// Spheres and ellipsoids.
    std::vector<SpherePrimitive> spheres{};
    /// Cylinders and cones.
    std::vector<CylinderPrimitive> cylinders{};
    /// Lines.
    std::vector<LinePrimitive> lines{};
    /// Triangles.
    std::vector<TriangleListPrimitive> triangles{};
    /// Texts.
    std::vector<TextPrimitive> texts{};
    /// 3D models.
    std::vector<ModelPrimitive> models{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::SceneEntity;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::SceneEntity> {
    static constexpr const char* name = "foxglove.SceneEntity";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::SceneEntity;
        visit(Field<14>(), &M::models);
        visit(Field<13>(), &M::texts);
        visit(Field<12>(), &M::triangles);
        visit(Field<11>(), &M::lines);
        visit(Field<10>(), &M::cylinders);
        visit(Field<9>(), &M::spheres);
        visit(Field<8>(), &M::cubes);
        visit(Field<7>(), &M::arrows);
        visit(Field<6>(), &M::metadata);
        visit(Field<5>(), &M::frame_locked);
        visit(Field<4>(), &M::lifetime);
        visit(Field<3>(), &M::id);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
