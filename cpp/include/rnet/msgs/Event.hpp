// Written from rnet/msgs/Event.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// Severity; higher is worse.
enum class Event_Severity : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// For who wrote the program.
    debug = 1,
    /// As expected.
    info = 2,
    /// Unexpected, but the work continues.
    warning = 3,
    /// Something could not be done.
    error = 4,
    /// The robot cannot continue, or must not.
    fatal = 5,
};

/// A single occurrence that programs may act on. Use a foxglove.Log for text for people, and a Diagnostic for
/// the continuous health of a part.
struct Event {
    using Severity = Event_Severity;

    /// When it happened, UTC.
    std::optional<Timestamp> timestamp{};
    /// How bad it is.
    Severity severity{};
    /// Code for programs: lower case words with dots, stable and unique, for example `arm.collision`.
    std::string code{};
    /// Text for people: what failed, the values, what to do.
    std::string text{};
    /// The node that reports it.
    std::string node{};
    /// Values that belong to it, with units in the keys.
    std::vector<foxglove::KeyValuePair> values{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Event> {
    static constexpr const char* name = "rnet.msgs.Event";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Event;
        visit(Field<7>(), &M::values);
        visit(Field<6>(), &M::node);
        visit(Field<5>(), &M::text);
        visit(Field<4>(), &M::code);
        visit(Field<3>(), &M::severity);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
