// Written from foxglove/Log.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// How bad it is.
enum class Log_Level : std::int32_t {
    /// Not said.
    unknown = 0,
    /// For who wrote the program.
    debug = 1,
    /// As expected.
    info = 2,
    /// Not as expected; the work goes on.
    warning = 3,
    /// Something could not be done.
    error = 4,
    /// The program ends.
    fatal = 5,
};

/// A line for people to read. What programs are to act on is an rnet.msgs.Event.
struct Log {
    using Level = Log_Level;

    /// When it was said, UTC.
    std::optional<Timestamp> timestamp{};
    /// How bad it is.
    Level level{};
    /// What was said.
    std::string message{};
    /// Who said it: the node's name.
    std::string name{};
    /// Source file that said it.
    std::string file{};
    /// Line in that file, from 1. Unit: 1
    std::uint32_t line = 0;
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Log;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Log> {
    static constexpr const char* name = "foxglove.Log";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Log;
        visit(Field<6, Wire::fixed>(), &M::line);
        visit(Field<5>(), &M::file);
        visit(Field<4>(), &M::name);
        visit(Field<3>(), &M::message);
        visit(Field<2>(), &M::level);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
