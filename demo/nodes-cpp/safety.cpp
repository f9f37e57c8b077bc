// The safety monitor: raises an urgent stop when the controller is silent, a foot strikes too hard, the body
// tips, or a stop is ordered. It releases the stop when the problem is over.
//
// The stop is authority: the torques are a command, and a driver with a higher priority than the controller
// that sends nothing makes the motors hold. A silent controller is only reported: the command's deadline
// already makes the motors hold.
//
// It waits for all its inputs at once (rnet::WaitSet).
#include "monitor.hpp"
#include "process.hpp"

#include <rnet/command.hpp>
#include <rnet/rnet.hpp>
#include <rnet/wait_set.hpp>

#include <chrono>
#include <iostream>
#include <optional>

using namespace std::chrono_literals;

/// Maximum interval between two checks for commands from run.py.
constexpr auto poll_interval = 20ms;

/// Authority over the motors, for holding them.
class StopDriver {
public:
    explicit StopDriver(const rnet::Node& node) : node_(node) {}

    /// Takes, renews or releases authority. Failures are retried in the next check; without renewal, the
    /// lease expires.
    void keep(bool wanted) {
        if (!wanted) return driver_.reset();
        if (driver_ && rnet::now() - renewed_ < lease / 4) return;
        const auto done = driver_ ? driver_->renew(std::nothrow) : take();
        renewed_ = rnet::now();
        if (done) return;
        std::cerr << "cannot take authority to stop: " << done.error().what() << '\n';
        driver_.reset();
    }

private:
    static constexpr auto lease = 500ms;
    /// The controller's priority is 10. The time limit for the motors is shorter than the permitted delay of
    /// the checks.
    static constexpr rnet::DriverOptions options{.priority = 100, .lease = lease, .timeout = 500ms};

    rnet::Result<void> take() {
        auto taken = rnet::Driver<JointTorques>::take(node_, "/robot/torque", options, std::nothrow);
        if (!taken) return taken.error();
        driver_.emplace(std::move(*taken));
        return {};
    }

    const rnet::Node& node_;
    std::optional<rnet::Driver<JointTorques>> driver_;
    std::chrono::nanoseconds renewed_{0};
};

/// Receives all available messages; the death of a peer is an expected event here.
template <class T, class See>
void drain(rnet::Subscriber<T>& subscriber, See see) {
    for (;;) {
        const auto next = subscriber.try_recv_view(std::nothrow);
        if (!next && next.error().code() == rnet::Code::peer_lost) {
            std::cerr << next.error().what() << '\n';
        } else if (!next) {
            throw next.error();
        } else if (*next) {
            see(***next);
        } else {
            return;
        }
    }
}

void run(Process& process) {
    rnet::Node node("safety");
    // A stop must arrive, and must not wait for a reader that hangs.
    auto stop = node.publisher<StopEvent>("/safety/stop", {.reliable = true,
                                                           .on_full = rnet::OnFull::detach,
                                                           .full_timeout = 100ms,
                                                           .transient_local = 1,
                                                           .urgent = true});
    auto state = node.subscriber<RobotState>("/robot/state");
    auto torques = node.subscriber<JointTorques>("/robot/torque");
    auto forces = node.subscriber<FootForces>("/robot/force");
    state.wait_for_publishers_for(1, 10s);
    process.joined();

    rnet::WaitSet waits(node);
    waits.attach(state);
    waits.attach(torques);
    waits.attach(forces);
    Monitor monitor;
    auto receive = [&] {
        waits.wait_for(poll_interval);
        drain(torques, [&](const JointTorques& message) { monitor.handle_torques(message); });
        drain(forces, [&](const FootForces& message) { monitor.handle_forces(message); });
        drain(state, [&](const RobotState& message) { monitor.handle_state(message); });
    };
    StopDriver halt(node);
    std::uint64_t sent = 0;
    while (!process.is_quiet()) {
        receive();
        const auto decision = monitor.decide(process.is_stop_ordered(), rnet::now());
        // Makes the robot safe first, then reports it.
        halt.keep(monitor.halts());
        if (!decision) continue;
        stop.send({sent, rnet_now_ns(), decision->active, decision->reason});
        ++sent;
    }
    halt.keep(false);
    process.report_quiet("/safety/stop", sent);
    // Continues to receive, so that the arrival of the last messages can be verified.
    while (!process.is_stopped()) receive();
}

int main() {
    // Lives until the program ends: its thread uses it.
    static Process process;
    if (!process.start()) return 0;
    try {
        run(process);
    } catch (const rnet::Error& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
