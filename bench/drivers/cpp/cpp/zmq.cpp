// libzmq through cppzmq, as its examples use it, set as bench/drivers/zmq sets the Rust binding.
#include "driver.hpp"

#include <zmq.hpp>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>

namespace {

/// Bytes and messages that each of a connection's two queues may hold.
constexpr std::size_t queue_bytes = 64 << 20;
constexpr std::size_t queue_messages = 10000, queue_messages_min = 16;
/// How long one receive waits before it checks for a stop, in ms.
constexpr int stop_check_interval_ms = 100;

/// The context of this process, with two I/O threads. Never terminated: that would wait for open sockets.
zmq::context_t& context() {
    static auto* const context = new zmq::context_t(2);
    return *context;
}

zmq::socket_t socket(zmq::socket_type type, const Setup& setup) {
    zmq::socket_t socket(context(), type);
    const auto queue = std::clamp(queue_bytes / std::max<std::size_t>(setup.max_len, 1), queue_messages_min,
                                  queue_messages);
    socket.set(zmq::sockopt::sndhwm, static_cast<int>(queue));
    socket.set(zmq::sockopt::rcvhwm, static_cast<int>(queue));
    socket.set(zmq::sockopt::linger, 0);
    // A bit for each I/O thread.
    socket.set(zmq::sockopt::affinity, setup.is_urgent ? 0b10ul : 0b01ul);
    return socket;
}

class Publisher {
public:
    explicit Publisher(const Setup& setup) : socket_(socket(zmq::socket_type::pub, setup)) {
        socket_.set(zmq::sockopt::xpub_nodrop, true);
        socket_.bind(setup.place);
    }

    std::string address() const { return socket_.get(zmq::sockopt::last_endpoint); }
    void send(const std::uint8_t* data, std::size_t len) {
        socket_.send(zmq::buffer(data, len), zmq::send_flags::none);
    }
    void send_in_place(std::size_t len, Fill fill) {
        zmq::message_t message(len);
        fill.write(fill.context, message.data<std::uint8_t>(), message.size());
        socket_.send(message, zmq::send_flags::none);
    }

private:
    zmq::socket_t socket_;
};

class Subscriber {
public:
    Subscriber(const Setup& setup, Sink sink) : socket_(socket(zmq::socket_type::sub, setup)) {
        socket_.set(zmq::sockopt::subscribe, "");
        socket_.set(zmq::sockopt::rcvtimeo, stop_check_interval_ms);
        std::istringstream addresses(setup.place);
        for (std::string address; std::getline(addresses, address);) socket_.connect(address);
        thread_ = std::thread([this, sink] { receive(sink); });
    }
    ~Subscriber() {
        stop_.store(true, std::memory_order_relaxed);
        thread_.join();
    }

private:
    void receive(Sink sink) {
        zmq::message_t message;
        while (!stop_.load(std::memory_order_relaxed)) {
            // Missing messages show a failed receive.
            try {
                if (!socket_.recv(message, zmq::recv_flags::none)) continue;
            } catch (const zmq::error_t&) {
                continue;
            }
            sink.take(sink.context, message.data<std::uint8_t>(), message.size());
        }
    }

    zmq::socket_t socket_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

void version(Text* text) {
    const auto [major, minor, patch] = zmq::version();
    std::ostringstream out;
    out << "libzmq " << major << '.' << minor << '.' << patch << ", cppzmq " << CPPZMQ_VERSION_MAJOR << '.'
        << CPPZMQ_VERSION_MINOR << '.' << CPPZMQ_VERSION_PATCH;
    text->set(out.str().c_str());
}

}  // namespace

extern "C" {
extern const Functions bench_cpp_zmq;
const Functions bench_cpp_zmq = functions<Publisher, Subscriber>(version);
}
