// Written from rnet/msgs/Diagnostic.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/KeyValuePair.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// Health of a part; higher is worse.
enum class Diagnostic_Level : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// Well.
    ok = 1,
    /// It works, but needs attention.
    warning = 2,
    /// It does not work.
    error = 3,
    /// No data for too long.
    stale = 4,
};

/// How one part is.
struct Diagnostic_Status {
    /// How it is.
    Diagnostic_Level level{};
    /// The part, from the outside in, for example `arm/joint_3/motor`.
    std::string name{};
    /// Its status as text.
    std::string text{};
    /// Identity of the hardware, for example a serial number; empty if unknown.
    std::string hardware_id{};
    /// Measured values, with units in the keys, for example `temperature_degC`.
    std::vector<foxglove::KeyValuePair> values{};
};

/// Health of the parts of a robot, sent about once a second: the latest status of each name applies. Use an
/// Event for single occurrences.
struct Diagnostic {
    using Level = Diagnostic_Level;
    using Status = Diagnostic_Status;

    /// Time of the check, UTC.
    std::optional<Timestamp> timestamp{};
    /// The parts, in any order.
    std::vector<Status> status{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Diagnostic_Status> {
    static constexpr const char* name = "rnet.msgs.Diagnostic.Status";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Diagnostic_Status;
        visit(Field<5>(), &M::values);
        visit(Field<4>(), &M::hardware_id);
        visit(Field<3>(), &M::text);
        visit(Field<2>(), &M::name);
        visit(Field<1>(), &M::level);
    }
};

template <>
struct Fields<msgs::Diagnostic> {
    static constexpr const char* name = "rnet.msgs.Diagnostic";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::Diagnostic;
        visit(Field<3>(), &M::status);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
