// Messages in an event loop of Asio, next to its timers and sockets. Needs libasio-dev.
//
// Asio waits for the descriptor of the subscriber, which owns it: release() gives it back before the end.
#define ASIO_STANDALONE
#include <asio.hpp>

#include <rnet/rnet.hpp>
#include <rnet/wait_set.hpp>

#include <chrono>
#include <functional>
#include <iostream>

using namespace std::chrono_literals;

int main() {
    rnet::Node node("asio");
    auto numbers = node.publisher("/number");
    auto received = node.subscriber("/number");
    received.wait_for_publishers();

    asio::io_context loop;
    asio::posix::stream_descriptor ready(loop, rnet::fd(received));
    asio::steady_timer timer(loop);
    int sent = 0, count = 0;

    std::function<void()> receive = [&] {
        ready.async_wait(asio::posix::stream_descriptor::wait_read, [&](const asio::error_code& error) {
            if (error) return;
            for (; auto message = received.try_recv(); ++count) std::cout << message->text() << '\n';
            if (count >= 5) return loop.stop();
            receive();
        });
    };
    std::function<void()> send = [&] {
        timer.expires_after(100ms);
        timer.async_wait([&](const asio::error_code& error) {
            if (error) return;
            numbers.send(std::to_string(++sent));
            send();
        });
    };
    receive();
    send();
    loop.run();
    ready.release();
}
