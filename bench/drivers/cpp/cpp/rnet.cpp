// robot-net through its C++ headers, set as bench/drivers/rnet sets the Rust library.
#include "driver.hpp"

#include <rnet/rnet.hpp>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

namespace {

using namespace std::chrono_literals;

/// How long a sender waits for a stalled reader.
constexpr auto wait_limit = 20s;
/// How long one receive waits before it checks for a stop.
constexpr auto stop_check_interval = 200ms;

/// The node of this process, one for all of its endpoints as in an application; the last of them closes it.
std::shared_ptr<rnet::Node> node(const Setup& setup) {
    static std::mutex mutex;
    static std::weak_ptr<rnet::Node> open;
    const std::lock_guard<std::mutex> lock(mutex);
    if (auto node = open.lock()) return node;
    rnet::NodeOptions options;
    options.dir = setup.place;
    options.domain = "bench";
    auto node = std::make_shared<rnet::Node>("process_" + std::to_string(getpid()), options);
    open = node;
    return node;
}

class Publisher {
public:
    explicit Publisher(const Setup& setup)
        : node_(node(setup)), publisher_(node_->publisher(setup.topic, options(setup))) {}

    /// None: subscribers find the topic by its name.
    std::string address() const { return {}; }
    void send(const std::uint8_t* data, std::size_t len) { publisher_.send(rnet::Bytes(data, len)); }
    void send_in_place(std::size_t len, Fill fill) {
        auto loan = publisher_.loan(len);
        const auto bytes = loan.span();
        fill.write(fill.context, bytes.data(), bytes.size());
        loan.send();
    }

private:
    static rnet::PublisherOptions options(const Setup& setup) {
        rnet::PublisherOptions options;
        options.reliable = true;
        options.full_timeout = wait_limit;
        options.urgent = setup.is_urgent;
        return options;
    }

    std::shared_ptr<rnet::Node> node_;
    rnet::Publisher<> publisher_;
};

class Subscriber {
public:
    Subscriber(const Setup& setup, Sink sink)
        : node_(node(setup)),
          subscriber_(node_->subscriber(setup.topic, options(setup))),
          thread_([this, sink] { receive(sink); }) {}
    ~Subscriber() {
        stop_.store(true, std::memory_order_relaxed);
        thread_.join();
    }

private:
    static rnet::SubscriberOptions options(const Setup& setup) {
        rnet::SubscriberOptions options;
        options.reliable = true;
        if (setup.is_urgent) options.lane = rnet::Lane::urgent;
        return options;
    }
    void receive(Sink sink) {
        while (!stop_.load(std::memory_order_relaxed)) {
            // A message or a time-out; other errors appear as missing messages.
            const auto sample = subscriber_.recv_view_for(stop_check_interval, std::nothrow);
            if (!sample) continue;
            const auto& bytes = **sample;
            sink.take(sink.context, bytes.data(), bytes.size());
        }
    }

    std::shared_ptr<rnet::Node> node_;
    rnet::Subscriber<> subscriber_;
    std::atomic<bool> stop_{false};
    // Last: it uses the others.
    std::thread thread_;
};

}  // namespace

extern "C" {
extern const Functions bench_cpp_rnet;
const Functions bench_cpp_rnet =
    functions<Publisher, Subscriber>([](Text* text) { text->set(rnet_version()); });
}
