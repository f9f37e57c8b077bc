// Written from foxglove/SceneUpdate.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/SceneEntity.hpp>
#include <rnet/msgs/foxglove/SceneEntityDeletion.hpp>

namespace rnet::msgs::foxglove {

/// A change to a scene: deletions first, then what is new or replaced.
struct SceneUpdate {
    /// What goes.
    std::vector<SceneEntityDeletion> deletions{};
    /// What comes, or takes the place of one of its name.
    std::vector<SceneEntity> entities{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::SceneUpdate;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::SceneUpdate> {
    static constexpr const char* name = "foxglove.SceneUpdate";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::SceneUpdate;
        visit(Field<2>(), &M::entities);
        visit(Field<1>(), &M::deletions);
    }
};

}  // namespace rnet::detail
