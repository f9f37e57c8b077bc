// The decisions of the demo's safety monitor.
#include "../../demo/nodes-cpp/monitor.hpp"
#include "check.hpp"

using std::chrono::nanoseconds;

namespace {

constexpr Decision silent{true, StopReason::controller_silent};
constexpr Decision heard{false, StopReason::controller_silent};

/// Torques at 0, and a state so much later that the controller counts as silent.
void make_silent(Monitor& monitor, std::int64_t time_ns = Monitor::silence_ns + 1) {
    RobotState state{};
    state.time_ns = time_ns;
    monitor.handle_state(state);
}

Monitor with_torques() {
    Monitor monitor;
    monitor.handle_torques(JointTorques{});
    return monitor;
}

FootForces strike(float newton) { return {0, 0, {0, newton, 0, 0}}; }

}  // namespace

TEST("silence raises one stop, and torques release it") {
    Monitor monitor = with_torques();
    make_silent(monitor, Monitor::silence_ns);
    CHECK(!monitor.decide(false, nanoseconds(1)));
    make_silent(monitor);
    CHECK(monitor.decide(false, nanoseconds(2)) == silent);
    make_silent(monitor);
    CHECK(!monitor.decide(false, nanoseconds(3)));
    CHECK(!monitor.decide(false, nanoseconds(3) + Monitor::clear));
    CHECK(monitor.decide(false, nanoseconds(4) + Monitor::clear) == heard);
    CHECK(!monitor.decide(false, nanoseconds(5) + Monitor::clear));
}

TEST("a controller that has never sent is not silent") {
    Monitor monitor;
    make_silent(monitor);
    CHECK(!monitor.decide(false, nanoseconds(1)));
}

TEST("an order halts the motors until it is released") {
    Monitor monitor = with_torques();
    make_silent(monitor);
    CHECK(monitor.decide(false, nanoseconds(1)) == silent && !monitor.halts());
    CHECK(monitor.decide(true, nanoseconds(2)) == (Decision{true, StopReason::ordered}));
    CHECK(monitor.halts());
    // While held, the robot gets no torques from the controller: that alone must not prolong the hold.
    make_silent(monitor);
    CHECK(!monitor.decide(false, nanoseconds(2) + Monitor::clear) && monitor.halts());
    make_silent(monitor);
    CHECK(monitor.decide(false, nanoseconds(3) + Monitor::clear) == (Decision{false, StopReason::ordered}));
    CHECK(!monitor.halts());
    // The silence counts from the release on.
    make_silent(monitor);
    CHECK(!monitor.decide(false, nanoseconds(4) + Monitor::clear));
    make_silent(monitor, 2 * Monitor::silence_ns + 2);
    CHECK(monitor.decide(false, nanoseconds(5) + Monitor::clear) == silent);
}

TEST("a hard strike and a tilt raise a stop") {
    Monitor monitor;
    monitor.handle_forces(strike(Monitor::max_force_n));
    CHECK(!monitor.decide(false, nanoseconds(1)));
    monitor.handle_forces(strike(Monitor::max_force_n + 1));
    CHECK(monitor.decide(false, nanoseconds(2)) == (Decision{true, StopReason::force}));
    monitor.decide(false, nanoseconds(3) + Monitor::clear);

    RobotState state{};
    state.orientation[0] = 0.22;
    monitor.handle_state(state);
    CHECK(!monitor.decide(false, nanoseconds(4) + Monitor::clear));
    state.orientation[0] = 0.23;
    monitor.handle_state(state);
    CHECK(monitor.decide(false, nanoseconds(5) + Monitor::clear) == (Decision{true, StopReason::tilt}));
}

RNET_TEST_MAIN()
