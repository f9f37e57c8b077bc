// Written from foxglove/SceneEntityDeletion.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// Which things go.
enum class SceneEntityDeletion_Type : std::int32_t {
    /// The one of the name `id`.
    matching_id = 0,
    /// All of the topic.
    all = 1,
};

/// Takes things out of a scene.
struct SceneEntityDeletion {
    using Type = SceneEntityDeletion_Type;

    /// Things older than this go, UTC.
    std::optional<Timestamp> timestamp{};
    /// Which ones.
    Type type{};
    /// The name of the one that goes, with MATCHING_ID.
    std::string id{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::SceneEntityDeletion;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::SceneEntityDeletion> {
    static constexpr const char* name = "foxglove.SceneEntityDeletion";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::SceneEntityDeletion;
        visit(Field<3>(), &M::id);
        visit(Field<2>(), &M::type);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
