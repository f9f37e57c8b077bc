// Written from foxglove/ModelPrimitive.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/Color.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>

namespace rnet::msgs::foxglove {

/// A 3D model in a scene, by address or with its bytes.
struct ModelPrimitive {
    /// Where the model's origin is.
    std::optional<Pose> pose{};
    /// By how much it is stretched along x, y and z; 1 for not at all. Unit: 1
    std::optional<Vector3> scale{};
    /// Colour of the whole model where `override_color` is true.
    std::optional<Color> color{};
    /// Whether `color` takes the place of the model's own colours.
    bool override_color = false;
    /// Where the model is to be had; empty where `data` has it.
    std::string url{};
    /// What the bytes are, for example `model/gltf-binary`; needed with `data`.
    std::string media_type{};
    /// The model's file; empty where `url` says where it is.
    std::vector<std::uint8_t> data{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::ModelPrimitive;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::ModelPrimitive> {
    static constexpr const char* name = "foxglove.ModelPrimitive";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::ModelPrimitive;
        visit(Field<7>(), &M::data);
        visit(Field<6>(), &M::media_type);
        visit(Field<5>(), &M::url);
        visit(Field<4>(), &M::override_color);
        visit(Field<3>(), &M::color);
        visit(Field<2>(), &M::scale);
        visit(Field<1>(), &M::pose);
    }
};

}  // namespace rnet::detail
