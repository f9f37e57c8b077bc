// One node, eight topics, one wait for all of them.
//
// Each topic carries the readings of one sensor. A node that waits for eight topics sleeps in a single wait, because
// a process has one doorbell per waiting thread, not per topic. It needs every reading, so it uses keep_all: the
// default keeps the last ten unread messages.
#include <rnet/rnet.hpp>
#include <rnet/wait_set.hpp>

#include <cstdio>
#include <thread>

constexpr int sensor_count = 8, reading_count = 100;

struct Reading {
    double value;
};
RNET_PLAIN(Reading, value)

std::string topic_of(int sensor) { return "/sensor_" + std::to_string(sensor); }

/// Sensor n reads 10 n, 10 n + 1, 10 n, …
void measure(std::vector<rnet::Publisher<Reading>> sensors) {
    for (auto& sensor : sensors) sensor.wait_for_subscribers();
    for (int turn = 0; turn < reading_count; ++turn) {
        for (int n = 0; n < sensor_count; ++n) sensors[n].send({10.0 * n + turn % 2});
    }
}

int main() {
    rnet::Node node("many_topics");
    rnet::WaitSet waits(node);
    std::vector<rnet::Subscriber<Reading>> readers;
    std::vector<rnet::Publisher<Reading>> sensors;
    for (int n = 0; n < sensor_count; ++n) {
        readers.push_back(node.subscriber<Reading>(topic_of(n), {.keep_all = true}));
        waits.attach(readers.back());
        sensors.push_back(node.publisher<Reading>(topic_of(n)));
    }
    std::thread measuring(measure, std::move(sensors));

    double sums[sensor_count] = {};
    int counts[sensor_count] = {};
    for (int total = 0; total < sensor_count * reading_count;) {
        waits.wait();
        for (int n = 0; n < sensor_count; ++n) {
            while (auto reading = readers[n].try_recv_view()) {
                sums[n] += (*reading)->value;
                ++counts[n];
                ++total;
            }
        }
    }
    for (int n = 0; n < sensor_count; ++n) {
        std::printf("%s: %d readings, mean %.1f\n", topic_of(n).c_str(), counts[n], sums[n] / counts[n]);
    }
    measuring.join();
}
