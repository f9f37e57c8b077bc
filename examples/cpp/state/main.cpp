// State: current values that any node reads, writes and watches.
//
// An arm publishes its state; a panel reads it, counts jobs, and starts one. When the arm exits for any
// reason, its last will updates the state.

#include <rnet/node.hpp>
#include <rnet/state.hpp>

#include <iostream>

int main() {
    rnet::Node arm("arm"), panel("panel");
    const rnet::State own = rnet::State::open(arm);
    own.set("/arm/mode", "idle");
    own.set("/arm/gains", rnet::Value::json(R"({"kp": 12.5, "kd": 0.5})"));
    rnet::PutOptions alive;
    alive.last_will = false;
    own.set("/arm/alive", true, alive);

    const rnet::State state = rnet::State::open(panel);
    std::cout << "the arm is " << *state.get<std::string>("/arm/mode") << ", gains are "
              << state.get("/arm/gains")->text() << '\n';
    std::int64_t job = 0;
    for (int i = 0; i < 3; ++i) job = state.add("/arm/jobs");
    // Both or none: no reader sees a moving arm without a target, and one of two panels wins.
    state.transact([](rnet::Transaction& both) {
        if (both.get<std::string>("/arm/mode") == "idle") {
            both.set("/arm/mode", "moving");
            both.set("/arm/target_m", std::vector<double>{0.5, -0.25});
        }
    });
    const auto target = *state.get<std::vector<double>>("/arm/target_m");
    std::cout << "job " << job << ": " << *state.get<std::string>("/arm/mode") << " to [" << target[0] << ", "
              << target[1] << "]\n";

    // First the current values, then each change.
    for (const rnet::Change& change : state.watch("/arm/alive")) {
        const bool is_alive = change.get<bool>().value_or(false);
        std::cout << "alive: " << std::boolalpha << is_alive << '\n';
        if (!is_alive) break;
        arm.close();
    }
}
