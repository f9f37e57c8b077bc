// Written from rnet/msgs/BatteryState.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// What the battery does.
enum class BatteryState_Status : std::int32_t {
    /// Not known.
    unspecified = 0,
    /// It is being charged.
    charging = 1,
    /// It feeds the robot.
    discharging = 2,
    /// Neither, and it is not full.
    not_charging = 3,
    /// Neither, and it is full.
    full = 4,
};

/// What is wrong with it.
enum class BatteryState_Health : std::int32_t {
    /// Not known.
    unspecified = 0,
    /// Nothing.
    good = 1,
    /// Too hot.
    overheat = 2,
    /// Too cold.
    cold = 3,
    /// It has to be replaced.
    dead = 4,
    /// Its voltage is too high.
    overvoltage = 5,
    /// Its voltage is too low.
    undervoltage = 6,
    /// More current than it may give or take.
    overcurrent = 7,
    /// Its cells are too far apart.
    unbalanced = 8,
    /// Its management does not answer.
    no_answer = 9,
    /// Something else; a Diagnostic says what.
    other = 10,
};

/// What its cells are made of.
enum class BatteryState_Technology : std::int32_t {
    /// Not known.
    unspecified = 0,
    /// Lithium ion.
    li_ion = 1,
    /// Lithium polymer.
    li_po = 2,
    /// Lithium iron phosphate.
    li_fe_po4 = 3,
    /// Nickel metal hydride.
    ni_mh = 4,
    /// Nickel cadmium.
    ni_cd = 5,
    /// Lead acid.
    lead_acid = 6,
    /// Lithium titanate.
    li_titanate = 7,
    /// Sodium ion.
    na_ion = 8,
};

/// A battery. What is not measured is unset.
struct BatteryState {
    using Status = BatteryState_Status;
    using Health = BatteryState_Health;
    using Technology = BatteryState_Technology;

    /// When it was measured, UTC.
    std::optional<Timestamp> timestamp{};
    /// Where it sits, for example `left` or `slot 2`; its serial number tells which one it is.
    std::string location{};
    /// Number on the battery; empty for not known.
    std::string serial_number{};
    /// Whether there is one in its place; unset counts as there.
    std::optional<bool> present{};
    /// Between its poles. Unit: V
    std::optional<double> voltage{};
    /// Into the battery; negative while it feeds the robot. Unit: A
    std::optional<double> current{};
    /// What is in it; 1 A*h is 3600 C. Unit: C
    std::optional<double> charge{};
    /// What is in it when it is full, as of now. Unit: C
    std::optional<double> capacity{};
    /// What was in it when it was full and new. Unit: C
    std::optional<double> design_capacity{};
    /// From 0, empty, to 1, full. Unit: 1
    std::optional<double> state_of_charge{};
    /// Its temperature. Unit: degC
    std::optional<double> temperature{};
    /// What it does.
    Status status{};
    /// What is wrong with it.
    Health health{};
    /// What its cells are made of.
    Technology technology{};
    /// Voltage of each cell; empty for not known. Unit: V
    std::vector<double> cell_voltages{};
    /// Temperature of each cell, or of each of its sensors; empty for not known. Unit: degC
    std::vector<double> cell_temperatures{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::BatteryState> {
    static constexpr const char* name = "rnet.msgs.BatteryState";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::BatteryState;
        visit(Field<17>(), &M::cell_temperatures);
        visit(Field<16>(), &M::cell_voltages);
        visit(Field<15>(), &M::technology);
        visit(Field<14>(), &M::health);
        visit(Field<13>(), &M::status);
        visit(Field<12>(), &M::temperature);
        visit(Field<11>(), &M::state_of_charge);
        visit(Field<10>(), &M::design_capacity);
        visit(Field<9>(), &M::capacity);
        visit(Field<8>(), &M::charge);
        visit(Field<7>(), &M::current);
        visit(Field<6>(), &M::voltage);
        visit(Field<5>(), &M::present);
        visit(Field<4>(), &M::serial_number);
        visit(Field<3>(), &M::location);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
