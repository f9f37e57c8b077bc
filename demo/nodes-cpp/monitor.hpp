// The decisions of the safety monitor, without messaging.
#pragma once

#include "messages.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

/// A decision: the robot is to be stopped, or released.
struct Decision {
    bool active;
    StopReason reason;

    friend bool operator==(const Decision& a, const Decision& b) {
        return a.active == b.active && a.reason == b.reason;
    }
};

class Monitor {
public:
    /// Longer than a busy machine delays the loop, and soon enough: the actuators hold by themselves after 20
    /// ms.
    static constexpr std::int64_t silence_ns = 60'000'000;
    /// The stop is released after this time without a problem.
    static constexpr std::chrono::nanoseconds clear = std::chrono::milliseconds(300);
    /// Five times the weight of the robot, on one foot; walking and standing up stay below half of it.
    static constexpr float max_force_n = 900;
    /// Cosine of the tilt from which the robot inevitably falls.
    static constexpr double min_upright = 0.90;

    void handle_torques(const JointTorques& torques) { torque_ns_ = torques.time_ns; }
    void handle_state(const RobotState& state) {
        state_ns_ = state.time_ns;
        // Third row, third column of the rotation matrix: the vertical component of the body's up axis.
        const double x = state.orientation[0], y = state.orientation[1];
        if (1 - 2 * (x * x + y * y) < min_upright) bad_ = StopReason::tilt;
        // In simulated time, so that a simulation that stops is not reported. Before its first torque, a
        // controller is not silent but absent.
        if (torque_ns_ && state_ns_ - *torque_ns_ > silence_ns) bad_ = StopReason::controller_silent;
    }
    void handle_forces(const FootForces& forces) {
        const auto is_hard = [](float force) { return force > max_force_n; };
        if (std::any_of(std::begin(forces.force), std::end(forces.force), is_hard)) bad_ = StopReason::force;
    }

    /// Whether authority is needed to hold the motors.
    bool halts() const { return raised_ && *raised_ != StopReason::controller_silent; }

    /// The next event, if the state has changed. `ordered`: the stop button is pressed.
    std::optional<Decision> decide(bool ordered, std::chrono::nanoseconds now) {
        auto bad = std::exchange(bad_, std::nullopt);
        if (ordered) bad = StopReason::ordered;
        // While the robot is held, the controller cannot send.
        if (halts() && bad == StopReason::controller_silent) bad.reset();
        if (bad) {
            bad_at_ = now;
            // More severe than a silent controller, which was only reported so far.
            if (halts() || raised_ == bad) return std::nullopt;
            raised_ = bad;
            return Decision{true, *bad};
        }
        if (!raised_ || now - bad_at_ <= clear) return std::nullopt;
        // After a hold, the silence of the controller counts from here.
        if (halts() && torque_ns_) torque_ns_ = state_ns_;
        return Decision{false, *std::exchange(raised_, std::nullopt)};
    }

private:
    /// Simulated time of the newest state, and of the state that the newest torques answer.
    std::int64_t state_ns_ = 0;
    std::optional<std::int64_t> torque_ns_;
    /// The last problem since the last decision.
    std::optional<StopReason> bad_;
    std::chrono::nanoseconds bad_at_{0};
    /// Why the robot is stopped now.
    std::optional<StopReason> raised_;
};
