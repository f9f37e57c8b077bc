// An urgent stop that is never queued behind other topics.
//
// /load is a bulk topic with a slow callback and a thousand messages waiting for it; /stop is an urgent
// topic. The lanes share neither a log nor a thread, so the stop is handled while the bulk thread still
// processes its first messages.
#include <rnet/rnet.hpp>

#include <atomic>
#include <future>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

constexpr std::uint32_t load_count = 1000;

struct Load {
    std::uint32_t number;
};
RNET_PLAIN(Load, number)

int main() {
    std::atomic<int> handled{0};
    std::promise<rnet::Sample<>> stopped;

    rnet::Node robot("robot");
    auto work = robot.subscriber<Load>("/load", [&](auto&) {
        std::this_thread::sleep_for(20ms);  // Simulates the work of the callback.
        ++handled;
    }, {.keep_all = true});
    auto halt = robot.subscriber("/stop", [&](auto& stop) { stopped.set_value(stop.keep()); });

    rnet::Node operator_node("operator");
    auto loads = operator_node.publisher<Load>("/load");
    auto stops = operator_node.publisher("/stop", {.urgent = true});
    loads.wait_for_subscribers();
    stops.wait_for_subscribers();
    for (std::uint32_t n = 0; n < load_count; ++n) loads.send({n});
    stops.send("obstacle");

    const rnet::Sample<> stop = stopped.get_future().get();
    std::cout << "stop (" << stop.text() << ") after " << stop.latency() / 1us << " us, " << handled << " of "
              << load_count << " loads handled\n";
}
