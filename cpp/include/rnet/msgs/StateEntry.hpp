// Written from rnet/msgs/StateEntry.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs { inline namespace structs {

/// A key of the state at its home.
struct StateEntry {
    /// The key.
    std::string key{};
    /// The kind of its value, as docs/design/state-values.md numbers them; 0 for one that cannot be read, and
    /// `value` says why. Unit: 1
    std::uint32_t kind = 0;
    /// The bytes of its value.
    std::vector<std::uint8_t> value{};
    /// Of a message, the number of its type at its home. Unit: 1
    std::uint64_t type = 0;
    /// The description of that type; empty if it was sent before.
    std::vector<std::uint8_t> type_description{};
    /// Revision at which it was written. Unit: 1
    std::uint64_t revision = 0;
    /// Writes since it was created, from 1 on. Unit: 1
    std::uint64_t version = 0;
    /// The node that wrote it.
    std::string node{};
    /// When it was written, since 1970. Unit: ns
    std::uint64_t written_unix_ns = 0;
    /// Whether it is kept on disk.
    bool durable = false;
    /// Remaining time to live; absent: unlimited. Unit: ns
    std::optional<std::uint64_t> ttl_left_ns{};
    /// Whether it was deleted: there is no value.
    bool deleted = false;
    /// Whether it was deleted because it expired; absent if not known.
    std::optional<bool> expired{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::StateEntry> {
    static constexpr const char* name = "rnet.msgs.StateEntry";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::StateEntry;
        visit(Field<13>(), &M::expired);
        visit(Field<12>(), &M::deleted);
        visit(Field<11>(), &M::ttl_left_ns);
        visit(Field<10>(), &M::durable);
        visit(Field<9>(), &M::written_unix_ns);
        visit(Field<8>(), &M::node);
        visit(Field<7>(), &M::version);
        visit(Field<6>(), &M::revision);
        visit(Field<5>(), &M::type_description);
        visit(Field<4, Wire::fixed>(), &M::type);
        visit(Field<3>(), &M::value);
        visit(Field<2>(), &M::kind);
        visit(Field<1>(), &M::key);
    }
};

}  // namespace rnet::detail
